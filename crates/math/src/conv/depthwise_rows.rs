//! The inner loops of depthwise convolutions: a row of pixels, vectors along the channels.

use crate::gemm::Element;
use crate::num::isa::multiversion;

/// Pixels that share the loads of a tap's weights.
const PIXELS: usize = 4;
/// Taps that share the loads of a gradient.
const TAPS: usize = 4;

/// The taps of one output row: where the first pixel's input begins, and where the weights do.
pub(super) struct Taps {
    from: Vec<(usize, usize)>,
    /// Elements from one pixel's input to the next one's.
    step: usize,
    /// Elements from one output pixel to the next.
    out_step: usize,
}

impl Taps {
    pub(super) fn new(step: usize, out_step: usize) -> Self {
        Self {
            from: Vec::new(),
            step,
            out_step,
        }
    }

    pub(super) fn push(&mut self, input: usize, weights: usize) {
        self.from.push((input, weights));
    }
}

multiversion! {
    /// `out[i·out_step + c] = Σ_taps input[tap + i·step + c] · filter[weights + c]` for all pixels `i` that begin in `out`.
    pub(super) fn row<T: Element>(input: &[T], filter: &[T], taps: &Taps, channels: usize, out: &mut [T]) = row_body;
}

multiversion! {
    /// `sum[t·channels + c] += Σ_i input[i·steps[0] + t·steps[1] + c] · grad[i·channels + c]`.
    pub(super) fn filter_row<T: Element>(input: &[T], grad: &[T], steps: [usize; 2], channels: usize, sum: &mut [T]) = filter_row_body;
}

/// Channels taken at once of `rest` channels.
#[inline(always)]
fn lanes(rest: usize) -> usize {
    match rest {
        16.. => 16,
        8.. => 8,
        4.. => 4,
        _ => 1,
    }
}

#[inline(always)]
fn row_body<T: Element>(input: &[T], filter: &[T], taps: &Taps, channels: usize, out: &mut [T]) {
    // The last pixel need not have `out_step` elements.
    let pixels = (out.len() + taps.out_step - channels) / taps.out_step;
    for first in (0..pixels).step_by(PIXELS) {
        let count = PIXELS.min(pixels - first);
        let mut at = 0;
        while at < channels {
            let lanes = lanes(channels - at);
            match lanes {
                16 => group::<T, 16>(input, filter, taps, (first, count), at, out),
                8 => group::<T, 8>(input, filter, taps, (first, count), at, out),
                4 => group::<T, 4>(input, filter, taps, (first, count), at, out),
                _ => group::<T, 1>(input, filter, taps, (first, count), at, out),
            }
            at += lanes;
        }
    }
}

/// A few pixels, `L` channels from `at` on.
#[inline(always)]
fn group<T: Element, const L: usize>(
    input: &[T],
    filter: &[T],
    taps: &Taps,
    (first, count): (usize, usize),
    at: usize,
    out: &mut [T],
) {
    if count == PIXELS {
        return block::<T, L, PIXELS>(input, filter, taps, first, at, out);
    }
    for i in first..first + count {
        block::<T, L, 1>(input, filter, taps, i, at, out);
    }
}

/// `N` pixels from `first` on, `L` channels from `at` on.
#[inline(always)]
fn block<T: Element, const L: usize, const N: usize>(
    input: &[T],
    filter: &[T],
    taps: &Taps,
    first: usize,
    at: usize,
    out: &mut [T],
) {
    let mut acc = [[T::ZERO; L]; N];
    for &(begin, weights) in &taps.from {
        let weights: &[T; L] = run(filter, weights + at);
        for (i, acc) in acc.iter_mut().enumerate() {
            let x: &[T; L] = run(input, begin + (first + i) * taps.step + at);
            for l in 0..L {
                acc[l] = acc[l].plus(x[l].times(weights[l]));
            }
        }
    }
    for (i, acc) in acc.iter().enumerate() {
        out[(first + i) * taps.out_step + at..][..L].copy_from_slice(acc);
    }
}

#[inline(always)]
fn filter_row_body<T: Element>(
    input: &[T],
    grad: &[T],
    steps: [usize; 2],
    channels: usize,
    sum: &mut [T],
) {
    let taps = sum.len() / channels;
    for first in (0..taps).step_by(TAPS) {
        let count = TAPS.min(taps - first);
        let mut at = 0;
        while at < channels {
            let lanes = lanes(channels - at);
            match lanes {
                16 => filter_group::<T, 16>(input, grad, steps, channels, (first, count), at, sum),
                8 => filter_group::<T, 8>(input, grad, steps, channels, (first, count), at, sum),
                4 => filter_group::<T, 4>(input, grad, steps, channels, (first, count), at, sum),
                _ => filter_group::<T, 1>(input, grad, steps, channels, (first, count), at, sum),
            }
            at += lanes;
        }
    }
}

/// A few taps, `L` channels from `at` on.
#[inline(always)]
fn filter_group<T: Element, const L: usize>(
    input: &[T],
    grad: &[T],
    steps: [usize; 2],
    channels: usize,
    (first, count): (usize, usize),
    at: usize,
    sum: &mut [T],
) {
    match count {
        1 => filter_block::<T, L, 1>(input, grad, steps, channels, (first, at), sum),
        2 => filter_block::<T, L, 2>(input, grad, steps, channels, (first, at), sum),
        3 => filter_block::<T, L, 3>(input, grad, steps, channels, (first, at), sum),
        _ => filter_block::<T, L, TAPS>(input, grad, steps, channels, (first, at), sum),
    }
}

/// `N` taps from `first` on, `L` channels from `at` on.
#[inline(always)]
fn filter_block<T: Element, const L: usize, const N: usize>(
    input: &[T],
    grad: &[T],
    steps: [usize; 2],
    channels: usize,
    (first, at): (usize, usize),
    sum: &mut [T],
) {
    let mut acc = [[T::ZERO; L]; N];
    for i in 0..grad.len() / channels {
        let g: &[T; L] = run(grad, i * channels + at);
        for (t, acc) in acc.iter_mut().enumerate() {
            let x: &[T; L] = run(input, i * steps[0] + (first + t) * steps[1] + at);
            for l in 0..L {
                acc[l] = acc[l].plus(x[l].times(g[l]));
            }
        }
    }
    for (t, acc) in acc.iter().enumerate() {
        for (to, &x) in sum[(first + t) * channels + at..][..L].iter_mut().zip(acc) {
            *to = to.plus(x);
        }
    }
}

#[inline(always)]
fn run<T, const L: usize>(data: &[T], at: usize) -> &[T; L] {
    match data[at..].first_chunk() {
        Some(run) => run,
        None => panic!("a run of {L} at {at} of {}", data.len()),
    }
}
