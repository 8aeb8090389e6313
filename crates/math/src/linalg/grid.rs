//! Matrices whose rows are whole vectors, and the loops over rows that the factorisations are made of.
//!
//! Rows end in zeros up to a multiple of [`LANES`]: no loop has a tail. The functions here are to be inlined into one that is
//! compiled for each instruction set.

use super::Scalar;
use crate::num::isa::Isa;

/// Elements of a vector: as many doubles as the widest registers have.
pub(super) const LANES: usize = 8;

pub(super) type Vector<T> = [T; LANES];

pub(super) struct Grid<T> {
    /// Row after row.
    pub(super) vectors: Vec<Vector<T>>,
    /// Vectors of a row.
    pub(super) width: usize,
}

impl<T: Scalar> Grid<T> {
    pub(super) fn zeros(rows: usize, cols: usize) -> Grid<T> {
        let width = cols.div_ceil(LANES);
        Grid {
            vectors: vec![[T::ZERO; LANES]; rows * width],
            width,
        }
    }

    pub(super) fn new(a: &[T], rows: usize, cols: usize) -> Grid<T> {
        let mut grid = Grid::zeros(rows, cols);
        for row in 0..rows {
            grid.fill_row(row, &a[row * cols..(row + 1) * cols]);
        }
        grid
    }

    /// Row `row` becomes `values`.
    pub(super) fn fill_row(&mut self, row: usize, values: &[T]) {
        let own = self.row_mut(row).as_flattened_mut();
        own[..values.len()].copy_from_slice(values);
    }

    pub(super) fn to_vec(&self, rows: usize, cols: usize) -> Vec<T> {
        let mut out = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            out.extend_from_slice(&self.row(row).as_flattened()[..cols]);
        }
        out
    }

    /// Columns as rows.
    pub(super) fn transposed(&self, rows: usize, cols: usize) -> Grid<T> {
        let mut out = Grid::zeros(cols, rows);
        for row in 0..rows {
            for (col, value) in self.row(row).as_flattened()[..cols].iter().enumerate() {
                *out.at_mut(col, row) = *value;
            }
        }
        out
    }

    /// The sign of the largest element of a row. Where the sign of a vector is free, its largest element is made positive: small
    /// changes of a matrix then make small changes of its vectors, and those of one near to diagonal are near to unit vectors.
    pub(super) fn sign(&self, row: usize) -> f64 {
        let larger = |x: T, y: &T| if y.square() > x.square() { *y } else { x };
        let largest = self.row(row).as_flattened().iter().fold(T::ZERO, larger);
        if largest.real() < 0.0 { -1.0 } else { 1.0 }
    }

    /// Multiplies a row.
    pub(super) fn scale(&mut self, row: usize, factor: f64) {
        for value in self.row_mut(row).as_flattened_mut() {
            *value = value.scaled(factor);
        }
    }

    /// Rows as columns, in this order.
    pub(super) fn columns(&self, order: &[usize], length: usize) -> Vec<T> {
        let mut out = Vec::with_capacity(order.len() * length);
        for at in 0..length {
            out.extend(order.iter().map(|row| self.at(*row, at)));
        }
        out
    }

    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[Vector<T>] {
        &self.vectors[row * self.width..(row + 1) * self.width]
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [Vector<T>] {
        &mut self.vectors[row * self.width..(row + 1) * self.width]
    }

    /// The rows before `row`, it, and those after it.
    #[inline(always)]
    pub(super) fn around(&mut self, row: usize) -> [&mut [Vector<T>]; 3] {
        let (before, rest) = self.vectors.split_at_mut(row * self.width);
        let (own, after) = rest.split_at_mut(self.width);
        [before, own, after]
    }

    #[inline(always)]
    pub(super) fn at(&self, row: usize, col: usize) -> T {
        self.vectors[row * self.width + col / LANES][col % LANES]
    }

    #[inline(always)]
    pub(super) fn at_mut(&mut self, row: usize, col: usize) -> &mut T {
        &mut self.vectors[row * self.width + col / LANES][col % LANES]
    }
}

/// Adds Σ factors(k) · row k of `rows` to `out`; each row has the length of `out`, and its vectors from `from` on are taken.
#[inline(always)]
pub(super) fn add_rows<T: Scalar, I: Isa>(
    out: &mut [Vector<T>],
    mut from: usize,
    factors: impl Fn(usize) -> T + Copy,
    count: usize,
    rows: &[Vector<T>],
) {
    while from + 8 <= out.len() {
        add_tile::<T, I, 8, 1>(out, from, factors, count, rows);
        from += 8;
    }
    while from + 4 <= out.len() {
        add_tile::<T, I, 4, 2>(out, from, factors, count, rows);
        from += 4;
    }
    while from < out.len() {
        add_tile::<T, I, 1, 8>(out, from, factors, count, rows);
        from += 1;
    }
}

/// `W` vectors of every row. They are summed in registers, and narrow ones by `U` sums at a time, as an addition has to wait for
/// the one before.
#[inline(always)]
fn add_tile<T: Scalar, I: Isa, const W: usize, const U: usize>(
    out: &mut [Vector<T>],
    from: usize,
    factors: impl Fn(usize) -> T + Copy,
    count: usize,
    rows: &[Vector<T>],
) {
    let width = out.len();
    let mut sums = [[[T::ZERO; LANES]; W]; U];
    sums[0].copy_from_slice(&out[from..from + W]);
    let mut k = 0;
    while k + U <= count {
        for u in 0..U {
            let row = &rows[(k + u) * width + from..];
            add_row::<T, I, W>(&mut sums[u], factors(k + u), row);
        }
        k += U;
    }
    while k < count {
        let row = &rows[k * width + from..];
        add_row::<T, I, W>(&mut sums[0], factors(k), row);
        k += 1;
    }
    let (first, rest) = sums.split_at_mut(1);
    let total = first.as_flattened_mut().as_flattened_mut();
    for sum in rest {
        for (total, more) in total.iter_mut().zip(sum.as_flattened()) {
            *total = *total + *more;
        }
    }
    out[from..from + W].copy_from_slice(&sums[0]);
}

#[inline(always)]
fn add_row<T: Scalar, I: Isa, const W: usize>(
    sums: &mut [Vector<T>; W],
    factor: T,
    row: &[Vector<T>],
) {
    let row = &row[..W];
    for w in 0..W {
        T::add_scaled::<I>(&mut sums[w], factor, &row[w]);
    }
}

/// Σ conj(x) · y.
#[inline(always)]
pub(super) fn dot<T: Scalar, I: Isa>(x: &[Vector<T>], y: &[Vector<T>]) -> T {
    let mut sums = [[T::ZERO; LANES]; 2];
    let y = &y[..x.len()];
    for (at, x) in x.iter().enumerate() {
        let sum = &mut sums[at % 2];
        for lane in 0..LANES {
            sum[lane] = sum[lane].plus_product::<I>(x[lane].conj(), y[at][lane]);
        }
    }
    total(sums[0]) + total(sums[1])
}

#[inline(always)]
pub(super) fn total<T: Scalar>(x: Vector<T>) -> T {
    let [a, b, c, d, e, f, g, h] = x;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}
