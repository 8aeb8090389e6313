//! Images resampled: each row and column of the output is a weighted sum of some of the input.
//!
//! An [`Axis`] says, for every output position of one direction, which input positions it sees and with what weights. Its
//! transpose is the axis of the gradient. [`lerp`] is the case of two neighbours, rounded as TensorFlow rounds it.

use crate::num::isa::multiversion;
use crate::par::{Par, rows_mut};

/// Elements per task.
const GRAIN: usize = 16 * 1024;

/// What may be read behind a line, so that pixels of three channels are read as four.
const PADDING: usize = 1;

/// What the output positions of one direction see.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Positions of the input.
    input: usize,
    /// Where the taps of each output position end.
    ends: Vec<usize>,
    /// Input positions and weights.
    taps: Vec<(usize, f32)>,
}

impl Axis {
    /// An axis over `input` positions, with no output yet.
    pub fn new(input: usize) -> Self {
        Self {
            input,
            ..Self::default()
        }
    }

    /// Adds an output position that sees these taps.
    ///
    /// # Panics
    /// If a tap is outside of the input.
    pub fn push(&mut self, taps: impl IntoIterator<Item = (usize, f32)>) {
        for tap in taps {
            assert!(tap.0 < self.input, "a tap outside of the input");
            self.taps.push(tap);
        }
        self.ends.push(self.taps.len());
    }

    /// Output positions.
    pub fn output(&self) -> usize {
        self.ends.len()
    }

    /// What an output position sees.
    fn taps(&self, at: usize) -> &[(usize, f32)] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.taps[begin..self.ends[at]]
    }

    /// The axis by which gradients go back.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut seen = vec![Vec::new(); self.input];
        for out in 0..self.output() {
            for &(place, weight) in self.taps(out) {
                seen[place].push((out, weight));
            }
        }
        let mut axis = Self::new(self.output());
        seen.into_iter().for_each(|taps| axis.push(taps));
        axis
    }
}

/// Writes `output[n, y, x, c] = Σ input[n, v, u, c] · rows[y, v] · columns[x, u]`.
///
/// # Panics
/// If a slice has another length than the axes say.
pub fn resample(
    par: &dyn Par,
    [rows, columns]: [&Axis; 2],
    channels: usize,
    input: &[f32],
    output: &mut [f32],
) {
    let (in_len, out_len) = (columns.input * channels, columns.output() * channels);
    if output.is_empty() {
        return;
    }
    let height = rows.output();
    let images = output.len() / (height * out_len);
    assert_eq!(output.len(), images * height * out_len, "output");
    assert_eq!(input.len(), images * rows.input * in_len, "input");
    let grain = GRAIN.div_ceil(in_len + out_len);
    rows_mut(par, output, out_len, grain, |first, lines| {
        let mut mixed = vec![0.0; in_len + PADDING];
        for (line, out) in (first..).zip(lines.chunks_exact_mut(out_len)) {
            mixed.fill(0.0);
            for &(row, weight) in rows.taps(line % height) {
                let from = (line / height * rows.input + row) * in_len;
                add_scaled(weight, &input[from..from + in_len], &mut mixed);
            }
            match channels {
                1 => mix_columns::<1, 1>(&mixed, columns, out),
                3 => mix_columns::<3, 4>(&mixed, columns, out),
                4 => mix_columns::<4, 4>(&mixed, columns, out),
                _ => mix_any_columns(&mixed, columns, channels, out),
            }
        }
    });
}

#[inline(always)]
fn add_scaled_body(weight: f32, line: &[f32], sums: &mut [f32]) {
    for (sum, &x) in sums.iter_mut().zip(line) {
        *sum += weight * x;
    }
}

multiversion! { fn add_scaled(weight: f32, line: &[f32], sums: &mut [f32]) = add_scaled_body; }

/// One line of pixels of `CHANNELS`, each summed up in a vector of `LANES`; `line` is [`PADDING`] longer than its pixels.
fn mix_columns<const CHANNELS: usize, const LANES: usize>(
    line: &[f32],
    columns: &Axis,
    out: &mut [f32],
) {
    let mut begin = 0;
    for (pixel, &end) in out
        .as_chunks_mut::<CHANNELS>()
        .0
        .iter_mut()
        .zip(&columns.ends)
    {
        let mut sums = [0.0; LANES];
        for &(column, weight) in &columns.taps[begin..end] {
            let Some(from) = line[column * CHANNELS..].first_chunk::<LANES>() else {
                continue;
            };
            for (sum, x) in sums.iter_mut().zip(from) {
                *sum += weight * x;
            }
        }
        pixel.copy_from_slice(&sums[..CHANNELS]);
        begin = end;
    }
}

fn mix_any_columns(line: &[f32], columns: &Axis, channels: usize, out: &mut [f32]) {
    for (x, pixel) in out.chunks_exact_mut(channels).enumerate() {
        pixel.fill(0.0);
        for &(column, weight) in columns.taps(x) {
            let from = &line[column * channels..(column + 1) * channels];
            for (sum, &x) in pixel.iter_mut().zip(from) {
                *sum += weight * x;
            }
        }
    }
}

/// Between which two input positions an output position lies, and how far from the first.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Between {
    pub lower: usize,
    pub upper: usize,
    pub share: f32,
}

impl Between {
    /// The two neighbours with their weights.
    pub fn taps(self) -> [(usize, f32); 2] {
        [(self.lower, 1.0 - self.share), (self.upper, self.share)]
    }
}

/// Writes one line between two lines of an image; what `columns` has no place for becomes `outside`.
///
/// # Panics
/// If a place is outside of the lines.
pub fn lerp(
    [top, bottom]: [&[f32]; 2],
    share: f32,
    columns: &[Option<Between>],
    outside: f32,
    channels: usize,
    out: &mut [f32],
) {
    match channels {
        1 => lerp_pixels::<1, 1>([top, bottom], share, columns, outside, out),
        3 => lerp_pixels::<3, 4>([top, bottom], share, columns, outside, out),
        4 => lerp_pixels::<4, 4>([top, bottom], share, columns, outside, out),
        _ => {
            for (pixel, at) in out.chunks_exact_mut(channels).zip(columns) {
                lerp_pixel([top, bottom], share, *at, outside, pixel);
            }
        }
    }
}

/// Pixels of `CHANNELS`, read as `LANES` where there are as many.
fn lerp_pixels<const CHANNELS: usize, const LANES: usize>(
    [top, bottom]: [&[f32]; 2],
    share: f32,
    columns: &[Option<Between>],
    outside: f32,
    out: &mut [f32],
) {
    let read = |line: &[f32], column: usize| {
        let from = line.get(column * CHANNELS..)?;
        from.first_chunk::<LANES>().copied()
    };
    let wide = |at: Between| {
        let [tl, tr] = [read(top, at.lower)?, read(top, at.upper)?];
        let [bl, br] = [read(bottom, at.lower)?, read(bottom, at.upper)?];
        let mut mixed = [0.0; LANES];
        for c in 0..LANES {
            let top = tl[c] + (tr[c] - tl[c]) * at.share;
            let bottom = bl[c] + (br[c] - bl[c]) * at.share;
            mixed[c] = top + (bottom - top) * share;
        }
        Some(mixed)
    };
    for (pixel, at) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(columns) {
        match at.and_then(wide) {
            Some(mixed) => pixel.copy_from_slice(&mixed[..CHANNELS]),
            None => lerp_pixel([top, bottom], share, *at, outside, pixel),
        }
    }
}

fn lerp_pixel(
    [top, bottom]: [&[f32]; 2],
    share: f32,
    at: Option<Between>,
    outside: f32,
    pixel: &mut [f32],
) {
    let Some(at) = at else {
        return pixel.fill(outside);
    };
    let (left, right) = (at.lower * pixel.len(), at.upper * pixel.len());
    for (c, out) in pixel.iter_mut().enumerate() {
        let (tl, tr) = (top[left + c], top[right + c]);
        let (bl, br) = (bottom[left + c], bottom[right + c]);
        let top = tl + (tr - tl) * at.share;
        let bottom = bl + (br - bl) * at.share;
        *out = top + (bottom - top) * share;
    }
}

/// Writes images between the pixels of others: [`lerp`] for all lines.
///
/// # Panics
/// If a slice has another length than the places say, or a place is outside of the images.
pub fn bilinear(
    par: &dyn Par,
    input: ([usize; 2], &[f32]),
    rows: &[Between],
    columns: &[Option<Between>],
    channels: usize,
    output: &mut [f32],
) {
    let ([height, width], input) = input;
    let (in_len, out_len) = (width * channels, columns.len() * channels);
    if output.is_empty() {
        return;
    }
    let grain = GRAIN.div_ceil(out_len);
    rows_mut(par, output, out_len, grain, |first, lines| {
        // The two lines around the last one, stretched: those around the next are mostly the same.
        let mut held = [usize::MAX; 2].map(|row| (row, vec![0.0; out_len]));
        for (line, out) in (first..).zip(lines.chunks_exact_mut(out_len)) {
            let (image, at) = (line / rows.len() * height, rows[line % rows.len()]);
            if held[1].0 == image + at.lower {
                held.swap(0, 1);
            }
            for ((row, stretched), y) in held.iter_mut().zip([at.lower, at.upper]) {
                if *row != image + y {
                    *row = image + y;
                    let from = &input[*row * in_len..(*row + 1) * in_len];
                    stretch(from, columns, channels, stretched);
                }
            }
            blend(&held[0].1, &held[1].1, at.share, out);
        }
    });
}

/// Writes a line of another width; what `columns` has no place for becomes zero.
fn stretch(line: &[f32], columns: &[Option<Between>], channels: usize, out: &mut [f32]) {
    match channels {
        1 => stretch_pixels::<1>(line, columns, out),
        3 => stretch_pixels::<3>(line, columns, out),
        4 => stretch_pixels::<4>(line, columns, out),
        _ => {
            for (pixel, at) in out.chunks_exact_mut(channels).zip(columns) {
                lerp_pixel([line, line], 0.0, *at, 0.0, pixel);
            }
        }
    }
}

fn stretch_pixels<const CHANNELS: usize>(
    line: &[f32],
    columns: &[Option<Between>],
    out: &mut [f32],
) {
    let (line, _) = line.as_chunks::<CHANNELS>();
    for (pixel, at) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(columns) {
        *pixel = [0.0; CHANNELS];
        if let Some(at) = at {
            let (left, right) = (&line[at.lower], &line[at.upper]);
            for c in 0..CHANNELS {
                pixel[c] = left[c] + (right[c] - left[c]) * at.share;
            }
        }
    }
}

#[inline(always)]
fn blend_body(top: &[f32], bottom: &[f32], share: f32, out: &mut [f32]) {
    for ((out, top), bottom) in out.iter_mut().zip(top).zip(bottom) {
        *out = top + (bottom - top) * share;
    }
}

multiversion! { fn blend(top: &[f32], bottom: &[f32], share: f32, out: &mut [f32]) = blend_body; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    #[test]
    fn gradients_go_back_by_the_transposed_axis() {
        let mut axis = Axis::new(3);
        axis.push([(0, 0.5), (1, 0.5)]);
        axis.push([(2, 1.0)]);
        let mut one = Axis::new(1);
        one.push([(0, 1.0)]);
        let mut out = [0.0; 2];
        resample(&Serial, [&one, &axis], 1, &[1.0, 3.0, 5.0], &mut out);
        assert_eq!(out, [2.0, 5.0]);
        let (back, mut grad) = (axis.transposed(), [0.0; 3]);
        resample(&Serial, [&one, &back], 1, &[1.0, 2.0], &mut grad);
        assert_eq!(grad, [0.5, 0.5, 2.0]);
    }

    #[test]
    fn lines_between_lines_are_those_of_their_taps() {
        (1..6).for_each(lines_of);
    }

    /// Shares are few bits long, so that no sum is rounded.
    fn lines_of(channels: usize) {
        let input: Vec<f32> = (0..6 * channels).map(|i| (i * i % 7) as f32).collect();
        let at = |lower, upper, share| Between {
            lower,
            upper,
            share,
        };
        let rows = [at(0, 1, 0.25), at(1, 1, 0.0)];
        let columns = [at(0, 1, 0.5), at(1, 2, 0.75), at(2, 2, 0.0)];
        let mut axes = [Axis::new(2), Axis::new(3)];
        rows.iter().for_each(|row| axes[0].push(row.taps()));
        columns
            .iter()
            .for_each(|column| axes[1].push(column.taps()));
        let len = 6 * channels;
        let (mut found, mut expected) = (vec![0.0; len], vec![0.0; len]);
        let mut plain = vec![0.0; len];
        let places = columns.map(Some);
        let image = ([2, 3], &input[..]);
        bilinear(&Serial, image, &rows, &places, channels, &mut found);
        resample(
            &Serial,
            [&axes[0], &axes[1]],
            channels,
            &input,
            &mut expected,
        );
        for (at, sum) in plain.iter_mut().enumerate() {
            let (pixel, c) = (at / channels, at % channels);
            for (y, down) in rows[pixel / 3].taps() {
                for (x, across) in columns[pixel % 3].taps() {
                    *sum += input[(y * 3 + x) * channels + c] * down * across;
                }
            }
        }
        assert_eq!(found, plain, "{channels} channels");
        assert_eq!(expected, plain, "{channels} channels");
    }
}
