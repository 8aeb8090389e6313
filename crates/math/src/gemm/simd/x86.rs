//! AVX2+FMA and AVX-512 instantiations.
//!
//! 6 rows by 2 vectors fill 12 of AVX2's 16 registers; 14 by 2 fill 28 of AVX-512's 32. The rest hold the right-hand vectors and
//! one broadcast.

use std::arch::x86_64::{
    __m256, __m256d, __m256i, __m512, __m512d, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64,
    _mm256_maskload_pd, _mm256_maskload_ps, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi32, _mm256_setr_epi64x, _mm512_maskz_loadu_pd, _mm512_maskz_loadu_ps,
};

use super::tile::kernels;

/// The first `n` of eight, as `vmaskmov` wants them: the sign bits.
#[inline]
#[target_feature(enable = "avx2")]
fn mask_32x8(n: usize) -> __m256i {
    let n = _mm256_set1_epi32(n as i32);
    _mm256_cmpgt_epi32(n, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// The first `n` of four.
#[inline]
#[target_feature(enable = "avx2")]
fn mask_64x4(n: usize) -> __m256i {
    let n = _mm256_set1_epi64x(n as i64);
    _mm256_cmpgt_epi64(n, _mm256_setr_epi64x(0, 1, 2, 3))
}

/// The first `n` of sixteen, `n` below that.
#[inline(always)]
fn mask_16(n: usize) -> u16 {
    ((1u32 << n) - 1) as u16
}

/// The first `n` of eight, `n` below that.
#[inline(always)]
fn mask_8(n: usize) -> u8 {
    ((1u32 << n) - 1) as u8
}

macro_rules! load_first {
    ($name:ident, $t:ty, $v:ident, $feature:literal, |$p:ident, $n:ident| $load:expr) => {
        /// # Safety
        /// `n` elements, fewer than the vector has, are readable at `p`.
        #[inline]
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn $name($p: *const $t, $n: usize) -> $v {
            // SAFETY: the caller's contract; what the mask leaves out is not accessed.
            unsafe { $load }
        }
    };
}

load_first!(load_first_f32x8, f32, __m256, "avx2,fma", |p, n| {
    _mm256_maskload_ps(p, mask_32x8(n))
});
load_first!(load_first_f64x4, f64, __m256d, "avx2,fma", |p, n| {
    _mm256_maskload_pd(p, mask_64x4(n))
});
load_first!(load_first_f32x16, f32, __m512, "avx512f", |p, n| {
    _mm512_maskz_loadu_ps(mask_16(n), p)
});
load_first!(load_first_f64x8, f64, __m512d, "avx512f", |p, n| {
    _mm512_maskz_loadu_pd(mask_8(n), p)
});

macro_rules! vector_ops {
    ($module:ident, $t:ty, $v:ident, $lanes:literal, $feature:literal,
     $zero:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $mul:ident, $add:ident, $pack:ident,
     $load_first:ident, $store_first:ident, $mask:ident) => {
        mod $module {
            use std::arch::x86_64::{
                $add, $fma, $load, $mul, $splat, $store, $store_first, $zero,
            };

            use super::$mask as mask;
            pub(super) use super::$load_first as load_first;

            pub(super) type T = $t;
            pub(super) type V = std::arch::x86_64::$v;
            pub(super) const LANES: usize = $lanes;
            pub(super) use crate::gemm::simd::pack_x86::$pack as pack;

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn zero() -> V {
                $zero()
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn splat(x: T) -> V {
                $splat(x)
            }

            /// # Safety
            /// `LANES` elements are readable at `p`.
            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn load(p: *const T) -> V {
                // SAFETY: the caller's contract; the load has no alignment.
                unsafe { $load(p) }
            }

            /// # Safety
            /// `LANES` elements are writable at `p`.
            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn store(p: *mut T, v: V) {
                // SAFETY: the caller's contract; the store has no alignment.
                unsafe { $store(p, v) };
            }

            /// # Safety
            /// `n` elements, fewer than `LANES`, are writable at `p`.
            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn store_first(p: *mut T, v: V, n: usize) {
                // SAFETY: the caller's contract; what the mask leaves out is not accessed.
                unsafe { $store_first(p, mask(n), v) };
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn fma(x: V, y: V, z: V) -> V {
                $fma(x, y, z)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn mul(x: V, y: V) -> V {
                $mul(x, y)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn add(x: V, y: V) -> V {
                $add(x, y)
            }

            #[inline(always)]
            #[expect(
                clippy::pointers_in_nomem_asm_block,
                reason = "the pointer is passed through, not followed"
            )]
            pub(super) fn opaque(mut p: *const T) -> *const T {
                // SAFETY: no instruction at all.
                unsafe {
                    std::arch::asm!("/* {p} */", p = inout(reg) p, options(pure, nomem, nostack, preserves_flags));
                }
                p
            }

            #[inline(always)]
            pub(super) fn prefetch(p: *const T) {
                // SAFETY: a prefetch reads nothing the program can see and may point anywhere.
                unsafe { std::arch::x86_64::_mm_prefetch::<3>(p.cast()) };
            }

            #[inline]
            #[target_feature(enable = $feature)]
            pub(super) fn sum(x: V) -> T {
                let mut lanes = [0.0; LANES];
                // SAFETY: `lanes` has `LANES` elements.
                unsafe { $store(lanes.as_mut_ptr(), x) };
                lanes.iter().sum()
            }
        }
    };
}

vector_ops!(
    f32x8,
    f32,
    __m256,
    8,
    "avx2,fma",
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_mul_ps,
    _mm256_add_ps,
    pack_f32,
    load_first_f32x8,
    _mm256_maskstore_ps,
    mask_32x8
);
vector_ops!(
    f64x4,
    f64,
    __m256d,
    4,
    "avx2,fma",
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_mul_pd,
    _mm256_add_pd,
    pack_f64,
    load_first_f64x4,
    _mm256_maskstore_pd,
    mask_64x4
);
vector_ops!(
    f32x16,
    f32,
    __m512,
    16,
    "avx512f",
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_mul_ps,
    _mm512_add_ps,
    pack_f32,
    load_first_f32x16,
    _mm512_mask_storeu_ps,
    mask_16
);
vector_ops!(
    f64x8,
    f64,
    __m512d,
    8,
    "avx512f",
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_mul_pd,
    _mm512_add_pd,
    pack_f64,
    load_first_f64x8,
    _mm512_mask_storeu_pd,
    mask_8
);

kernels!(
    AVX2_F32,
    avx2_f32,
    super::f32x8,
    [target_feature(enable = "avx2,fma")],
    [1, 2, 3, 4, 5, 6]
);
kernels!(
    AVX2_F64,
    avx2_f64,
    super::f64x4,
    [target_feature(enable = "avx2,fma")],
    [1, 2, 3, 4, 5, 6]
);
kernels!(
    AVX512_F32,
    avx512_f32,
    super::f32x16,
    [target_feature(enable = "avx512f")],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
);
kernels!(
    AVX512_F64,
    avx512_f64,
    super::f64x8,
    [target_feature(enable = "avx512f")],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
);
