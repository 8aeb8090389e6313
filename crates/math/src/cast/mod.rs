//! Conversion between all numeric types with TensorFlow's rules, from a [`Slice`] to a [`SliceMut`] of any type.
//!
//! ```
//! use tensorfleet_math::{cast::{self, Slice, SliceMut}, par::Serial};
//! let mut out = [0i32; 3];
//! cast::cast(&Serial, Slice::F32(&[1.9, -1.9, f32::NAN]), SliceMut::I32(&mut out), false);
//! assert_eq!(out, [1, -1, i32::MIN]);
//! ```
//!
//! | from | to | rule |
//! |---|---|---|
//! | any | `bool` | not equal to zero; NaN is true |
//! | integer | integer | wraps |
//! | float | `i32`, `i64` | truncates; out of range and NaN give the lowest value, as the processor does |
//! | float | `i8 i16 u8 u16` | truncates to `i32` as above, then saturates |
//! | float | `u32`, `u64` | truncates; negative numbers wrap |
//! | wide float | narrow float | nearest even; with `truncate`, towards zero for `f32 → bf16, f16` and `f64 → f32, f16` |
//! | complex | real | drops the imaginary part |
//!
//! TensorFlow leaves out-of-range floats to the compiler, and its own kernels differ between vector and scalar code there;
//! the rules above are those of its vector code. Pairs without a loop of their own go through `i32`, `i64`, `f32` or `f64` in
//! small blocks, so there are some eighty loops and not two hundred.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod direct;
mod float8;
mod hub;
mod rules;
#[cfg(test)]
mod tests;

pub use float8::Float8;
use half::{bf16, f16};
use num_complex::Complex;

use crate::par::{Par, chunks_mut};

/// Declares the two enums over the same types.
macro_rules! slices {
    ($($variant:ident $t:ty, $doc:literal;)*) => {
        /// Elements of some numeric type.
        #[derive(Clone, Copy, Debug)]
        pub enum Slice<'a> {
            $(#[doc = $doc] $variant(&'a [$t]),)*
        }

        /// Room for elements of some numeric type.
        #[derive(Debug)]
        pub enum SliceMut<'a> {
            $(#[doc = $doc] $variant(&'a mut [$t]),)*
        }

        $(
            impl<'a> From<&'a [$t]> for Slice<'a> {
                fn from(x: &'a [$t]) -> Self {
                    Self::$variant(x)
                }
            }

            impl<'a> From<&'a mut [$t]> for SliceMut<'a> {
                fn from(x: &'a mut [$t]) -> Self {
                    Self::$variant(x)
                }
            }
        )*

        impl<'a> Slice<'a> {
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(x) => x.len(),)*
                }
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            fn part(self, at: usize, len: usize) -> Self {
                match self {
                    $(Self::$variant(x) => Self::$variant(&x[at..at + len]),)*
                }
            }
        }

        impl<'a> SliceMut<'a> {
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(x) => x.len(),)*
                }
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            fn split(self, at: usize) -> (Self, Self) {
                match self {
                    $(Self::$variant(x) => {
                        let (low, high) = x.split_at_mut(at);
                        (Self::$variant(low), Self::$variant(high))
                    })*
                }
            }
        }

        /// Converts `x` to the type of `out`; `truncate` is TensorFlow's attribute of that name.
        ///
        /// # Panics
        /// If the lengths differ.
        pub fn cast(par: &dyn Par, x: Slice<'_>, out: SliceMut<'_>, truncate: bool) {
            assert_eq!(x.len(), out.len(), "lengths of input and output differ");
            match out {
                $(SliceMut::$variant(out) => chunks_mut(par, out, 32 << 10, |at, out| {
                    run(x.part(at, out.len()), SliceMut::$variant(out), truncate);
                }),)*
            }
        }
    };
}

slices! {
    Bool bool, "`bool`";
    I8 i8, "`int8`";
    I16 i16, "`int16`";
    I32 i32, "`int32`";
    I64 i64, "`int64`";
    U8 u8, "`uint8`";
    U16 u16, "`uint16`";
    U32 u32, "`uint32`";
    U64 u64, "`uint64`";
    F16 f16, "`half`";
    BF16 bf16, "`bfloat16`";
    F32 f32, "`float`";
    F64 f64, "`double`";
    C64 Complex<f32>, "`complex64`";
    C128 Complex<f64>, "`complex128`";
}

fn run(x: Slice<'_>, mut out: SliceMut<'_>, truncate: bool) {
    if direct::run(x, &mut out, truncate) {
        return;
    }
    let mut hub = hub::Hub::for_source(x);
    let mut at = 0;
    while !out.is_empty() {
        let len = out.len().min(hub::BLOCK);
        let (now, later) = out.split(len);
        hub.load(x.part(at, len));
        hub.store(now, truncate);
        at += len;
        out = later;
    }
}
