//! GRU cells.

use super::Sizes;
use crate::num::isa::{Isa, multiversion};
use crate::num::lanes::{sigmoid, tanh};
use crate::par::Par;

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
    let rows = gates
        .chunks_exact(2 * units.max(1))
        .zip(h_prev.chunks_exact(units.max(1)));
    let out = r
        .chunks_exact_mut(units.max(1))
        .zip(u.chunks_exact_mut(units.max(1)));
    for (((gates, h), out), kept) in rows.zip(out).zip(kept.chunks_exact_mut(units.max(1))) {
        gates_row(gates, h, out, kept);
    }
    sizes.gates(par, 1, (x, &kept), (weights.w_c, weights.b_c), c);
    mix(u, h_prev, c, h);
}

multiversion! {
    fn gates_row(gates: &[f32], h: &[f32], out: (&mut [f32], &mut [f32]), kept: &mut [f32]) =
        gates_row_body with isa;
}

/// Reset and update gates of one row, and what the reset gate keeps.
#[inline(always)]
fn gates_row_body<I: Isa>(
    gates: &[f32],
    h: &[f32],
    (r, u): (&mut [f32], &mut [f32]),
    kept: &mut [f32],
) {
    let (for_r, for_u) = gates.split_at(h.len());
    for ((r, x), (kept, h)) in r.iter_mut().zip(for_r).zip(kept.iter_mut().zip(h)) {
        *r = sigmoid::<I>(*x);
        *kept = h * *r;
    }
    for (u, x) in u.iter_mut().zip(for_u) {
        *u = sigmoid::<I>(*x);
    }
}

multiversion! {
    fn mix(u: &[f32], h_prev: &[f32], c: &mut [f32], h: &mut [f32]) = mix_body with isa;
}

/// The candidate, and the output between it and the output before.
#[inline(always)]
fn mix_body<I: Isa>(u: &[f32], h_prev: &[f32], c: &mut [f32], h: &mut [f32]) {
    for ((h, c), (u, h_prev)) in h.iter_mut().zip(c).zip(u.iter().zip(h_prev)) {
        *c = tanh::<I>(*c);
        *h = u * h_prev + (1.0 - u) * *c;
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
