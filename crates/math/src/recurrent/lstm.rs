//! LSTM cells.

use super::Sizes;
use crate::disjoint::Disjoint;
use crate::gemm::{Dims, Epilogue, Operand, gemm};
use crate::num::isa::{Isa, multiversion};
use crate::num::lanes::{sigmoid, tanh};
use crate::par::Par;

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
        let Sizes { batch, units, .. } = self.sizes;
        let mut gates = vec![0.0; batch * 4 * units];
        let (w, b) = (weights.w, weights.b);
        self.sizes.gates(par, 4, (x, h_prev), (w, b), &mut gates);
        let LstmStep {
            i,
            cs,
            f,
            o,
            ci,
            co,
            h,
        } = out;
        let out = [i, cs, f, o, ci, co, h].map(Disjoint::new);
        par.for_each(batch, self.sizes.grain(), &|rows| {
            for row in rows {
                // SAFETY: each row is one thread's, by `Par`.
                let of = |which: usize| unsafe { out[which].slice(row * units, units) };
                let before = &cs_prev[row * units..][..units];
                let gates = &gates[row * 4 * units..][..4 * units];
                let step = LstmStep {
                    i: of(0),
                    cs: of(1),
                    f: of(2),
                    o: of(3),
                    ci: of(4),
                    co: of(5),
                    h: of(6),
                };
                forward_row(self, weights, gates, before, step);
            }
        });
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

multiversion! {
    fn forward_row(
        cell: &Lstm,
        weights: &LstmWeights<'_>,
        gates: &[f32],
        before: &[f32],
        out: LstmStep<&mut [f32]>,
    ) = forward_row_body with isa;
}

/// One row of a batch, gate by gate: so each loop is a plain one over slices.
#[inline(always)]
fn forward_row_body<I: Isa>(
    cell: &Lstm,
    weights: &LstmWeights<'_>,
    gates: &[f32],
    before: &[f32],
    out: LstmStep<&mut [f32]>,
) {
    let units = before.len();
    let gate = |first: usize| &gates[first..][..units];
    let (candidate, forget) = cell.columns();
    let peep = |weights: &[f32], state: &[f32], gate: &mut [f32]| {
        if cell.use_peephole {
            for ((gate, weight), state) in gate.iter_mut().zip(weights).zip(state) {
                *gate += weight * state;
            }
        }
    };
    out.i.copy_from_slice(gate(0));
    peep(weights.wci, before, out.i);
    out.i.iter_mut().for_each(|x| *x = sigmoid::<I>(*x));
    for (ci, x) in out.ci.iter_mut().zip(gate(candidate)) {
        *ci = tanh::<I>(*x);
    }
    for (f, x) in out.f.iter_mut().zip(gate(forget)) {
        *f = x + cell.forget_bias;
    }
    peep(weights.wcf, before, out.f);
    out.f.iter_mut().for_each(|x| *x = sigmoid::<I>(*x));
    let (i, ci, f) = (&out.i[..units], &out.ci[..units], &out.f[..units]);
    for (unit, cs) in out.cs.iter_mut().enumerate() {
        *cs = i[unit] * ci[unit] + f[unit] * before[unit];
    }
    if cell.cell_clip > 0.0 {
        let clip = cell.cell_clip;
        out.cs.iter_mut().for_each(|cs| *cs = cs.clamp(-clip, clip));
    }
    for (co, cs) in out.co.iter_mut().zip(&*out.cs) {
        *co = tanh::<I>(*cs);
    }
    out.o.copy_from_slice(gate(3 * units));
    peep(weights.wco, out.cs, out.o);
    out.o.iter_mut().for_each(|x| *x = sigmoid::<I>(*x));
    for ((h, o), co) in out.h.iter_mut().zip(&*out.o).zip(&*out.co) {
        *h = o * co;
    }
}
