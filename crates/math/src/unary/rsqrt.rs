//! `1 / sqrt(x)` by the processor's estimate and one step of third order: the exact division and root take four times as long.

use std::arch::x86_64::*;

/// Writes the reciprocal square roots, as long as the shorter slice; within one and a half units in the last place.
#[target_feature(enable = "avx2,fma")]
pub(super) fn avx2(x: &[f32], out: &mut [f32]) {
    let n = x.len().min(out.len());
    let (blocks, rest) = x[..n].as_chunks::<8>();
    let (to, last) = out[..n].as_chunks_mut::<8>();
    for (to, block) in to.iter_mut().zip(blocks) {
        // SAFETY: `block` has the eight floats that are read.
        let x = unsafe { _mm256_loadu_ps(block.as_ptr()) };
        let y = lanes(x);
        // SAFETY: `to` has room for the eight floats that are written.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), y) };
    }
    if !rest.is_empty() {
        let mut block = [1.0; 8];
        block[..rest.len()].copy_from_slice(rest);
        // SAFETY: `block` has the eight floats that are read.
        let y = lanes(unsafe { _mm256_loadu_ps(block.as_ptr()) });
        // SAFETY: `block` has room for the eight floats that are written.
        unsafe { _mm256_storeu_ps(block.as_mut_ptr(), y) };
        last.copy_from_slice(&block[..rest.len()]);
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn lanes(x: __m256) -> __m256 {
    let one = _mm256_set1_ps(1.0);
    // With h = 1 - x r²: 1 / sqrt(x) = r (1 - h)^(-1/2) = r (1 + h/2 + 3h²/8 + …), and h is below 2^-10.
    let r = _mm256_rsqrt_ps(x);
    let rest = _mm256_fnmadd_ps(_mm256_mul_ps(x, r), r, one);
    let factor = _mm256_fmadd_ps(rest, _mm256_set1_ps(0.375), _mm256_set1_ps(0.5));
    let y = _mm256_fmadd_ps(_mm256_mul_ps(r, rest), factor, r);
    // The estimate knows no subnormal numbers and gives infinity for them; the step fails at 0, infinity and below 0 and
    // gives NaN. No other result is like that.
    let hard = _mm256_cmp_ps::<_CMP_NLT_UQ>(y, _mm256_set1_ps(f32::INFINITY));
    if _mm256_movemask_ps(hard) == 0 {
        return y;
    }
    _mm256_blendv_ps(y, _mm256_div_ps(one, _mm256_sqrt_ps(x)), hard)
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_near_the_exact_value() {
        use crate::num::isa::{Level, level};
        if level() < Level::Avx2 {
            return;
        }
        let mut x: Vec<f32> = (1_u32..0x7f80)
            .map(|high| f32::from_bits(high << 16 | high.wrapping_mul(40_503) & 0xffff))
            .collect();
        x.extend([0.0, -0.0, f32::INFINITY, -1.0, f32::NAN, 1e-40, 4.0]);
        let mut y = vec![0.0; x.len()];
        // SAFETY: the level says that this machine has the features.
        unsafe { super::avx2(&x, &mut y) };
        for (&x, &y) in x.iter().zip(&y) {
            let exact = 1.0 / f64::from(x).sqrt();
            let near = exact as f32;
            let same = near == y || near.is_nan() && y.is_nan();
            let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
            assert!(
                same || (f64::from(y) - exact).abs() <= 1.5 * ulp,
                "{x:e}: {y:e} is not {near:e}"
            );
        }
    }
}
