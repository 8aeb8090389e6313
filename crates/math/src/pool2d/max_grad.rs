//! The gradient of the largest element of each window.
//!
//! Each window is walked twice, some channels at a time that fit registers: once for which of its pixels, by number, is the
//! largest, and once to hand out the gradient, zero to all pixels but that one. Twice the steps, but all of them for many
//! channels at once; to go straight to the largest would be one step for each channel, and none that a processor foresees.
//!
//! A task has a band of the input's rows and looks at all windows that reach into it. If windows overlap, they add to what others
//! gave, and those at the end of a band are looked at by two tasks; if not, each pixel is written once.

use std::ops::Range;

use super::geometry::Pool2d;
use super::max::{GRAIN, PoolElement};
use crate::disjoint::Disjoint;
use crate::num::isa::multiversion;
use crate::par::Par;

/// Channels looked at together.
const LANES: usize = 16;
/// As many of what is left over.
const FEW: usize = 4;

/// Writes the gradient of [`super::max_pool`] for its input: each window's gradient goes to its largest element.
///
/// Of equal elements the first in row order counts; a NaN counts only if it is the first of its window.
///
/// # Panics
/// If a slice has another length than the shapes say.
pub fn max_pool_grad<T: PoolElement>(
    par: &dyn Par,
    shape: &Pool2d,
    input: &[T],
    grad: &[T],
    out: &mut [T],
) {
    shape.check(input.len(), grad.len());
    assert_eq!(out.len(), input.len(), "gradient of the input");
    if out.is_empty() {
        return;
    }
    if grad.is_empty() {
        out.fill(T::ZERO);
        return;
    }
    let height = band_height(par, shape);
    let bands = shape.out_rows.div_ceil(height);
    let work = shape.in_row_len() * shape.row_stride * height;
    let grain = GRAIN.div_ceil(work.max(1));
    let out = Disjoint::new(out);
    par.for_each(shape.batch * bands, grain, &|range| {
        for task in range {
            band(
                shape,
                (input, grad),
                task / bands,
                owned(shape, task % bands, height),
                &out,
            );
        }
    });
}

/// Rows of windows of a task: one if they do not overlap, else many, as those at its end are looked at by two tasks.
fn band_height(par: &dyn Par, shape: &Pool2d) -> usize {
    if shape.row_stride >= shape.window_rows {
        return 1;
    }
    let tasks = 4 * par.threads();
    if par.threads() == 1 || shape.batch >= tasks {
        return shape.out_rows;
    }
    let least = 4 * shape.window_rows.div_ceil(shape.row_stride);
    (shape.out_rows * shape.batch).div_ceil(tasks).max(least)
}

/// The input rows of a band, for which `height` rows of windows begin; the bands have each row once.
fn owned(shape: &Pool2d, band: usize, height: usize) -> Range<usize> {
    let begin = |row: usize| match row {
        0 => 0,
        row if row >= shape.out_rows => shape.in_rows,
        row => (row * shape.row_stride)
            .saturating_sub(shape.pad_top)
            .min(shape.in_rows),
    };
    begin(band * height)..begin((band + 1) * height)
}

multiversion! {
    fn band<T: PoolElement>(
        shape: &Pool2d, from: (&[T], &[T]), image: usize, own: Range<usize>, out: &Disjoint<'_, T>,
    ) = band_body;
}

/// Some rows of one image's gradient, of which the caller sees to it that no other task has them.
#[inline(always)]
fn band_body<T: PoolElement>(
    shape: &Pool2d,
    (input, grad): (&[T], &[T]),
    image: usize,
    own: Range<usize>,
    out: &Disjoint<'_, T>,
) {
    if own.is_empty() {
        return;
    }
    let (len, channels) = (shape.in_row_len(), shape.channels);
    let first = image * shape.in_rows;
    let clear = |rows: Range<usize>| {
        if !rows.is_empty() {
            // SAFETY: the rows are the task's own, and no other piece lives.
            unsafe { out.slice((first + rows.start) * len, rows.len() * len) }.fill(T::ZERO);
        }
    };
    let disjoint = shape.row_stride >= shape.window_rows && shape.col_stride >= shape.window_cols;
    let written = disjoint && cols_are_covered(shape);
    let mut next = own.start;
    for row in shape.out_rows_of(own.start).start..shape.out_rows_of(own.end - 1).end {
        let rows = shape.rows(row);
        let to = rows.start.max(own.start)..rows.end.min(own.end);
        if to.is_empty() {
            continue;
        }
        // What the windows write needs no zeros.
        clear(next..if written { to.start } else { to.end });
        next = to.end;
        for col in 0..shape.out_cols {
            let cols = shape.cols(col);
            if cols.is_empty() {
                continue;
            }
            let window = Window {
                start: (first + rows.start) * len + cols.start * channels,
                rows: rows.len(),
                row_step: len,
                cols: cols.len(),
                col_step: channels,
                own: to.start - rows.start..to.end - rows.start,
                disjoint,
            };
            let at = ((image * shape.out_rows + row) * shape.out_cols + col) * channels;
            let grad = &grad[at..at + channels];
            let mut channel = 0;
            while channel + LANES <= channels {
                share::<T, LANES>(&window, input, grad, channel, out);
                channel += LANES;
            }
            while channel + FEW <= channels {
                share::<T, FEW>(&window, input, grad, channel, out);
                channel += FEW;
            }
            while channel < channels {
                share::<T, 1>(&window, input, grad, channel, out);
                channel += 1;
            }
        }
    }
    clear(next..own.end);
}

/// Whether each column of the input lies in a window, if these do not overlap.
fn cols_are_covered(shape: &Pool2d) -> bool {
    shape.col_stride == shape.window_cols
        && shape.out_cols > 0
        && shape.cols(shape.out_cols - 1).end == shape.in_cols
}

/// Where the pixels of one window are.
struct Window {
    start: usize,
    rows: usize,
    row_step: usize,
    cols: usize,
    col_step: usize,
    /// Which of its rows are the task's.
    own: Range<usize>,
    /// Whether no other window has its pixels.
    disjoint: bool,
}

/// Hands out the gradient of one window, in `N` channels from `channel` on.
#[inline(always)]
fn share<T: PoolElement, const N: usize>(
    window: &Window,
    input: &[T],
    grad: &[T],
    channel: usize,
    out: &Disjoint<'_, T>,
) {
    // Loops of a length that the compiler knows are unrolled.
    match (window.rows, window.cols) {
        (2, 2) => share_of::<T, N>(window, (2, 2), input, grad, channel, out),
        (3, 3) => share_of::<T, N>(window, (3, 3), input, grad, channel, out),
        (rows, cols) => share_of::<T, N>(window, (rows, cols), input, grad, channel, out),
    }
}

#[inline(always)]
fn share_of<T: PoolElement, const N: usize>(
    window: &Window,
    (rows, cols): (usize, usize),
    input: &[T],
    grad: &[T],
    channel: usize,
    out: &Disjoint<'_, T>,
) {
    let start = window.start + channel;
    let mut best: [T; N] = block(input, start);
    let mut winner = [0_u32; N];
    for row in 0..rows {
        for col in 0..cols {
            let pixel: [T; N] = block(input, start + row * window.row_step + col * window.col_step);
            let number = (row * cols + col) as u32;
            for lane in 0..N {
                let larger = pixel[lane] > best[lane];
                best[lane] = if larger { pixel[lane] } else { best[lane] };
                winner[lane] = if larger { number } else { winner[lane] };
            }
        }
    }
    let grad: [T; N] = block(grad, channel);
    for row in 0..rows {
        if !window.own.contains(&row) {
            continue;
        }
        for col in 0..cols {
            let at = start + row * window.row_step + col * window.col_step;
            // SAFETY: the row is the task's own, and each piece is gone before the next is made.
            let out = unsafe { out.slice(at, N) };
            let number = (row * cols + col) as u32;
            let mut shares = [T::ZERO; N];
            for lane in 0..N {
                let share = if winner[lane] == number {
                    grad[lane]
                } else {
                    T::ZERO
                };
                shares[lane] = share;
            }
            // Zero is added even to what nobody else adds to: a sum is never -0.
            let before = if window.disjoint {
                [T::ZERO; N]
            } else {
                block(out, 0)
            };
            for lane in 0..N {
                out[lane] = before[lane].add(shares[lane]);
            }
        }
    }
}

#[inline(always)]
fn block<T: Copy, const N: usize>(from: &[T], at: usize) -> [T; N] {
    *from[at..].first_chunk().expect("a whole block")
}
