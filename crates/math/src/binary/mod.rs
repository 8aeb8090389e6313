//! Elementwise functions of two inputs with broadcasting: [`apply`] with a [`Binary`] op, [`compare`] with a [`Compare`] op.
//!
//! The output is new memory ([`apply`]) or one of the inputs ([`apply_lhs`], [`apply_rhs`]). Integers wrap; integer division
//! by zero and negative integer powers are a [`Fault`], found before anything is written.
//!
//! ```
//! use tensorfleet_math::{binary::{self, Binary, Compare, Fault}, broadcast::Broadcast, par::Serial};
//! let matrix = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let rows = Broadcast::new(&[2, 3], &[3])?;
//! let mut out = [0.0; 6];
//! binary::apply(&Serial, Binary::Add, &rows, &matrix, &[10.0, 20.0, 30.0], &mut out)?;
//! assert_eq!(out, [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
//! binary::apply_lhs(&Serial, Binary::Sub, &Broadcast::same(6), &mut out, &matrix)?;
//! assert_eq!(out, [10.0, 20.0, 30.0, 10.0, 20.0, 30.0]);
//! let mut less = [false; 6];
//! binary::compare(&Serial, Compare::Less, &Broadcast::scalar_rhs(6), &matrix, &[3.0], &mut less)?;
//! assert_eq!(less, [true, true, false, false, false, false]);
//! let zero = binary::apply(&Serial, Binary::FloorDiv, &Broadcast::same(1), &[1i32], &[0], &mut [0]);
//! assert_eq!(zero, Err(Fault::DivisionByZero));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The gradient ops are here too; their argument order is TensorFlow's: `SigmoidGrad(y, dy)`, but `ReluGrad(dy, x)`.

mod compare;
mod complex;
mod int;
mod real;
mod remainder;
mod sum;
#[cfg(test)]
mod tests;

use crate::broadcast::{Broadcast, run2, run2_lhs, run2_rhs};
use crate::num::Element;
use crate::num::isa::Over2;
use crate::par::Par;

pub use compare::{Compare, CompareElement, compare};
pub use sum::{add_n, axpy, scale};

/// An elementwise function of two inputs, named as TensorFlow's op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as TensorFlow's ops")]
pub enum Binary {
    /// `Add` and `AddV2`.
    Add,
    Atan2,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    /// `Div` and `RealDiv`; integers truncate.
    Div,
    DivNoNan,
    /// `(dy, y)`
    EluGrad,
    FloorDiv,
    FloorMod,
    LeftShift,
    LogicalAnd,
    LogicalOr,
    Maximum,
    Minimum,
    Mul,
    MulNoNan,
    Pow,
    /// `InvGrad` and `ReciprocalGrad`: `(y, dy)`
    ReciprocalGrad,
    /// `(dy, x)`
    Relu6Grad,
    /// `(dy, x)`
    ReluGrad,
    RightShift,
    /// `(y, dy)`
    RsqrtGrad,
    /// `(dy, y)`
    SeluGrad,
    /// `(y, dy)`
    SigmoidGrad,
    /// `(dy, x)`
    SoftplusGrad,
    /// `(dy, x)`
    SoftsignGrad,
    /// `(y, dy)`
    SqrtGrad,
    SquaredDifference,
    Sub,
    /// `(y, dy)`
    TanhGrad,
    TruncateDiv,
    /// `TruncateMod` and `Mod`.
    TruncateMod,
    Xdivy,
    Xlog1py,
    Xlogy,
}

impl Binary {
    /// Elements that are worth a thread of their own.
    fn grain(self) -> usize {
        use Binary::*;
        match self {
            Atan2 | Pow | FloorMod | TruncateMod | FloorDiv | TruncateDiv | Xlogy | Xlog1py
            | SoftplusGrad => 4 << 10,
            _ => 32 << 10,
        }
    }
}

/// Why an elementwise function cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An integer was divided by zero.
    DivisionByZero,
    /// An integer was raised to a negative power.
    NegativeExponent,
    /// The element type does not have the function.
    Unsupported,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::DivisionByZero => "Integer division by zero",
            Fault::NegativeExponent => "Integers to negative integer powers are not allowed",
            Fault::Unsupported => "the function is not defined for this type",
        })
    }
}

impl std::error::Error for Fault {}

/// A type with some of the [`Binary`] functions.
pub trait BinaryElement: Element {
    /// Whether `op` is defined for this type.
    fn supports(op: Binary) -> bool;

    /// Looks for values of the right input that `op` must refuse.
    #[doc(hidden)]
    fn check(_op: Binary, _y: &[Self]) -> Result<(), Fault> {
        Ok(())
    }

    /// Computes a run on this thread; all slices have the same length and `op` is supported.
    #[doc(hidden)]
    fn run(op: Binary, x: &[Self], y: &[Self], out: &mut [Self]);

    /// A loop that writes over the input on this side, which is its first argument. Without one the loop of `run` gets a copy.
    #[doc(hidden)]
    fn over(_op: Binary, _side: Side) -> Option<Over2<Self>> {
        None
    }
}

/// One of the two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Left,
    /// The second.
    Right,
}

fn admit<T: BinaryElement>(op: Binary, broadcast: &Broadcast, y: &[T]) -> Result<(), Fault> {
    if !T::supports(op) {
        return Err(Fault::Unsupported);
    }
    // No output, no division.
    if broadcast.len() == 0 {
        Ok(())
    } else {
        T::check(op, y)
    }
}

/// Writes `op(x, y)` to `out`.
///
/// # Errors
/// A [`Fault`], with `out` unchanged.
///
/// # Panics
/// If the lengths are not those of `broadcast`.
pub fn apply<T: BinaryElement>(
    par: &dyn Par,
    op: Binary,
    broadcast: &Broadcast,
    x: &[T],
    y: &[T],
    out: &mut [T],
) -> Result<(), Fault> {
    admit(op, broadcast, y)?;
    run2(par, broadcast, op.grain(), (x, y), out, |x, y, out| {
        T::run(op, x, y, out)
    });
    Ok(())
}

/// Replaces `x`, which has the output's shape, by `op(x, y)`.
///
/// # Errors
/// A [`Fault`], with `x` unchanged.
///
/// # Panics
/// If the lengths are not those of `broadcast`, or `x` is smaller than the output.
pub fn apply_lhs<T: BinaryElement>(
    par: &dyn Par,
    op: Binary,
    broadcast: &Broadcast,
    x: &mut [T],
    y: &[T],
) -> Result<(), Fault> {
    admit(op, broadcast, y)?;
    let over = T::over(op, Side::Left);
    run2_lhs(par, broadcast, op.grain(), (x, y), over, |x, y, out| {
        T::run(op, x, y, out)
    });
    Ok(())
}

/// Replaces `y`, which has the output's shape, by `op(x, y)`.
///
/// # Errors
/// A [`Fault`], with `y` unchanged.
///
/// # Panics
/// If the lengths are not those of `broadcast`, or `y` is smaller than the output.
pub fn apply_rhs<T: BinaryElement>(
    par: &dyn Par,
    op: Binary,
    broadcast: &Broadcast,
    x: &[T],
    y: &mut [T],
) -> Result<(), Fault> {
    admit(op, broadcast, y)?;
    let over = T::over(op, Side::Right);
    run2_rhs(par, broadcast, op.grain(), (x, y), over, |x, y, out| {
        T::run(op, x, y, out)
    });
    Ok(())
}
