//! Conversion of blocks between the half formats and `f32`.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Float;
use super::isa::multiversion;

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
        x.convert_to_f32_slice(out);
    }
    fn narrow(x: &[f32], out: &mut [Self]) {
        out.convert_from_f32_slice(x);
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
