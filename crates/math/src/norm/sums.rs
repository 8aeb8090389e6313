//! Sums over all elements of each channel.

use super::element::NormElement;
use crate::num::isa::multiversion;
use crate::par::{Par, rows_mut};

/// Elements per block of rows.
pub(super) const BLOCK: usize = 16 * 1024;
/// Rows per block at most, so that sums in `f32` stay short.
const MAX_ROWS: usize = 1024;
/// Partial sums in a plane.
const LANES: usize = 16;

/// How channels lie: an array of `outer` by `channels` by `inner` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) outer: usize,
    pub(super) channels: usize,
    pub(super) inner: usize,
}

impl Layout {
    /// Channels last: `pixels` is the product of all other dimensions.
    pub fn nhwc(pixels: usize, channels: usize) -> Self {
        Self {
            outer: pixels,
            channels,
            inner: 1,
        }
    }

    /// Channels behind the batch: `plane` is the product of the spatial dimensions.
    pub fn nchw(batch: usize, channels: usize, plane: usize) -> Self {
        Self {
            outer: batch,
            channels,
            inner: plane,
        }
    }

    /// All elements.
    pub fn len(&self) -> usize {
        self.outer * self.channels * self.inner
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements of one channel.
    pub(super) fn per_channel(&self) -> usize {
        self.outer * self.inner
    }

    /// Elements of a row that one step of a loop takes: all channels of a pixel, or a plane of one channel.
    pub(super) fn row_len(&self) -> usize {
        if self.inner == 1 {
            self.channels
        } else {
            self.inner
        }
    }

    /// The channels of row number `row`.
    #[inline]
    pub(super) fn channels_of(&self, row: usize) -> std::ops::Range<usize> {
        if self.inner == 1 {
            0..self.channels
        } else {
            row % self.channels..row % self.channels + 1
        }
    }
}

/// What is summed for an element `x` of one array, `y` of another, and the mean of the channel.
pub(super) trait Term: 'static {
    fn eval(x: f32, y: f32, mean: f32) -> [f32; 2];
}

/// The elements.
pub(super) struct Elements;
/// Squares of what differs from the mean.
pub(super) struct Squares;
/// `y`, and `y` times what `x` differs from its mean.
pub(super) struct Products;

impl Term for Elements {
    #[inline(always)]
    fn eval(x: f32, _: f32, _: f32) -> [f32; 2] {
        [x, 0.0]
    }
}

impl Term for Squares {
    #[inline(always)]
    fn eval(x: f32, _: f32, mean: f32) -> [f32; 2] {
        [(x - mean) * (x - mean), 0.0]
    }
}

impl Term for Products {
    #[inline(always)]
    fn eval(x: f32, y: f32, mean: f32) -> [f32; 2] {
        [y, y * (x - mean)]
    }
}

/// Both sums of a term for each channel.
pub(super) fn sums<T: NormElement, M: Term>(
    par: &dyn Par,
    layout: Layout,
    x: &[T],
    y: &[T],
    mean: &[f32],
) -> Vec<[f64; 2]> {
    let (channels, row_len) = (layout.channels, layout.row_len());
    let mut totals = vec![[0.0; 2]; channels];
    if layout.is_empty() {
        return totals;
    }
    let rows = layout.len() / row_len;
    let per_block = match layout.inner {
        1 => (BLOCK / row_len).clamp(32, MAX_ROWS),
        _ => 1,
    };
    // One line of partial sums for each block of rows: first sums, then second ones.
    let width = layout.channels_of(0).len();
    let mut partial = vec![0.0; rows.div_ceil(per_block) * 2 * width];
    let grain = BLOCK.div_ceil(per_block * row_len);
    rows_mut(par, &mut partial, 2 * width, grain, |first, partial| {
        let (mut wide_x, mut wide_y) = (Vec::new(), Vec::new());
        for (block, partial) in (first..).zip(partial.chunks_exact_mut(2 * width)) {
            let begin = block * per_block * row_len;
            let end = (begin + per_block * row_len).min(x.len());
            let x = T::view(&x[begin..end], &mut wide_x);
            let y = T::view(&y[begin..end], &mut wide_y);
            let mean = &mean[layout.channels_of(block * per_block)];
            if layout.inner == 1 {
                let (first, second) = partial.split_at_mut(width);
                add_rows::<M>(x, y, mean, first, second);
            } else {
                partial.copy_from_slice(&add_plane::<M>(x, y, mean[0]));
            }
        }
    });
    for (block, partial) in partial.chunks_exact(2 * width).enumerate() {
        let (first, second) = partial.split_at(width);
        let totals = &mut totals[layout.channels_of(block * per_block)];
        for ((total, &first), &second) in totals.iter_mut().zip(first).zip(second) {
            total[0] += f64::from(first);
            total[1] += f64::from(second);
        }
    }
    totals
}

multiversion! {
    fn add_rows<M: Term>(x: &[f32], y: &[f32], mean: &[f32], first: &mut [f32], second: &mut [f32]) = add_rows_body;
}

#[inline(always)]
fn add_rows_body<M: Term>(
    x: &[f32],
    y: &[f32],
    mean: &[f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    let channels = mean.len();
    let (first, second) = (&mut first[..channels], &mut second[..channels]);
    for (x, y) in x.chunks_exact(channels).zip(y.chunks_exact(channels)) {
        for i in 0..channels {
            let [a, b] = M::eval(x[i], y[i], mean[i]);
            first[i] += a;
            second[i] += b;
        }
    }
}

multiversion! {
    fn add_plane<M: Term>(x: &[f32], y: &[f32], mean: f32) -> [f32; 2] = add_plane_body;
}

#[inline(always)]
fn add_plane_body<M: Term>(x: &[f32], y: &[f32], mean: f32) -> [f32; 2] {
    let mut totals = [0.0_f64; 2];
    for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
        let (xs, x_rest) = x.as_chunks::<LANES>();
        let (ys, y_rest) = y.as_chunks::<LANES>();
        let mut first = [0.0; LANES];
        let mut second = [0.0; LANES];
        for (x, y) in xs.iter().zip(ys) {
            for i in 0..LANES {
                let [a, b] = M::eval(x[i], y[i], mean);
                first[i] += a;
                second[i] += b;
            }
        }
        for (&x, &y) in x_rest.iter().zip(y_rest) {
            let [a, b] = M::eval(x, y, mean);
            first[0] += a;
            second[0] += b;
        }
        totals[0] += first.iter().map(|&sum| f64::from(sum)).sum::<f64>();
        totals[1] += second.iter().map(|&sum| f64::from(sum)).sum::<f64>();
    }
    totals.map(|total| total as f32)
}
