//! Conversion of blocks between the half formats and `f32`.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Float;
use super::isa::{Kernel2, Map2, multiversion};
#[cfg(target_arch = "x86_64")]
use super::isa::{Level, level};

/// Widens `x` to `f32`, as long as the shorter slice; exact for halves.
pub fn to_f32_slice<T: HalfOrSingle>(x: &[T], out: &mut [f32]) {
    let n = x.len().min(out.len());
    T::widen(&x[..n], &mut out[..n]);
}

/// Rounds `x` to nearest even, as long as the shorter slice.
pub fn from_f32_slice<T: HalfOrSingle>(x: &[f32], out: &mut [T]) {
    let n = x.len().min(out.len());
    T::narrow(&x[..n], &mut out[..n]);
}

/// Formats that widen to `f32` without loss.
pub trait HalfOrSingle: Float {
    /// Widens; both slices have the same length.
    fn widen(x: &[Self], out: &mut [f32]);
    /// Rounds to nearest even; both slices have the same length.
    fn narrow(x: &[f32], out: &mut [Self]);
}

impl HalfOrSingle for f32 {
    fn widen(x: &[Self], out: &mut [f32]) {
        out.copy_from_slice(x);
    }
    fn narrow(x: &[f32], out: &mut [Self]) {
        out.copy_from_slice(x);
    }
}

impl HalfOrSingle for f16 {
    fn widen(x: &[Self], out: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if level() >= Level::Avx2 {
            // SAFETY: the level says that this machine has F16C.
            return unsafe { f16c::widen(x, out) };
        }
        x.convert_to_f32_slice(out);
    }
    fn narrow(x: &[f32], out: &mut [Self]) {
        #[cfg(target_arch = "x86_64")]
        if level() >= Level::Avx2 {
            // SAFETY: as above.
            return unsafe { f16c::narrow(x, out) };
        }
        out.convert_from_f32_slice(x);
    }
}

/// The loop of a function of two halves that are widened, by hardware if the machine has it.
pub(crate) fn half2<M: Map2<f32>>() -> Option<Kernel2<f16>> {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the level says that this machine has the features.
        return Some(|x, y, out| unsafe { f16c::map2::<M>(x, y, out) });
    }
    None
}

/// Hardware conversion, eight at a time: the crate's own goes through a detection and a call for each eight.
#[cfg(target_arch = "x86_64")]
mod f16c {
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    use half::f16;

    use crate::num::isa::{Fused, Map2};

    /// As long as the shortest slice.
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn map2<M: Map2<f32>>(x: &[f16], y: &[f16], out: &mut [f16]) {
        let (x_blocks, x_rest) = x.as_chunks::<8>();
        let (y_blocks, y_rest) = y.as_chunks::<8>();
        let (to, last) = out.as_chunks_mut::<8>();
        let (mut wide_x, mut wide_y, mut result) = ([0f32; 8], [0f32; 8], [0f32; 8]);
        for ((x, y), to) in x_blocks.iter().zip(y_blocks).zip(to) {
            widen(x, &mut wide_x);
            widen(y, &mut wide_y);
            for i in 0..8 {
                result[i] = M::eval::<Fused>(wide_x[i], wide_y[i]);
            }
            narrow(&result, to);
        }
        for ((x, y), to) in x_rest.iter().zip(y_rest).zip(last) {
            *to = f16::from_f32(M::eval::<Fused>(x.to_f32(), y.to_f32()));
        }
    }

    #[target_feature(enable = "avx,f16c")]
    #[inline]
    pub(super) fn widen(x: &[f16], out: &mut [f32]) {
        let (blocks, rest) = x.as_chunks::<8>();
        let (to, last) = out.as_chunks_mut::<8>();
        for (to, block) in to.iter_mut().zip(blocks) {
            // SAFETY: `block` has the eight halves that are read.
            let halves = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
            let floats = _mm256_cvtph_ps(halves);
            // SAFETY: `to` has room for the eight floats that are written.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), floats) };
        }
        for (to, x) in last.iter_mut().zip(rest) {
            *to = x.to_f32();
        }
    }

    #[target_feature(enable = "avx,f16c")]
    #[inline]
    pub(super) fn narrow(x: &[f32], out: &mut [f16]) {
        let (blocks, rest) = x.as_chunks::<8>();
        let (to, last) = out.as_chunks_mut::<8>();
        for (to, block) in to.iter_mut().zip(blocks) {
            // SAFETY: `block` has the eight floats that are read.
            let floats = unsafe { _mm256_loadu_ps(block.as_ptr()) };
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(floats);
            // SAFETY: `to` has room for the eight halves that are written.
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), halves) };
        }
        for (to, x) in last.iter_mut().zip(rest) {
            *to = f16::from_f32(*x);
        }
    }
}

impl HalfOrSingle for bf16 {
    fn widen(x: &[Self], out: &mut [f32]) {
        widen_bf16(x, out);
    }
    fn narrow(x: &[f32], out: &mut [Self]) {
        narrow_bf16(x, out);
    }
}

#[inline(always)]
fn widen_loop(x: &[bf16], out: &mut [f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f32::from_bits(u32::from(x.to_bits()) << 16);
    }
}

#[inline(always)]
fn narrow_loop(x: &[f32], out: &mut [bf16]) {
    for (out, x) in out.iter_mut().zip(x) {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let quiet = bits >> 16 | 0x40;
        *out = bf16::from_bits((if x.is_nan() { quiet } else { rounded }) as u16);
    }
}

multiversion! { fn widen_bf16(x: &[bf16], out: &mut [f32]) = widen_loop; }
multiversion! { fn narrow_bf16(x: &[f32], out: &mut [bf16]) = narrow_loop; }
