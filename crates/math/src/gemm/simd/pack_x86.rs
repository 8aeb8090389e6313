//! Transposing copies by AVX2 shuffles, for packing operands that are contiguous along the depth.
//!
//! Row groups go from the last to the first and the depth upwards: a group with fewer rows than a vector has lanes writes rubbish
//! behind its rows, and everything it can hit is written afterwards.

use std::arch::x86_64::{
    __m256, __m256d, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_permute2f128_pd,
    _mm256_permute2f128_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_shuffle_ps,
    _mm256_storeu_pd, _mm256_storeu_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps, _mm256_unpacklo_pd,
    _mm256_unpacklo_ps,
};

macro_rules! pack {
    ($name:ident, $t:ty, $lanes:literal, $load:ident, $store:ident, $zero:ident, $transpose:ident) => {
        /// # Safety
        /// See `PackFn`; the CPU has AVX2.
        #[target_feature(enable = "avx2")]
        pub(crate) unsafe fn $name(
            src: *const $t,
            stride: usize,
            width: usize,
            depth: usize,
            dst: *mut $t,
        ) {
            const L: usize = $lanes;
            let blocks = depth - depth % L;
            for first in (0..width).step_by(L).rev() {
                let rows = L.min(width - first);
                let from = src.wrapping_add(first * stride);
                let to = dst.wrapping_add(first);
                for p in (0..blocks).step_by(L) {
                    let mut v = [$zero(); L];
                    for (i, v) in v.iter_mut().enumerate().take(rows) {
                        // SAFETY: row `first + i < width`, columns `p..p + L <= depth` are readable by contract.
                        *v = unsafe { $load(from.wrapping_add(i * stride + p)) };
                    }
                    for (q, v) in $transpose(v).into_iter().enumerate() {
                        // SAFETY: at most one vector beyond `depth·width`, writable by contract.
                        unsafe { $store(to.wrapping_add((p + q) * width), v) };
                    }
                }
                for p in blocks..depth {
                    for i in 0..rows {
                        // SAFETY: inside the source by contract.
                        let x = unsafe { *from.wrapping_add(i * stride + p) };
                        // SAFETY: inside the destination by contract.
                        unsafe { *to.wrapping_add(p * width + i) = x };
                    }
                }
            }
        }
    };
}

pack!(
    pack_f32,
    f32,
    8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_setzero_ps,
    transpose_f32
);
pack!(
    pack_f64,
    f64,
    4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_setzero_pd,
    transpose_f64
);

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transpose_f32(r: [__m256; 8]) -> [__m256; 8] {
    let t0 = _mm256_unpacklo_ps(r[0], r[1]);
    let t1 = _mm256_unpackhi_ps(r[0], r[1]);
    let t2 = _mm256_unpacklo_ps(r[2], r[3]);
    let t3 = _mm256_unpackhi_ps(r[2], r[3]);
    let t4 = _mm256_unpacklo_ps(r[4], r[5]);
    let t5 = _mm256_unpackhi_ps(r[4], r[5]);
    let t6 = _mm256_unpacklo_ps(r[6], r[7]);
    let t7 = _mm256_unpackhi_ps(r[6], r[7]);
    let u0 = _mm256_shuffle_ps::<0x44>(t0, t2);
    let u1 = _mm256_shuffle_ps::<0xEE>(t0, t2);
    let u2 = _mm256_shuffle_ps::<0x44>(t1, t3);
    let u3 = _mm256_shuffle_ps::<0xEE>(t1, t3);
    let u4 = _mm256_shuffle_ps::<0x44>(t4, t6);
    let u5 = _mm256_shuffle_ps::<0xEE>(t4, t6);
    let u6 = _mm256_shuffle_ps::<0x44>(t5, t7);
    let u7 = _mm256_shuffle_ps::<0xEE>(t5, t7);
    [
        _mm256_permute2f128_ps::<0x20>(u0, u4),
        _mm256_permute2f128_ps::<0x20>(u1, u5),
        _mm256_permute2f128_ps::<0x20>(u2, u6),
        _mm256_permute2f128_ps::<0x20>(u3, u7),
        _mm256_permute2f128_ps::<0x31>(u0, u4),
        _mm256_permute2f128_ps::<0x31>(u1, u5),
        _mm256_permute2f128_ps::<0x31>(u2, u6),
        _mm256_permute2f128_ps::<0x31>(u3, u7),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transpose_f64(r: [__m256d; 4]) -> [__m256d; 4] {
    let t0 = _mm256_unpacklo_pd(r[0], r[1]);
    let t1 = _mm256_unpackhi_pd(r[0], r[1]);
    let t2 = _mm256_unpacklo_pd(r[2], r[3]);
    let t3 = _mm256_unpackhi_pd(r[2], r[3]);
    [
        _mm256_permute2f128_pd::<0x20>(t0, t2),
        _mm256_permute2f128_pd::<0x20>(t1, t3),
        _mm256_permute2f128_pd::<0x31>(t0, t2),
        _mm256_permute2f128_pd::<0x31>(t1, t3),
    ]
}
