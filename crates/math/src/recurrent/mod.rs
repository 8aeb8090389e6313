//! Cells of recurrent networks, one step at a time, in single precision: LSTM with or without peepholes, and GRU.
//!
//! All tensors are matrices `[batch, …]` one after the other; weights are `[inputs + units, gates · units]`.

mod gru;
mod lstm;

use crate::gemm::{Dims, Epilogue, Operand, gemm};
use crate::par::Par;

pub use gru::{GruWeights, gru, gru_grad};
pub use lstm::{Lstm, LstmStep, LstmWeights, PeepholeGrads};

/// Elements of a gate that a thread computes at least.
const GRAIN: usize = 1024;

/// Sizes of a cell.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Sizes {
    pub batch: usize,
    pub inputs: usize,
    pub units: usize,
}

impl Sizes {
    /// Rows of the batch that a thread computes at least.
    fn grain(&self) -> usize {
        GRAIN.div_ceil(self.units.max(1))
    }

    /// `out = [x, h] · w`, with `gates` times as many columns as units, and the bias added.
    fn gates(
        &self,
        par: &dyn Par,
        gates: usize,
        (x, h): (&[f32], &[f32]),
        (w, b): (&[f32], &[f32]),
        out: &mut [f32],
    ) {
        let n = gates * self.units;
        let (from_x, from_h) = w.split_at(self.inputs * n);
        for (part, (data, weights, k)) in [(x, from_x, self.inputs), (h, from_h, self.units)]
            .into_iter()
            .enumerate()
        {
            let dims = Dims {
                m: self.batch,
                n,
                k,
            };
            let (a, w) = (Operand::new(data, k), Operand::new(weights, n));
            let epilogue = if part == 1 {
                Epilogue::Bias(b)
            } else {
                Epilogue::None
            };
            gemm(par, dims, 1.0, a, w, part as f32, out, n, epilogue);
        }
    }

    /// The gradients of `x` and `h`: `grad · wᵀ`.
    fn back(
        &self,
        par: &dyn Par,
        gates: usize,
        grad: &[f32],
        w: &[f32],
        (x, h): (&mut [f32], &mut [f32]),
    ) {
        let k = gates * self.units;
        let (from_x, from_h) = w.split_at(self.inputs * k);
        for (weights, n, out) in [(from_x, self.inputs, x), (from_h, self.units, h)] {
            let dims = Dims {
                m: self.batch,
                n,
                k,
            };
            let (a, w) = (Operand::new(grad, k), Operand::transposed(weights, k));
            gemm(par, dims, 1.0, a, w, 0.0, out, n, Epilogue::None);
        }
    }
}
