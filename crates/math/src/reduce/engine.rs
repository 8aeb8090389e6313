//! The loops of a reduction, generic in the combining function.
//!
//! ```text
//! dims  K R K R …   K: parallel over its indices, each a smaller reduction
//!       R           leaf: many accumulators side by side, blocks combined in pairs
//!       R K         rows added to a row of accumulators; wide rows are cut for threads, narrow ones are laid side by side
//!       R K R …     as a loop over R into the same accumulators
//! ```

use super::layout::Dim;
use crate::par::{Par, chunks_mut, rows_mut};

/// How elements are folded; associative and commutative up to rounding.
pub(super) trait Fold<T> {
    const IDENTITY: T;
    /// What one element counts for.
    fn lift(x: T) -> T;
    fn combine(a: T, b: T) -> T;
    /// `acc` with four more elements.
    #[inline(always)]
    fn combine_four(acc: T, [a, b, c, d]: [T; 4]) -> T {
        let pair = Self::combine(Self::lift(a), Self::lift(b));
        let other = Self::combine(Self::lift(c), Self::lift(d));
        Self::combine(acc, Self::combine(pair, other))
    }
}

/// The loops of a fold, as pointers: the engine is compiled once per type and not once per fold.
pub(super) struct Loops<T> {
    pub(super) identity: T,
    /// Folds runs of the given length, each into its accumulator.
    pub(super) runs: fn(&[T], usize, &mut [T]),
    /// Folds rows, each as long as the accumulators and the given stride apart, into the accumulators.
    pub(super) rows: fn(&[T], usize, &mut [T]),
    /// Folds accumulators into others.
    pub(super) merge: fn(&mut [T], &[T]),
}

/// Accumulators side by side in a run; each takes four elements at a time.
const LANES: usize = 16;
/// Runs shorter than this are folded side by side: one accumulator for each of `SIDE` runs.
const SHORT: usize = 48;
const SIDE: usize = 8;
/// Elements folded without pairing; and the unit of work of a thread.
const LEAF: usize = 1024;
const TASK: usize = 32 * LEAF;
/// Rows folded before they are added to the total.
const ROWS: usize = 64;
/// Rows narrower than this are laid side by side.
const NARROW: usize = 64;
/// Kept elements from which on threads share columns and not rows.
const WIDE: usize = 2048;

/// The body of [`Loops::runs`].
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "a column of runs, not a run")]
pub(super) fn runs_body<T: Copy, F: Fold<T>>(x: &[T], len: usize, acc: &mut [T]) {
    if len >= SHORT {
        for (x, acc) in x.chunks_exact(len).zip(acc) {
            *acc = F::combine(*acc, run::<T, F>(x));
        }
        return;
    }
    let mut blocks = x.chunks_exact(SIDE * len);
    let mut sides = acc.chunks_exact_mut(SIDE);
    for (x, acc) in (&mut blocks).zip(&mut sides) {
        let runs: [&[T]; SIDE] = std::array::from_fn(|run| &x[run * len..][..len]);
        let mut sides = [F::IDENTITY; SIDE];
        for i in 0..len {
            for side in 0..SIDE {
                sides[side] = F::combine(sides[side], F::lift(runs[side][i]));
            }
        }
        merge_body::<T, F>(acc, &sides);
    }
    let rest = blocks.remainder().chunks_exact(len);
    for (x, acc) in rest.zip(sides.into_remainder()) {
        *acc = x.iter().fold(*acc, |acc, &x| F::combine(acc, F::lift(x)));
    }
}

#[inline(always)]
fn run<T: Copy, F: Fold<T>>(x: &[T]) -> T {
    let mut acc = [F::IDENTITY; LANES];
    let mut blocks = x.chunks_exact(4 * LANES);
    for block in &mut blocks {
        for i in 0..LANES {
            let four = [0, 1, 2, 3].map(|part| block[part * LANES + i]);
            acc[i] = F::combine_four(acc[i], four);
        }
    }
    let mut rest = blocks.remainder().chunks_exact(LANES);
    for block in &mut rest {
        for i in 0..LANES {
            acc[i] = F::combine(acc[i], F::lift(block[i]));
        }
    }
    for (acc, &x) in acc.iter_mut().zip(rest.remainder()) {
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

/// The body of [`Loops::merge`].
#[inline(always)]
pub(super) fn merge_body<T: Copy, F: Fold<T>>(acc: &mut [T], other: &[T]) {
    for (acc, &other) in acc.iter_mut().zip(other) {
        *acc = F::combine(*acc, other);
    }
}

/// The body of [`Loops::rows`].
#[inline(always)]
pub(super) fn rows_body<T: Copy, F: Fold<T>>(x: &[T], stride: usize, acc: &mut [T]) {
    let n = acc.len();
    let mut quads = x.chunks_exact(4 * stride);
    // Four rows at a time: the accumulators are read and written a quarter as often.
    for quad in &mut quads {
        let (a, rest) = quad.split_at(stride);
        let (b, rest) = rest.split_at(stride);
        let (c, d) = rest.split_at(stride);
        let rows = a[..n].iter().zip(&b[..n]).zip(c[..n].iter().zip(&d[..n]));
        for (acc, ((&a, &b), (&c, &d))) in acc.iter_mut().zip(rows) {
            *acc = F::combine_four(*acc, [a, b, c, d]);
        }
    }
    // The last row may be cut short.
    for row in quads.remainder().chunks(stride) {
        for (acc, &x) in acc.iter_mut().zip(row) {
            *acc = F::combine(*acc, F::lift(x));
        }
    }
}

impl<T: Copy + Send + Sync> Loops<T> {
    /// Folds `x` into `out`, one accumulator for each kept element.
    pub(super) fn reduce(&self, par: &dyn Par, dims: &[Dim], x: &[T], out: &mut [T]) {
        out.fill(self.identity);
        if !x.is_empty() && !out.is_empty() {
            self.parallel(par, dims, x, out);
        }
    }

    fn parallel(&self, par: &dyn Par, dims: &[Dim], x: &[T], out: &mut [T]) {
        if x.len() <= TASK {
            return self.serial(dims, x, out);
        }
        match *dims {
            [] => (self.runs)(x, 1, out),
            [first, ref rest @ ..] if !first.reduced => {
                let (piece, kept) = (x.len() / first.size, out.len() / first.size);
                if piece > TASK && first.size < 16 {
                    for (x, out) in x.chunks(piece).zip(out.chunks_mut(kept)) {
                        self.parallel(par, rest, x, out);
                    }
                    return;
                }
                let grain = (TASK / piece).max(1);
                rows_mut(par, out, kept, grain, |first, out| {
                    let size = out.len() / kept;
                    let x = &x[first * piece..][..size * piece];
                    self.serial_kept(size, rest, x, out);
                });
            }
            [_] => out[0] = self.blocks(par, x),
            [rows, columns] if columns.size >= WIDE => {
                let grain = (TASK / rows.size).clamp(WIDE / 4, WIDE);
                chunks_mut(par, out, grain, |at, out| {
                    self.fold_rows(&x[at..], columns.size, out)
                });
            }
            [rows, ref rest @ ..] if out.len() < WIDE => {
                // Threads take fixed runs of rows, so that results do not depend on their number.
                let (width, piece) = (out.len(), x.len() / rows.size);
                let task = TASK.div_ceil(piece).max(rows.size / 256 + 1);
                let mut partial = vec![self.identity; rows.size.div_ceil(task) * width];
                rows_mut(par, &mut partial, width, 1, |first, partial| {
                    let tasks = x[first * task * piece..].chunks(task * piece);
                    for (x, partial) in tasks.zip(partial.chunks_mut(width)) {
                        self.serial_rows(x.len() / piece, rest, x, partial);
                    }
                });
                self.fold_pairs(&mut partial, out);
            }
            [rows, columns, ref rest @ ..] => {
                // Many kept elements behind an outer reduction: threads share the kept dimension.
                let (piece, kept) = (x.len() / rows.size, out.len() / columns.size);
                let run = piece / columns.size;
                let grain = (TASK / (rows.size * run)).max(1);
                rows_mut(par, out, kept, grain, |first, out| {
                    for row in x.chunks(piece) {
                        for (x, out) in row[first * run..].chunks(run).zip(out.chunks_mut(kept)) {
                            self.serial(rest, x, out);
                        }
                    }
                });
            }
        }
    }

    /// Combines rows of partial results, each as long as `out`, in pairs, and the last into `out`.
    fn fold_pairs(&self, partial: &mut [T], out: &mut [T]) {
        let width = out.len();
        let mut rows = partial.len() / width;
        while rows > 1 {
            let half = rows.div_ceil(2);
            let (low, high) = partial.split_at_mut(half * width);
            (self.merge)(low, &high[..(rows - half) * width]);
            rows = half;
        }
        (self.merge)(out, &partial[..width]);
    }

    /// Folds a long run, its blocks in parallel.
    fn blocks(&self, par: &dyn Par, x: &[T]) -> T {
        let mut partial = vec![self.identity; x.len().div_ceil(TASK)];
        chunks_mut(par, &mut partial, 1, |first, partial| {
            for (x, out) in x[first * TASK..].chunks(TASK).zip(partial) {
                *out = self.leaves(x);
            }
        });
        let mut total = [self.identity];
        self.fold_pairs(&mut partial, &mut total);
        total[0]
    }

    /// Folds a run in pairs of leaves.
    fn leaves(&self, x: &[T]) -> T {
        let mut acc = [self.identity];
        if x.len() <= LEAF {
            (self.runs)(x, x.len(), &mut acc);
            return acc[0];
        }
        let half = x.len().div_ceil(2 * LEAF) * LEAF;
        let (low, high) = x.split_at(half);
        acc[0] = self.leaves(low);
        (self.merge)(&mut acc, &[self.leaves(high)]);
        acc[0]
    }

    /// Folds `x` into `out` on this thread.
    fn serial(&self, dims: &[Dim], x: &[T], out: &mut [T]) {
        match *dims {
            [] => (self.runs)(x, 1, out),
            [one] if one.reduced => (self.merge)(out, &[self.leaves(x)]),
            [first, ref rest @ ..] if first.reduced => self.serial_rows(first.size, rest, x, out),
            [first, ref rest @ ..] => self.serial_kept(first.size, rest, x, out),
        }
    }

    /// Folds `size` indices of a kept dimension.
    fn serial_kept(&self, size: usize, rest: &[Dim], x: &[T], out: &mut [T]) {
        let (piece, width) = (x.len() / size, out.len() / size);
        match rest {
            [] => (self.runs)(x, 1, out),
            [_] if piece <= LEAF => (self.runs)(x, piece, out),
            _ => {
                for (x, out) in x.chunks(piece).zip(out.chunks_mut(width)) {
                    self.serial(rest, x, out);
                }
            }
        }
    }

    /// Folds `size` indices of a reduced dimension with kept ones behind it.
    fn serial_rows(&self, size: usize, rest: &[Dim], x: &[T], out: &mut [T]) {
        if let [columns] = rest {
            return self.fold_rows(x, columns.size, out);
        }
        let piece = x.len() / size;
        if size <= ROWS {
            return x.chunks(piece).for_each(|x| self.serial(rest, x, out));
        }
        let mut total = vec![self.identity; out.len()];
        for x in x.chunks(ROWS * piece) {
            total.fill(self.identity);
            x.chunks(piece)
                .for_each(|x| self.serial(rest, x, &mut total));
            (self.merge)(out, &total);
        }
    }

    /// Folds rows of which `out` sees a window, `stride` apart, into `out`; the last row may end with its window.
    fn fold_rows(&self, x: &[T], stride: usize, out: &mut [T]) {
        let width = out.len();
        if width == stride && width < NARROW {
            return self.fold_narrow(x, out);
        }
        if x.len() <= 2 * ROWS * stride {
            return (self.rows)(x, stride, out);
        }
        let mut total = vec![self.identity; width];
        for x in x.chunks(ROWS * stride) {
            total.fill(self.identity);
            (self.rows)(x, stride, &mut total);
            (self.merge)(out, &total);
        }
    }

    /// Folds rows narrower than the accumulators of a run: several are laid side by side as one wide row.
    fn fold_narrow(&self, x: &[T], out: &mut [T]) {
        let width = out.len();
        let side = (2 * NARROW).div_ceil(width) * width;
        let mut wide = vec![self.identity; side];
        let mut total = vec![self.identity; side];
        for x in x.chunks(ROWS * side) {
            total.fill(self.identity);
            (self.rows)(x, side, &mut total);
            (self.merge)(&mut wide, &total);
        }
        self.fold_pairs(&mut wide, out);
    }
}
