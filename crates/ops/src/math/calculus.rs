//! The arithmetic that gradient rules are written in.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

/// Shorthands for the nodes that derivatives are made of.
pub(crate) trait Calculus {
    /// `a + b`.
    fn add(&mut self, a: Output, b: Output) -> Result<Output>;
    /// `a - b`.
    fn sub(&mut self, a: Output, b: Output) -> Result<Output>;
    /// `a * b`.
    fn mul(&mut self, a: Output, b: Output) -> Result<Output>;
    /// `a / b`.
    fn div(&mut self, a: Output, b: Output) -> Result<Output>;
    /// `op(x)`.
    fn f(&mut self, op: &str, x: Output) -> Result<Output>;
    /// `-x`.
    fn neg(&mut self, x: Output) -> Result<Output>;
    /// `factor * x`.
    fn scaled(&mut self, x: Output, factor: f64) -> Result<Output>;
    /// `x + term`.
    fn plus(&mut self, x: Output, term: f64) -> Result<Output>;
    /// The complex conjugate; a real tensor as it is.
    fn conj(&mut self, x: Output) -> Result<Output>;
    /// The conjugate of input `index`.
    fn conj_input(&mut self, index: usize) -> Result<Output>;
    /// The conjugate of the output.
    fn conj_output(&mut self) -> Result<Output>;
    /// The chain rule for the only input: the incoming gradient times `derivative`.
    fn chain(&mut self, derivative: Output) -> Result<InputGrads>;
}

impl Calculus for GradCtx<'_> {
    fn add(&mut self, a: Output, b: Output) -> Result<Output> {
        self.apply("AddV2", &[a, b])
    }

    fn sub(&mut self, a: Output, b: Output) -> Result<Output> {
        self.apply("Sub", &[a, b])
    }

    fn mul(&mut self, a: Output, b: Output) -> Result<Output> {
        self.apply("Mul", &[a, b])
    }

    fn div(&mut self, a: Output, b: Output) -> Result<Output> {
        self.apply("RealDiv", &[a, b])
    }

    fn f(&mut self, op: &str, x: Output) -> Result<Output> {
        self.apply(op, &[x])
    }

    fn neg(&mut self, x: Output) -> Result<Output> {
        self.apply("Neg", &[x])
    }

    fn scaled(&mut self, x: Output, factor: f64) -> Result<Output> {
        let factor = self.constant(factor, self.dtype(x))?;
        self.mul(x, factor)
    }

    fn plus(&mut self, x: Output, term: f64) -> Result<Output> {
        let term = self.constant(term, self.dtype(x))?;
        self.add(x, term)
    }

    fn conj(&mut self, x: Output) -> Result<Output> {
        match self.dtype(x) {
            DType::C64 | DType::C128 => self.apply("Conj", &[x]),
            _ => Ok(x),
        }
    }

    fn conj_input(&mut self, index: usize) -> Result<Output> {
        self.conj(self.input(index))
    }

    fn conj_output(&mut self) -> Result<Output> {
        self.conj(self.output(0))
    }

    fn chain(&mut self, derivative: Output) -> Result<InputGrads> {
        let grad = self.grad(0)?;
        dense(self.mul(grad, derivative)?)
    }
}

/// Dense gradients for both inputs of an op that does not broadcast.
pub(crate) fn both(first: Output, second: Output) -> Result<InputGrads> {
    Ok(vec![Some(Grad::Dense(first)), Some(Grad::Dense(second))])
}

/// A dense gradient for the first of `count` inputs; nothing flows to the others.
pub(crate) fn first_of(count: usize, grad: Output) -> Result<InputGrads> {
    let mut grads = vec![None; count];
    if let Some(slot) = grads.first_mut() {
        *slot = Some(Grad::Dense(grad));
    }
    Ok(grads)
}
