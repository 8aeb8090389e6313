//! Elementwise functions of one input: [`apply`] and [`apply_in_place`] with a [`Unary`] op, predicates, complex parts.
//!
//! ```
//! use tensorfleet_math::{par::Serial, unary::{self, Unary}};
//! let mut y = [0.0f32; 2];
//! unary::apply(&Serial, Unary::Exp, &[0.0, 1.0], &mut y)?;
//! unary::apply_in_place(&Serial, Unary::Log, &mut y)?;
//! assert_eq!(y, [0.0, 1.0]);
//! # Ok::<(), tensorfleet_math::binary::Fault>(())
//! ```
//!
//! Gradients that TensorFlow has as ops (`SigmoidGrad`, `ReluGrad`, …) take two inputs and stand in [`crate::binary`];
//! functions with a parameter (`LeakyRelu`) in [`crate::activation`].

mod complex;
mod int;
mod parts;
mod real;
#[cfg(target_arch = "x86_64")]
mod rsqrt;
#[cfg(test)]
mod tests;

use crate::binary::Fault;
use crate::broadcast::{BLOCK, with_block};
use crate::num::Element;
use crate::par::{Par, chunks_mut};

pub use parts::{ComplexOf, ComplexPart, Predicate, complex_part, predicate};
pub(crate) use real::{SELU_ALPHA, SELU_SCALE};

/// An elementwise function, named as TensorFlow's op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as TensorFlow's ops")]
pub enum Unary {
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Conj,
    Cos,
    Cosh,
    Digamma,
    Elu,
    Erf,
    Erfc,
    Erfinv,
    Exp,
    Expm1,
    Floor,
    /// Bitwise not.
    Invert,
    Lgamma,
    Log,
    Log1p,
    LogicalNot,
    Ndtri,
    Neg,
    /// 1 / x: `Inv` and `Reciprocal`.
    Reciprocal,
    Relu,
    Relu6,
    /// Half to even: `Round` and `Rint`.
    Round,
    Rsqrt,
    Selu,
    Sigmoid,
    Sign,
    Sin,
    Sinh,
    Softplus,
    Softsign,
    Sqrt,
    Square,
    Tan,
    Tanh,
}

impl Unary {
    /// Elements that are worth a thread of their own.
    fn grain(self) -> usize {
        use Unary::*;
        match self {
            Abs | Ceil | Conj | Floor | Invert | LogicalNot | Neg | Relu | Relu6 | Round | Sign
            | Square => 32 << 10,
            Digamma | Erfinv | Lgamma | Ndtri => 1 << 10,
            _ => 8 << 10,
        }
    }
}

/// A type with some of the [`Unary`] functions.
pub trait UnaryElement: Element {
    /// Whether `op` is defined for this type, as it is for TensorFlow's CPU kernels.
    fn supports(op: Unary) -> bool;

    /// Computes a run on this thread; `x` and `out` have the same length and `op` is supported.
    #[doc(hidden)]
    fn run(op: Unary, x: &[Self], out: &mut [Self]);
}

/// Writes `op(x)` to `out`.
///
/// # Errors
/// [`Fault::Unsupported`] if the type has no such function.
///
/// # Panics
/// If the lengths differ.
pub fn apply<T: UnaryElement>(
    par: &dyn Par,
    op: Unary,
    x: &[T],
    out: &mut [T],
) -> Result<(), Fault> {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    if !T::supports(op) {
        return Err(Fault::Unsupported);
    }
    chunks_mut(par, out, op.grain(), |offset, out| {
        T::run(op, &x[offset..offset + out.len()], out)
    });
    Ok(())
}

/// Replaces `x` by `op(x)`.
///
/// # Errors
/// [`Fault::Unsupported`] if the type has no such function.
pub fn apply_in_place<T: UnaryElement>(par: &dyn Par, op: Unary, x: &mut [T]) -> Result<(), Fault> {
    if !T::supports(op) {
        return Err(Fault::Unsupported);
    }
    chunks_mut(par, x, op.grain(), |_, x| {
        with_block(x.len(), |buffer| {
            for block in x.chunks_mut(BLOCK) {
                let copy = &mut buffer[..block.len()];
                copy.copy_from_slice(block);
                T::run(op, copy, block);
            }
        });
    });
    Ok(())
}
