//! Register-tile kernels: one source, instantiated for AVX2+FMA, AVX-512 and plain arrays, chosen once at run time.
//!
//! Every dense product of this crate, matrix or convolution, is cut into register tiles and ends in a [`Tile`].

#[cfg(target_arch = "x86_64")]
pub(crate) mod pack_x86;
mod portable;
#[cfg(test)]
mod tests;
mod tile;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Neg;
use std::sync::OnceLock;

pub(crate) use tile::{Kernels, Store, Tile};

/// A real type with register-tile kernels.
pub(crate) trait Real: super::Element + super::scratch::Plain + Neg<Output = Self> {
    /// The kernels for this machine.
    fn kernels() -> &'static Kernels<Self>;
}

impl Real for f32 {
    fn kernels() -> &'static Kernels<f32> {
        static BEST: OnceLock<&'static Kernels<f32>> = OnceLock::new();
        BEST.get_or_init(|| best(&portable::F32, available_f32()))
    }
}

impl Real for f64 {
    fn kernels() -> &'static Kernels<f64> {
        static BEST: OnceLock<&'static Kernels<f64>> = OnceLock::new();
        BEST.get_or_init(|| best(&portable::F64, available_f64()))
    }
}

fn best<T>(portable: &'static Kernels<T>, native: Vec<&'static Kernels<T>>) -> &'static Kernels<T> {
    native.last().copied().unwrap_or(portable)
}

/// What this machine can run besides the portable kernels, best last.
#[cfg(target_arch = "x86_64")]
fn available_f32() -> Vec<&'static Kernels<f32>> {
    pick(&x86::AVX2_F32, &x86::AVX512_F32)
}

#[cfg(target_arch = "x86_64")]
fn available_f64() -> Vec<&'static Kernels<f64>> {
    pick(&x86::AVX2_F64, &x86::AVX512_F64)
}

#[cfg(target_arch = "x86_64")]
fn pick<T>(avx2: &'static Kernels<T>, avx512: &'static Kernels<T>) -> Vec<&'static Kernels<T>> {
    let mut found = Vec::new();
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        found.push(avx2);
        if is_x86_feature_detected!("avx512f") {
            found.push(avx512);
        }
    }
    found
}

#[cfg(not(target_arch = "x86_64"))]
fn available_f32() -> Vec<&'static Kernels<f32>> {
    Vec::new()
}

#[cfg(not(target_arch = "x86_64"))]
fn available_f64() -> Vec<&'static Kernels<f64>> {
    Vec::new()
}

/// Every f32 table that can run here, the portable ones too.
#[cfg(test)]
pub(crate) fn all_f32() -> Vec<&'static Kernels<f32>> {
    let mut all = available_f32();
    all.extend([&portable::F32, &portable::WIDE_F32]);
    all
}
