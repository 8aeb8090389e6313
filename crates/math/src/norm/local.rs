//! Local response normalisation: each element by the squares of its neighbours along the channels.

use super::element::NormElement;
use super::sums::BLOCK;
use crate::num::isa::{Isa, multiversion};
use crate::num::lanes;
use crate::par::{Par, rows_mut};

/// The attributes of `LRN`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's attributes")]
pub struct Lrn {
    pub depth_radius: usize,
    pub bias: f32,
    pub alpha: f32,
    pub beta: f32,
}

/// Writes `x / (bias + alpha·Σ x²)^beta`, the sum going over the channels up to `depth_radius` away.
///
/// # Panics
/// If the slices differ in length or are not whole pixels of `channels`.
pub fn lrn<T: NormElement>(par: &dyn Par, lrn: Lrn, channels: usize, x: &[T], out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "output");
    for_pixels(par, channels, out, |range, out| {
        let mut scratch = Scratch::new(&lrn, channels);
        let (mut wide_x, mut wide_out) = (Vec::new(), Vec::new());
        let x = T::view(&x[range], &mut wide_x);
        T::write(out, &mut wide_out, |out| {
            for (x, out) in x.chunks_exact(channels).zip(out.chunks_exact_mut(channels)) {
                forward(&lrn, x, &mut scratch, out);
            }
        });
    });
}

/// Writes the gradient of [`lrn`] for its input, from its output's gradient, its input and its output.
///
/// # Panics
/// As [`lrn`].
pub fn lrn_grad<T: NormElement>(
    par: &dyn Par,
    lrn: Lrn,
    channels: usize,
    (grad, x, y): (&[T], &[T], &[T]),
    out: &mut [T],
) {
    assert!(
        [grad.len(), x.len(), y.len()] == [out.len(); 3],
        "lengths differ"
    );
    for_pixels(par, channels, out, |range, out| {
        let mut scratch = Scratch::new(&lrn, channels);
        let mut buffers = [const { Vec::new() }; 4];
        let [wide_grad, wide_x, wide_y, wide_out] = &mut buffers;
        let grad = T::view(&grad[range.clone()], wide_grad);
        let x = T::view(&x[range.clone()], wide_x);
        let y = T::view(&y[range], wide_y);
        T::write(out, wide_out, |out| {
            for (i, out) in out.chunks_exact_mut(channels).enumerate() {
                let pixel = i * channels..(i + 1) * channels;
                let inputs = [&grad[pixel.clone()], &x[pixel.clone()], &y[pixel]];
                backward(&lrn, inputs, &mut scratch, out);
            }
        });
    });
}

fn for_pixels<T: Send>(
    par: &dyn Par,
    channels: usize,
    out: &mut [T],
    body: impl Fn(std::ops::Range<usize>, &mut [T]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let grain = (BLOCK / 4).div_ceil(channels);
    rows_mut(par, out, channels, grain, |first, out| {
        let begin = first * channels;
        body(begin..begin + out.len(), out);
    });
}

/// Room for the channels of one pixel.
struct Scratch {
    /// How far neighbours may be.
    radius: usize,
    /// With as many zeros before and behind, so that no sum ends at the edge.
    terms: Vec<f32>,
    norms: Vec<f32>,
    sums: Vec<f32>,
}

impl Scratch {
    fn new(lrn: &Lrn, channels: usize) -> Self {
        let radius = lrn.depth_radius.min(channels.saturating_sub(1));
        Self {
            radius,
            terms: vec![0.0; channels + 2 * radius],
            norms: vec![0.0; channels],
            sums: vec![0.0; channels],
        }
    }
}

/// Adds up `terms`, which has `radius` zeros before and behind, within `radius` of each position.
#[inline(always)]
fn neighbours(terms: &[f32], radius: usize, sums: &mut [f32]) {
    sums.copy_from_slice(&terms[radius..radius + sums.len()]);
    for distance in 1..=radius {
        let (before, behind) = (&terms[radius - distance..], &terms[radius + distance..]);
        for ((sum, before), behind) in sums.iter_mut().zip(before).zip(behind) {
            *sum = *sum + before + behind;
        }
    }
}

/// Writes `bias + alpha·Σ x²` for each channel.
#[inline(always)]
fn norms(lrn: &Lrn, x: &[f32], scratch: &mut Scratch) {
    for (term, &x) in scratch.terms[scratch.radius..].iter_mut().zip(x) {
        *term = x * x;
    }
    neighbours(&scratch.terms, scratch.radius, &mut scratch.norms);
    for norm in &mut scratch.norms {
        *norm = lrn.bias + lrn.alpha * *norm;
    }
}

/// `norm` to the power of `-beta`.
#[inline(always)]
fn power<I: Isa>(norm: f32, beta: f32) -> f32 {
    if beta == 1.0 {
        1.0 / norm
    } else if beta == 0.5 {
        1.0 / norm.sqrt()
    } else {
        lanes::exp::<I>(-beta * lanes::log::<I>(norm))
    }
}

multiversion! {
    fn forward(lrn: &Lrn, x: &[f32], scratch: &mut Scratch, out: &mut [f32]) = forward_body with isa;
}

#[inline(always)]
fn forward_body<I: Isa>(lrn: &Lrn, x: &[f32], scratch: &mut Scratch, out: &mut [f32]) {
    norms(lrn, x, scratch);
    for ((out, &x), &norm) in out.iter_mut().zip(x).zip(&scratch.norms) {
        *out = x * power::<I>(norm, lrn.beta);
    }
}

multiversion! {
    fn backward(lrn: &Lrn, inputs: [&[f32]; 3], scratch: &mut Scratch, out: &mut [f32]) = backward_body with isa;
}

/// `grad·norm^-beta - 2·alpha·beta·x·Σ grad·y/norm`, the sum going over the neighbours that see this element.
#[inline(always)]
fn backward_body<I: Isa>(
    lrn: &Lrn,
    [grad, x, y]: [&[f32]; 3],
    scratch: &mut Scratch,
    out: &mut [f32],
) {
    norms(lrn, x, scratch);
    let Scratch {
        radius,
        terms,
        norms,
        sums,
    } = scratch;
    let inner = terms[*radius..].iter_mut();
    for (((term, &grad), &y), &norm) in inner.zip(grad).zip(y).zip(&*norms) {
        *term = grad * y / norm;
    }
    neighbours(terms, *radius, sums);
    let slope = -2.0 * lrn.alpha * lrn.beta;
    for i in 0..out.len() {
        out[i] = grad[i] * power::<I>(norms[i], lrn.beta) + slope * x[i] * sums[i];
    }
}
