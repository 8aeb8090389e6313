//! The loops of a reduction, generic in the combining function.
//!
//! ```text
//! dims  K R K R …   K: parallel over its indices, each a smaller reduction
//!       R           leaf: many accumulators side by side, blocks combined in pairs
//!       R K         rows added to a row of accumulators; wide rows are cut for threads, narrow ones are laid side by side
//!       R K R …     as a loop over R into the same accumulators
//! ```

use super::layout::Dim;
use crate::par::{Par, chunks_mut};

/// How elements are folded; associative and commutative up to rounding.
pub(super) trait Fold: 'static {
    type In: Copy + Send + Sync;
    type Acc: Copy + Send + Sync;
    const IDENTITY: Self::Acc;
    fn lift(x: Self::In) -> Self::Acc;
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Folds runs of `len` elements, each into its accumulator; compiled for the machine where that pays.
    fn runs(x: &[Self::In], len: usize, acc: &mut [Self::Acc]);
    /// Folds rows, each as long as `acc` and `stride` apart, into `acc`.
    fn rows(x: &[Self::In], stride: usize, acc: &mut [Self::Acc]);
}

/// Accumulators side by side in a run: four vectors of eight floats.
const LANES: usize = 32;
/// Elements folded without pairing; and the unit of work of a thread.
const LEAF: usize = 1024;
const TASK: usize = 32 * LEAF;
/// Rows folded before they are added to the total.
const ROWS: usize = 64;
/// Kept elements from which on threads share columns and not rows.
const WIDE: usize = 2048;

/// The body of [`Fold::runs`].
#[inline(always)]
pub(super) fn runs_body<F: Fold>(x: &[F::In], len: usize, acc: &mut [F::Acc]) {
    for (x, acc) in x.chunks_exact(len).zip(acc) {
        *acc = F::combine(*acc, run::<F>(x));
    }
}

#[inline(always)]
fn run<F: Fold>(x: &[F::In]) -> F::Acc {
    if x.len() < 2 * LANES {
        let mut acc = [F::IDENTITY; 4];
        let mut quads = x.chunks_exact(4);
        for quad in &mut quads {
            for i in 0..4 {
                acc[i] = F::combine(acc[i], F::lift(quad[i]));
            }
        }
        for (acc, &x) in acc.iter_mut().zip(quads.remainder()) {
            *acc = F::combine(*acc, F::lift(x));
        }
        return F::combine(F::combine(acc[0], acc[1]), F::combine(acc[2], acc[3]));
    }
    let mut acc = [F::IDENTITY; LANES];
    let mut blocks = x.chunks_exact(LANES);
    for block in &mut blocks {
        for i in 0..LANES {
            acc[i] = F::combine(acc[i], F::lift(block[i]));
        }
    }
    for (acc, &x) in acc.iter_mut().zip(blocks.remainder()) {
        *acc = F::combine(*acc, F::lift(x));
    }
    let mut n = LANES;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            acc[i] = F::combine(acc[i], acc[i + n]);
        }
    }
    acc[0]
}

/// The body of [`Fold::rows`].
#[inline(always)]
pub(super) fn rows_body<F: Fold>(x: &[F::In], stride: usize, acc: &mut [F::Acc]) {
    let n = acc.len();
    let mut quads = x.chunks_exact(4 * stride);
    // Four rows at a time: the accumulators are read and written a quarter as often.
    for quad in &mut quads {
        let (a, rest) = quad.split_at(stride);
        let (b, rest) = rest.split_at(stride);
        let (c, d) = rest.split_at(stride);
        let rows = a[..n].iter().zip(&b[..n]).zip(c[..n].iter().zip(&d[..n]));
        for (acc, ((&a, &b), (&c, &d))) in acc.iter_mut().zip(rows) {
            let pair = F::combine(F::lift(a), F::lift(b));
            let other = F::combine(F::lift(c), F::lift(d));
            *acc = F::combine(*acc, F::combine(pair, other));
        }
    }
    for row in quads.remainder().chunks(stride) {
        for (acc, &x) in acc.iter_mut().zip(row) {
            *acc = F::combine(*acc, F::lift(x));
        }
    }
}

/// Folds `x` into `out`, one accumulator for each kept element.
pub(super) fn reduce<F: Fold>(par: &dyn Par, dims: &[Dim], x: &[F::In], out: &mut [F::Acc]) {
    out.fill(F::IDENTITY);
    if x.is_empty() || out.is_empty() {
        return;
    }
    parallel::<F>(par, dims, x, out);
}

fn parallel<F: Fold>(par: &dyn Par, dims: &[Dim], x: &[F::In], out: &mut [F::Acc]) {
    if x.len() <= TASK {
        return serial::<F>(dims, x, out);
    }
    match *dims {
        [] => out[0] = F::lift(x[0]),
        [first, ref rest @ ..] if !first.reduced => {
            let (piece, kept) = (x.len() / first.size, out.len() / first.size);
            if piece > TASK && first.size < 16 {
                for (x, out) in x.chunks(piece).zip(out.chunks_mut(kept)) {
                    parallel::<F>(par, rest, x, out);
                }
                return;
            }
            let grain = (TASK / piece).max(1);
            crate::par::rows_mut(par, out, kept, grain, |first, out| {
                let x = &x[first * piece..][..out.len() / kept * piece];
                for (x, out) in x.chunks(piece).zip(out.chunks_mut(kept)) {
                    serial::<F>(rest, x, out);
                }
            });
        }
        [_] => out[0] = blocks::<F>(par, x),
        [rows, columns] if columns.size >= WIDE => {
            let grain = (TASK / rows.size).clamp(WIDE / 4, WIDE);
            chunks_mut(par, out, grain, |at, out| {
                fold_rows::<F>(&x[at..], columns.size, out)
            });
        }
        [rows, ref rest @ ..] if out.len() < WIDE => {
            // Threads take fixed runs of rows, so that results do not depend on their number.
            let piece = x.len() / rows.size;
            let task = TASK.div_ceil(piece).max(rows.size / 256 + 1);
            let mut partial = vec![F::IDENTITY; rows.size.div_ceil(task) * out.len()];
            crate::par::rows_mut(par, &mut partial, out.len(), 1, |first, partial| {
                let tasks = x[first * task * piece..].chunks(task * piece);
                for (x, partial) in tasks.zip(partial.chunks_mut(out.len())) {
                    let rows = Dim {
                        size: x.len() / piece,
                        reduced: true,
                    };
                    serial_rows::<F>(rows, rest, x, partial);
                }
            });
            fold_pairs::<F>(&mut partial, out.len(), out);
        }
        [rows, columns, ref rest @ ..] => {
            // Many kept elements behind an outer reduction: threads share the kept dimension.
            let (piece, run) = (x.len() / rows.size, x.len() / rows.size / columns.size);
            let kept = out.len() / columns.size;
            let grain = (TASK / (rows.size * run)).max(1);
            crate::par::rows_mut(par, out, kept, grain, |first, out| {
                for row in x.chunks(piece) {
                    let row = &row[first * run..];
                    for (x, out) in row.chunks(run).zip(out.chunks_mut(kept)) {
                        serial::<F>(rest, x, out);
                    }
                }
            });
        }
    }
}

/// Combines rows of partial results in pairs, the last into `out`.
fn fold_pairs<F: Fold>(partial: &mut [F::Acc], width: usize, out: &mut [F::Acc]) {
    let mut rows = partial.len() / width;
    while rows > 1 {
        let half = rows.div_ceil(2);
        let (low, high) = partial.split_at_mut(half * width);
        for (low, &high) in low.iter_mut().zip(&high[..(rows - half) * width]) {
            *low = F::combine(*low, high);
        }
        rows = half;
    }
    out.copy_from_slice(&partial[..width]);
}

/// Folds a long run, its blocks in parallel.
fn blocks<F: Fold>(par: &dyn Par, x: &[F::In]) -> F::Acc {
    let mut partial = vec![F::IDENTITY; x.len().div_ceil(TASK)];
    chunks_mut(par, &mut partial, 1, |first, partial| {
        for (x, out) in x[first * TASK..].chunks(TASK).zip(partial) {
            *out = leaves::<F>(x);
        }
    });
    let mut total = [F::IDENTITY];
    fold_pairs::<F>(&mut partial, 1, &mut total);
    total[0]
}

/// Folds a run in pairs of leaves.
fn leaves<F: Fold>(x: &[F::In]) -> F::Acc {
    if x.len() <= LEAF {
        let mut acc = [F::IDENTITY];
        F::runs(x, x.len(), &mut acc);
        return acc[0];
    }
    let half = x.len().div_ceil(2 * LEAF) * LEAF;
    let (low, high) = x.split_at(half.min(x.len()));
    F::combine(leaves::<F>(low), leaves::<F>(high))
}

/// Folds `x` into `out` on this thread.
fn serial<F: Fold>(dims: &[Dim], x: &[F::In], out: &mut [F::Acc]) {
    match *dims {
        [] => out[0] = F::combine(out[0], F::lift(x[0])),
        [one] if one.reduced => out[0] = F::combine(out[0], leaves::<F>(x)),
        [kept, ref rest @ ..] if !kept.reduced => {
            let (piece, width) = (x.len() / kept.size, out.len() / kept.size);
            match rest {
                [] => F::rows(x, x.len(), out),
                [_] if piece <= LEAF => F::runs(x, piece, out),
                [_] => {
                    for (x, out) in x.chunks(piece).zip(out) {
                        *out = F::combine(*out, leaves::<F>(x));
                    }
                }
                _ => {
                    for (x, out) in x.chunks(piece).zip(out.chunks_mut(width)) {
                        serial::<F>(rest, x, out);
                    }
                }
            }
        }
        [rows, ref rest @ ..] => serial_rows::<F>(rows, rest, x, out),
    }
}

/// Folds `rows` indices of a reduced dimension with kept ones behind it.
fn serial_rows<F: Fold>(rows: Dim, rest: &[Dim], x: &[F::In], out: &mut [F::Acc]) {
    if let [columns] = rest {
        return fold_rows::<F>(x, columns.size, out);
    }
    let piece = x.len() / rows.size;
    if rows.size <= ROWS {
        for x in x.chunks(piece) {
            serial::<F>(rest, x, out);
        }
        return;
    }
    let mut total = vec![F::IDENTITY; out.len()];
    for x in x.chunks(ROWS * piece) {
        total.fill(F::IDENTITY);
        for x in x.chunks(piece) {
            serial::<F>(rest, x, &mut total);
        }
        for (out, &total) in out.iter_mut().zip(&total) {
            *out = F::combine(*out, total);
        }
    }
}

/// Folds rows of which `out` sees a window, `stride` apart, into `out`.
fn fold_rows<F: Fold>(x: &[F::In], stride: usize, out: &mut [F::Acc]) {
    let width = out.len();
    if width == stride && width < 2 * LANES {
        return fold_narrow::<F>(x, out);
    }
    let rows = (x.len() + stride - width) / stride;
    if rows <= 2 * ROWS {
        return window::<F>(x, stride, rows, out);
    }
    let mut total = vec![F::IDENTITY; width];
    let mut at = 0;
    while at < rows {
        let take = ROWS.min(rows - at);
        total.fill(F::IDENTITY);
        window::<F>(&x[at * stride..], stride, take, &mut total);
        for (out, &total) in out.iter_mut().zip(&total) {
            *out = F::combine(*out, total);
        }
        at += take;
    }
}

/// Folds `rows` windows; the last row may end with its window.
fn window<F: Fold>(x: &[F::In], stride: usize, rows: usize, out: &mut [F::Acc]) {
    let whole = (rows * stride).min(x.len());
    F::rows(&x[..whole], stride, out);
}

/// Folds rows narrower than the accumulators of a run: several are laid side by side as one wide row.
fn fold_narrow<F: Fold>(x: &[F::In], out: &mut [F::Acc]) {
    let width = out.len();
    let side = (4 * LANES).div_ceil(width) * width;
    let mut wide = vec![F::IDENTITY; side];
    let mut total = vec![F::IDENTITY; side];
    for x in x.chunks(ROWS * side) {
        total.fill(F::IDENTITY);
        let rows = x.len() / side * side;
        F::rows(&x[..rows], side, &mut total);
        for (total, &x) in total.iter_mut().zip(&x[rows..]) {
            *total = F::combine(*total, F::lift(x));
        }
        for (wide, &total) in wide.iter_mut().zip(&total) {
            *wide = F::combine(*wide, total);
        }
    }
    let mut sum = vec![F::IDENTITY; width];
    fold_pairs::<F>(&mut wide, width, &mut sum);
    for (out, sum) in out.iter_mut().zip(sum) {
        *out = F::combine(*out, sum);
    }
}
