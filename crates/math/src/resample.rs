//! Images resampled: each row and column of the output is a weighted sum of some of the input.
//!
//! An [`Axis`] says, for every output position of one direction, which input positions it sees and with what weights. Its
//! transpose is the axis of the gradient. [`lerp`] is the case of two neighbours, rounded as TensorFlow rounds it.

use crate::par::{Par, rows_mut};

/// Elements per task.
const GRAIN: usize = 16 * 1024;

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
        let mut mixed = vec![0.0; in_len];
        for (line, out) in (first..).zip(lines.chunks_exact_mut(out_len)) {
            mixed.fill(0.0);
            for &(row, weight) in rows.taps(line % height) {
                let from = (line / height * rows.input + row) * in_len;
                for (sum, &x) in mixed.iter_mut().zip(&input[from..from + in_len]) {
                    *sum += weight * x;
                }
            }
            for (x, pixel) in out.chunks_exact_mut(channels).enumerate() {
                pixel.fill(0.0);
                for &(column, weight) in columns.taps(x) {
                    let from = &mixed[column * channels..(column + 1) * channels];
                    for (sum, &x) in pixel.iter_mut().zip(from) {
                        *sum += weight * x;
                    }
                }
            }
        }
    });
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
    for (pixel, at) in out.chunks_exact_mut(channels).zip(columns) {
        let Some(at) = at else {
            pixel.fill(outside);
            continue;
        };
        let (left, right) = (at.lower * channels, at.upper * channels);
        for (c, out) in pixel.iter_mut().enumerate() {
            let (tl, tr) = (top[left + c], top[right + c]);
            let (bl, br) = (bottom[left + c], bottom[right + c]);
            let top = tl + (tr - tl) * at.share;
            let bottom = bl + (br - bl) * at.share;
            *out = top + (bottom - top) * share;
        }
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
        for (line, out) in (first..).zip(lines.chunks_exact_mut(out_len)) {
            let (image, at) = (line / rows.len() * height, rows[line % rows.len()]);
            let row = |y: usize| &input[(image + y) * in_len..(image + y + 1) * in_len];
            let near = [row(at.lower), row(at.upper)];
            lerp(near, at.share, columns, 0.0, channels, out);
        }
    });
}

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
        let input: Vec<f32> = (0..12).map(|i| (i * i % 7) as f32).collect();
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
        let (mut found, mut expected) = ([0.0; 12], [0.0; 12]);
        let places = columns.map(Some);
        bilinear(&Serial, ([2, 3], &input), &rows, &places, 2, &mut found);
        resample(&Serial, [&axes[0], &axes[1]], 2, &input, &mut expected);
        assert_eq!(found, expected);
    }
}
