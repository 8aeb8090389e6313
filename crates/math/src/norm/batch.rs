//! Batch normalisation: each channel by its own mean and variance.

use super::element::NormElement;
use super::sums::{BLOCK, Elements, Layout, Products, Squares, sums};
use crate::num::isa::multiversion;
use crate::par::{Par, rows_mut};

/// What a normalisation is given besides the data; slices have an element for each channel.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs and attributes")]
pub struct BatchNorm<'a> {
    pub scale: &'a [f32],
    pub offset: &'a [f32],
    pub epsilon: f32,
}

/// Averages to go on with, where `exponential_avg_factor` is not one.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as the op's inputs and attributes")]
pub struct Running<'a> {
    pub mean: &'a [f32],
    pub variance: &'a [f32],
    pub exponential_avg_factor: f32,
}

/// What training writes besides the output; slices have an element for each channel.
#[derive(Debug)]
pub struct Statistics<'a> {
    /// The batch's mean, or the running one moved towards it.
    pub mean: &'a mut [f32],
    /// The batch's variance with Bessel's correction, or the running one moved towards it.
    pub variance: &'a mut [f32],
    /// The batch's mean, for the gradient (`reserve_space_1`).
    pub saved_mean: &'a mut [f32],
    /// The batch's variance without correction, for the gradient (`reserve_space_2`).
    pub saved_variance: &'a mut [f32],
}

/// Normalises by the mean and variance of `x` itself. Of no elements, mean and variance are NaN.
///
/// # Panics
/// If a slice has another length than it must.
pub fn batch_norm_train<T: NormElement>(
    par: &dyn Par,
    layout: Layout,
    norm: BatchNorm<'_>,
    running: Option<Running<'_>>,
    x: &[T],
    y: &mut [T],
    statistics: Statistics<'_>,
) {
    let Statistics {
        mean,
        variance,
        saved_mean,
        saved_variance,
    } = statistics;
    if layout.is_empty() {
        for out in [mean, variance, saved_mean, saved_variance] {
            out.fill(f32::NAN);
        }
        return;
    }
    let count = layout.per_channel() as f64;
    let zeros = vec![0.0; layout.channels];
    let totals = sums::<T, Elements>(par, layout, x, x, &zeros);
    for (mean, [sum, _]) in saved_mean.iter_mut().zip(totals) {
        *mean = (sum / count) as f32;
    }
    let totals = sums::<T, Squares>(par, layout, x, x, saved_mean);
    for (variance, [sum, _]) in saved_variance.iter_mut().zip(totals) {
        *variance = (sum / count) as f32;
    }
    batch_norm_infer(par, layout, norm, (saved_mean, saved_variance), x, y);
    let correction = (count / (count - 1.0).max(1.0)) as f32;
    for channel in 0..layout.channels {
        let (new_mean, new_variance) = (saved_mean[channel], saved_variance[channel] * correction);
        (mean[channel], variance[channel]) = match running {
            None => (new_mean, new_variance),
            Some(old) => {
                let factor = old.exponential_avg_factor;
                let moved = |old: f32, new: f32| (1.0 - factor) * old + factor * new;
                (
                    moved(old.mean[channel], new_mean),
                    moved(old.variance[channel], new_variance),
                )
            }
        };
    }
}

/// Normalises by a given mean and variance.
///
/// # Panics
/// If a slice has another length than it must.
pub fn batch_norm_infer<T: NormElement>(
    par: &dyn Par,
    layout: Layout,
    norm: BatchNorm<'_>,
    (mean, variance): (&[f32], &[f32]),
    x: &[T],
    y: &mut [T],
) {
    assert!(x.len() == layout.len() && y.len() == layout.len(), "data");
    for channels in [norm.scale, norm.offset, mean, variance] {
        assert_eq!(channels.len(), layout.channels, "channels");
    }
    let terms: Vec<[f32; 4]> = (0..layout.channels)
        .map(|channel| {
            let factor = rsqrt(variance[channel] + norm.epsilon) * norm.scale[channel];
            [mean[channel], factor, norm.offset[channel], 0.0]
        })
        .collect();
    for_each_element::<T, Normalise>(par, layout, &terms, x, x, y);
}

/// What a gradient is given besides the data; slices have an element for each channel.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormGrad<'a> {
    /// Whether the batch's own mean and variance were used, so that the gradient goes through them.
    pub is_training: bool,
    /// The op's scale.
    pub scale: &'a [f32],
    /// The mean that was used.
    pub mean: &'a [f32],
    /// The variance that was used, without correction.
    pub variance: &'a [f32],
    /// The op's epsilon.
    pub epsilon: f32,
}

/// Writes the gradients for the input, the scale and the offset.
///
/// # Panics
/// If a slice has another length than it must.
#[expect(clippy::too_many_arguments, reason = "the op's inputs and outputs")]
pub fn batch_norm_grad<T: NormElement>(
    par: &dyn Par,
    layout: Layout,
    norm: BatchNormGrad<'_>,
    y_backprop: &[T],
    x: &[T],
    x_backprop: &mut [T],
    scale_backprop: &mut [f32],
    offset_backprop: &mut [f32],
) {
    for len in [x.len(), y_backprop.len(), x_backprop.len()] {
        assert_eq!(len, layout.len(), "data");
    }
    for channels in [norm.scale, norm.mean, norm.variance] {
        assert_eq!(channels.len(), layout.channels, "channels");
    }
    if x.is_empty() {
        // The statistics of nothing are no numbers, but nothing depends on them.
        scale_backprop.fill(0.0);
        offset_backprop.fill(0.0);
        return;
    }
    let totals = sums::<T, Products>(par, layout, x, y_backprop, norm.mean);
    let count = layout.per_channel().max(1) as f64;
    let mut terms = Vec::with_capacity(layout.channels);
    for (channel, [sum, product]) in totals.into_iter().enumerate() {
        let inverse = rsqrt(norm.variance[channel] + norm.epsilon);
        offset_backprop[channel] = sum as f32;
        scale_backprop[channel] = product as f32 * inverse;
        let through = if norm.is_training { 1.0 } else { 0.0 };
        let mean_grad = (through * sum / count) as f32;
        let slope = (through * product / count) as f32 * inverse * inverse;
        let factor = norm.scale[channel] * inverse;
        terms.push([norm.mean[channel], factor, mean_grad, slope]);
    }
    if norm.is_training {
        for_each_element::<T, Backward>(par, layout, &terms, x, y_backprop, x_backprop);
    } else {
        for_each_element::<T, Scaled>(par, layout, &terms, x, y_backprop, x_backprop);
    }
}

fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// A function of an element of each of two arrays and four numbers of their channel.
trait Map: 'static {
    fn eval(x: f32, y: f32, terms: [f32; 4]) -> f32;
}

struct Normalise;
struct Backward;
struct Scaled;

impl Map for Normalise {
    #[inline(always)]
    fn eval(x: f32, _: f32, [mean, factor, offset, _]: [f32; 4]) -> f32 {
        (x - mean) * factor + offset
    }
}

impl Map for Backward {
    #[inline(always)]
    fn eval(x: f32, y: f32, [mean, factor, mean_grad, slope]: [f32; 4]) -> f32 {
        factor * ((y - mean_grad) - (x - mean) * slope)
    }
}

impl Map for Scaled {
    #[inline(always)]
    fn eval(_: f32, y: f32, [_, factor, _, _]: [f32; 4]) -> f32 {
        y * factor
    }
}

fn for_each_element<T: NormElement, M: Map>(
    par: &dyn Par,
    layout: Layout,
    terms: &[[f32; 4]],
    x: &[T],
    y: &[T],
    out: &mut [T],
) {
    if layout.is_empty() {
        return;
    }
    let row_len = layout.row_len();
    let columns: [Vec<f32>; 4] = std::array::from_fn(|i| terms.iter().map(|t| t[i]).collect());
    let grain = BLOCK.div_ceil(row_len);
    rows_mut(par, out, row_len, grain, |first, chunk| {
        let mut buffers = [const { Vec::new() }; 3];
        let [wide_x, wide_y, wide_out] = &mut buffers;
        // Blocks of rows for halves to be widened in; a plane has one row to a block, as its channel changes.
        let per_block = if layout.inner == 1 { grain.min(64) } else { 1 };
        for (block, out) in chunk.chunks_mut(per_block * row_len).enumerate() {
            let row = first + block * per_block;
            let range = row * row_len..row * row_len + out.len();
            let x = T::view(&x[range.clone()], wide_x);
            let y = T::view(&y[range], wide_y);
            T::write(out, wide_out, |out| {
                if layout.inner == 1 {
                    map_rows::<M>(&columns, x, y, out);
                } else {
                    map_plane::<M>(terms[row % layout.channels], x, y, out);
                }
            });
        }
    });
}

multiversion! {
    fn map_rows<M: Map>(terms: &[Vec<f32>; 4], x: &[f32], y: &[f32], out: &mut [f32]) = map_rows_body;
}

#[inline(always)]
fn map_rows_body<M: Map>(terms: &[Vec<f32>; 4], x: &[f32], y: &[f32], out: &mut [f32]) {
    let channels = terms[0].len();
    let [a, b, c, d] = terms.each_ref().map(|column| &column[..channels]);
    let rows = x.chunks_exact(channels).zip(y.chunks_exact(channels));
    for ((x, y), out) in rows.zip(out.chunks_exact_mut(channels)) {
        for i in 0..channels {
            out[i] = M::eval(x[i], y[i], [a[i], b[i], c[i], d[i]]);
        }
    }
}

multiversion! {
    fn map_plane<M: Map>(terms: [f32; 4], x: &[f32], y: &[f32], out: &mut [f32]) = map_plane_body;
}

#[inline(always)]
fn map_plane_body<M: Map>(terms: [f32; 4], x: &[f32], y: &[f32], out: &mut [f32]) {
    for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
        *out = M::eval(x, y, terms);
    }
}
