//! Comparisons.

use half::{bf16, f16};
use num_complex::Complex;

use super::Fault;
use crate::broadcast::{BLOCK, Broadcast, run2};
use crate::num::convert::HalfOrSingle;
use crate::num::isa::{Isa, Kernel2, Map2, kernel2, scalar2};
use crate::num::{Element, Real};
use crate::par::Par;

/// A comparison, named as TensorFlow's op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as TensorFlow's ops")]
pub enum Compare {
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
}

/// A type with some of the [`Compare`] functions.
pub trait CompareElement: Element {
    /// Whether the type has an order, and not equality alone.
    const ORDERED: bool;

    /// Compares a run on this thread; all slices have the same length, and the type is ordered unless `op` is (in)equality.
    #[doc(hidden)]
    fn run(op: Compare, x: &[Self], y: &[Self], out: &mut [bool]);
}

/// Writes `op(x, y)` to `out`.
///
/// # Errors
/// [`Fault::Unsupported`] if the type has no order.
///
/// # Panics
/// If the lengths are not those of `broadcast`.
pub fn compare<T: CompareElement>(
    par: &dyn Par,
    op: Compare,
    broadcast: &Broadcast,
    x: &[T],
    y: &[T],
    out: &mut [bool],
) -> Result<(), Fault> {
    if !T::ORDERED && !matches!(op, Compare::Equal | Compare::NotEqual) {
        return Err(Fault::Unsupported);
    }
    run2(par, broadcast, 32 << 10, (x, y), out, |x, y, out| {
        T::run(op, x, y, out)
    });
    Ok(())
}

struct Equal;
impl<T: Element> Map2<T, bool> for Equal {
    #[inline(always)]
    fn eval<I: Isa>(x: T, y: T) -> bool {
        x == y
    }
}

struct NotEqual;
impl<T: Element> Map2<T, bool> for NotEqual {
    #[inline(always)]
    fn eval<I: Isa>(x: T, y: T) -> bool {
        x != y
    }
}

struct Less;
impl<T: Real> Map2<T, bool> for Less {
    #[inline(always)]
    fn eval<I: Isa>(x: T, y: T) -> bool {
        x < y
    }
}

struct LessEqual;
impl<T: Real> Map2<T, bool> for LessEqual {
    #[inline(always)]
    fn eval<I: Isa>(x: T, y: T) -> bool {
        x <= y
    }
}

fn ordered<T: Real>(op: Compare, x: &[T], y: &[T], out: &mut [bool]) {
    // Small types are rare: one copy of the loop will do.
    macro_rules! pick {
        ($op:ident) => {
            if const { size_of::<T>() >= 4 } {
                kernel2::<T, bool, $op>()
            } else {
                scalar2::<T, bool, $op>()
            }
        };
    }
    let kernel: Kernel2<T, bool> = match op {
        Compare::Equal => pick!(Equal),
        Compare::NotEqual => pick!(NotEqual),
        Compare::Less | Compare::Greater => pick!(Less),
        Compare::LessEqual | Compare::GreaterEqual => pick!(LessEqual),
    };
    match op {
        Compare::Greater | Compare::GreaterEqual => kernel(y, x, out),
        _ => kernel(x, y, out),
    }
}

macro_rules! ordered {
    ($($t:ty),*) => {$(
        impl CompareElement for $t {
            const ORDERED: bool = true;

            fn run(op: Compare, x: &[Self], y: &[Self], out: &mut [bool]) {
                ordered(op, x, y, out);
            }
        }
    )*};
}

ordered!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! half {
    ($($t:ty),*) => {$(
        impl CompareElement for $t {
            const ORDERED: bool = true;

            fn run(op: Compare, x: &[Self], y: &[Self], out: &mut [bool]) {
                let (mut wide_x, mut wide_y) = ([0f32; BLOCK], [0f32; BLOCK]);
                for ((x, y), out) in x.chunks(BLOCK).zip(y.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
                    let n = x.len();
                    <$t>::widen(x, &mut wide_x[..n]);
                    <$t>::widen(y, &mut wide_y[..n]);
                    ordered(op, &wide_x[..n], &wide_y[..n], out);
                }
            }
        }
    )*};
}

half!(f16, bf16);

macro_rules! unordered {
    ($($t:ty),*) => {$(
        impl CompareElement for $t {
            const ORDERED: bool = false;

            fn run(op: Compare, x: &[Self], y: &[Self], out: &mut [bool]) {
                match op {
                    Compare::Equal => scalar2::<_, _, Equal>()(x, y, out),
                    _ => scalar2::<_, _, NotEqual>()(x, y, out),
                }
            }
        }
    )*};
}

unordered!(bool, Complex<f32>, Complex<f64>);
