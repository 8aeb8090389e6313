//! Cells of recurrent networks, one step at a time, in single precision: LSTM with or without peepholes, and GRU.
//!
//! All tensors are matrices `[batch, …]` one after the other; weights are `[inputs + units, gates · units]`.

use crate::gemm::{Dims, Epilogue, Operand, gemm};
use crate::par::Par;

/// Sizes of a cell.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Sizes {
    pub batch: usize,
    pub inputs: usize,
    pub units: usize,
}

/// `1 / (1 + e^-x)`.
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

impl Sizes {
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

/// An LSTM cell.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    /// Its sizes.
    pub sizes: Sizes,
    /// Added to the forget gate.
    pub forget_bias: f32,
    /// The state is kept within this; none if not positive.
    pub cell_clip: f32,
    /// Whether gates see the state.
    pub use_peephole: bool,
    /// The gates come as input, forget, cell, output; else as input, cell, forget, output.
    pub forget_second: bool,
}

/// Weights and bias of an LSTM cell, named as the op's inputs.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct LstmWeights<'a> {
    pub w: &'a [f32],
    pub wci: &'a [f32],
    pub wcf: &'a [f32],
    pub wco: &'a [f32],
    pub b: &'a [f32],
}

/// What a step of an LSTM computes, named as the op's outputs.
#[expect(missing_docs, reason = "named as the op's outputs")]
pub struct LstmStep<S> {
    pub i: S,
    pub cs: S,
    pub f: S,
    pub o: S,
    pub ci: S,
    pub co: S,
    pub h: S,
}

/// The gradients of an LSTM's peepholes, to which each step adds.
#[expect(missing_docs, reason = "named as the op's outputs")]
pub struct PeepholeGrads<'a> {
    pub wci: &'a mut [f32],
    pub wcf: &'a mut [f32],
    pub wco: &'a mut [f32],
}

impl Lstm {
    /// Where the gates of cell and forget begin in a row.
    fn columns(&self) -> (usize, usize) {
        let units = self.sizes.units;
        if self.forget_second {
            (2 * units, units)
        } else {
            (units, 2 * units)
        }
    }

    /// One step.
    ///
    /// # Panics
    /// If a slice has another length than the sizes say.
    pub fn forward(
        &self,
        par: &dyn Par,
        (x, cs_prev, h_prev): (&[f32], &[f32], &[f32]),
        weights: &LstmWeights<'_>,
        out: LstmStep<&mut [f32]>,
    ) {
        let units = self.sizes.units;
        let mut gates = vec![0.0; self.sizes.batch * 4 * units];
        let (w, b) = (weights.w, weights.b);
        self.sizes.gates(par, 4, (x, h_prev), (w, b), &mut gates);
        let (cell, forget) = self.columns();
        let peep = |weights: &[f32], unit: usize, state: f32| {
            if self.use_peephole {
                weights[unit] * state
            } else {
                0.0
            }
        };
        for at in 0..self.sizes.batch * units {
            let unit = at % units;
            let gates = &gates[at / units * 4 * units + unit..];
            let before = cs_prev[at];
            let i = sigmoid(gates[0] + peep(weights.wci, unit, before));
            let ci = gates[cell].tanh();
            let f = sigmoid(gates[forget] + self.forget_bias + peep(weights.wcf, unit, before));
            let mut cs = i * ci + f * before;
            if self.cell_clip > 0.0 {
                cs = cs.clamp(-self.cell_clip, self.cell_clip);
            }
            let co = cs.tanh();
            let o = sigmoid(gates[3 * units] + peep(weights.wco, unit, cs));
            (out.i[at], out.cs[at], out.f[at], out.o[at]) = (i, cs, f, o);
            (out.ci[at], out.co[at], out.h[at]) = (ci, co, o * co);
        }
    }

    /// The gradients of the gates and of the state before, from those of the state and the output.
    ///
    /// # Panics
    /// If a slice has another length than the sizes say.
    pub fn backward(
        &self,
        cs_prev: &[f32],
        weights: &LstmWeights<'_>,
        step: &LstmStep<&[f32]>,
        (cs_grad, h_grad): (&[f32], &[f32]),
        (gates, cs_prev_grad): (&mut [f32], &mut [f32]),
        peepholes: &mut PeepholeGrads<'_>,
    ) {
        let units = self.sizes.units;
        let (cell, forget) = self.columns();
        for at in 0..self.sizes.batch * units {
            let unit = at % units;
            let (i, f, o) = (step.i[at], step.f[at], step.o[at]);
            let (ci, co, before) = (step.ci[at], step.co[at], cs_prev[at]);
            let d_o = o * (1.0 - o) * h_grad[at] * co;
            let mut d_cs = (1.0 - co * co) * h_grad[at] * o + cs_grad[at];
            if self.use_peephole {
                d_cs += d_o * weights.wco[unit];
            }
            let d_ci = (1.0 - ci * ci) * d_cs * i;
            let d_f = f * (1.0 - f) * d_cs * before;
            let d_i = i * (1.0 - i) * d_cs * ci;
            let gates = &mut gates[at / units * 4 * units + unit..];
            (gates[0], gates[cell]) = (d_i, d_ci);
            (gates[forget], gates[3 * units]) = (d_f, d_o);
            cs_prev_grad[at] = d_cs * f;
            if self.use_peephole {
                cs_prev_grad[at] += d_i * weights.wci[unit] + d_f * weights.wcf[unit];
                peepholes.wci[unit] += d_i * before;
                peepholes.wcf[unit] += d_f * before;
                peepholes.wco[unit] += d_o * step.cs[at];
            }
        }
    }

    /// The gradients of input and output before from those of the gates, and what they add to those of weights and bias.
    ///
    /// # Panics
    /// If a slice has another length than the sizes say.
    pub fn backward_weights(
        &self,
        par: &dyn Par,
        (x, h_prev): (&[f32], &[f32]),
        (gates, w): (&[f32], &[f32]),
        (x_grad, h_grad): (&mut [f32], &mut [f32]),
        (w_grad, b_grad): (&mut [f32], &mut [f32]),
    ) {
        let Sizes {
            batch,
            inputs,
            units,
        } = self.sizes;
        self.sizes.back(par, 4, gates, w, (x_grad, h_grad));
        let n = 4 * units;
        let (to_x, to_h) = w_grad.split_at_mut(inputs * n);
        for (data, m, out) in [(x, inputs, to_x), (h_prev, units, to_h)] {
            let dims = Dims { m, n, k: batch };
            let (a, b) = (Operand::transposed(data, m), Operand::new(gates, n));
            gemm(par, dims, 1.0, a, b, 1.0, out, n, Epilogue::None);
        }
        for row in gates.chunks_exact(n) {
            for (sum, gate) in b_grad.iter_mut().zip(row) {
                *sum += gate;
            }
        }
    }
}

/// Weights and biases of a GRU cell, named as the op's inputs.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "named as the op's inputs")]
pub struct GruWeights<'a> {
    pub w_ru: &'a [f32],
    pub w_c: &'a [f32],
    pub b_ru: &'a [f32],
    pub b_c: &'a [f32],
}

/// One step of a GRU: writes reset and update gates, candidate and output.
///
/// # Panics
/// If a slice has another length than the sizes say.
pub fn gru(
    par: &dyn Par,
    sizes: &Sizes,
    (x, h_prev): (&[f32], &[f32]),
    weights: &GruWeights<'_>,
    [r, u, c, h]: [&mut [f32]; 4],
) {
    let units = sizes.units;
    let mut gates = vec![0.0; sizes.batch * 2 * units];
    let ru = (weights.w_ru, weights.b_ru);
    sizes.gates(par, 2, (x, h_prev), ru, &mut gates);
    let mut kept = vec![0.0; h_prev.len()];
    for at in 0..h_prev.len() {
        let gates = &gates[at / units * 2 * units + at % units..];
        (r[at], u[at]) = (sigmoid(gates[0]), sigmoid(gates[units]));
        kept[at] = h_prev[at] * r[at];
    }
    sizes.gates(par, 1, (x, &kept), (weights.w_c, weights.b_c), c);
    for at in 0..h_prev.len() {
        c[at] = c[at].tanh();
        h[at] = u[at] * h_prev[at] + (1.0 - u[at]) * c[at];
    }
}

/// The gradients of a step of a GRU: of the input, the output before, and of candidate and gates before their functions.
///
/// # Panics
/// If a slice has another length than the sizes say.
pub fn gru_grad(
    par: &dyn Par,
    sizes: &Sizes,
    h_prev: &[f32],
    weights: &GruWeights<'_>,
    [r, u, c, d_h]: [&[f32]; 4],
    [d_x, d_h_prev, d_c_bar, d_ru_bar]: [&mut [f32]; 4],
) {
    let units = sizes.units;
    for at in 0..d_h.len() {
        d_c_bar[at] = d_h[at] * (1.0 - u[at]) * (1.0 - c[at] * c[at]);
    }
    let (mut from_c, mut d_kept) = (vec![0.0; d_x.len()], vec![0.0; d_h.len()]);
    sizes.back(par, 1, d_c_bar, weights.w_c, (&mut from_c, &mut d_kept));
    for at in 0..d_h.len() {
        let gates = &mut d_ru_bar[at / units * 2 * units + at % units..];
        gates[0] = d_kept[at] * h_prev[at] * r[at] * (1.0 - r[at]);
        gates[units] = d_h[at] * (h_prev[at] - c[at]) * u[at] * (1.0 - u[at]);
    }
    sizes.back(par, 2, d_ru_bar, weights.w_ru, (d_x, d_h_prev));
    for (x, from_c) in d_x.iter_mut().zip(from_c) {
        *x += from_c;
    }
    for at in 0..d_h.len() {
        d_h_prev[at] += d_kept[at] * r[at] + d_h[at] * u[at];
    }
}
