//! Floats to integers by the processor's own conversion, which truncates and gives the lowest integer for all that does not fit.

use std::arch::x86_64::*;

use super::rules::ToInt;

/// Converts `x`, as long as the shorter slice.
#[target_feature(enable = "avx2")]
pub(super) fn to_i32(x: &[f32], out: &mut [i32]) {
    let n = x.len().min(out.len());
    let (blocks, rest) = x[..n].as_chunks::<8>();
    let (to, last) = out[..n].as_chunks_mut::<8>();
    for (to, block) in to.iter_mut().zip(blocks) {
        let integers = truncated(block);
        // SAFETY: `to` has room for the eight integers that are written.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), integers) };
    }
    for (to, x) in last.iter_mut().zip(rest) {
        *to = x.to_int();
    }
}

/// Converts `x`, as long as the shorter slice.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn to_i64(x: &[f32], out: &mut [i64]) {
    let n = x.len().min(out.len());
    let (blocks, rest) = x[..n].as_chunks::<8>();
    let (to, last) = out[..n].as_chunks_mut::<8>();
    for (to, block) in to.iter_mut().zip(blocks) {
        // SAFETY: there are the eight floats that are read.
        let integers = _mm512_cvttps_epi64(unsafe { _mm256_loadu_ps(block.as_ptr()) });
        // SAFETY: `to` has room for the eight integers that are written.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), integers) };
    }
    for (to, x) in last.iter_mut().zip(rest) {
        *to = x.to_int();
    }
}

/// As [`to_i32`], then saturated.
#[target_feature(enable = "avx2")]
pub(super) fn to_u8(x: &[f32], out: &mut [u8]) {
    let n = x.len().min(out.len());
    let (blocks, rest) = x[..n].as_chunks::<32>();
    let (to, last) = out[..n].as_chunks_mut::<32>();
    // Packing works within halves of vectors, so that the groups of four bytes come out as 0 2 4 6 1 3 5 7.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (to, block) in to.iter_mut().zip(blocks) {
        let (eights, _) = block.as_chunks::<8>();
        let low = _mm256_packs_epi32(truncated(&eights[0]), truncated(&eights[1]));
        let high = _mm256_packs_epi32(truncated(&eights[2]), truncated(&eights[3]));
        let bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
        // SAFETY: `to` has room for the 32 bytes that are written.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), bytes) };
    }
    for (to, x) in last.iter_mut().zip(rest) {
        *to = x.to_int();
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn truncated(x: &[f32; 8]) -> __m256i {
    // SAFETY: there are the eight floats that are read.
    _mm256_cvttps_epi32(unsafe { _mm256_loadu_ps(x.as_ptr()) })
}
