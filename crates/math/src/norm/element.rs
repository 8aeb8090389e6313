//! Blocks of data seen as `f32`.

use half::{bf16, f16};

use crate::num::convert::HalfOrSingle;

/// A type of data to normalise: `f16`, `bf16` or `f32`.
pub trait NormElement: HalfOrSingle {
    /// The block in `f32`: itself, or widened into the buffer.
    #[doc(hidden)]
    fn view<'a>(block: &'a [Self], buffer: &'a mut Vec<f32>) -> &'a [f32];

    /// Writes a block by way of `f32`: in place, or in the buffer and rounded from there.
    #[doc(hidden)]
    fn write(block: &mut [Self], buffer: &mut Vec<f32>, fill: impl FnOnce(&mut [f32]));
}

impl NormElement for f32 {
    #[inline]
    fn view<'a>(block: &'a [Self], _: &'a mut Vec<f32>) -> &'a [f32] {
        block
    }

    #[inline]
    fn write(block: &mut [Self], _: &mut Vec<f32>, fill: impl FnOnce(&mut [f32])) {
        fill(block);
    }
}

macro_rules! halves {
    ($($ty:ty),*) => {
        $(impl NormElement for $ty {
            fn view<'a>(block: &'a [Self], buffer: &'a mut Vec<f32>) -> &'a [f32] {
                buffer.resize(block.len(), 0.0);
                Self::widen(block, buffer);
                buffer
            }

            fn write(block: &mut [Self], buffer: &mut Vec<f32>, fill: impl FnOnce(&mut [f32])) {
                buffer.resize(block.len(), 0.0);
                fill(buffer);
                Self::narrow(buffer, block);
            }
        })*
    };
}

halves!(f16, bf16);
