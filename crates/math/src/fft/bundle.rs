//! Lines of an array taken out, transformed and put back, by all threads.

use num_complex::Complex;

use super::lanes::{Cell, LANES, cells, load, pick, store};
use super::plan::{Bundle, SideBySide};
use super::{Direction, Plan, Real};
use crate::disjoint::Disjoint;
use crate::par::Par;

/// Numbers per task.
const GRAIN: usize = 16 * 1024;

/// Transforms every line of `data` in place and multiplies it by `scale`: `data` is `[…, plan.len(), inner]`, a line is
/// along the middle one.
///
/// # Panics
/// If `data` is not a whole number of such blocks.
pub fn lines<T: Real>(
    par: &dyn Par,
    plan: &Plan<T>,
    data: &mut [Complex<T>],
    inner: usize,
    direction: Direction,
    scale: f64,
) {
    let len = plan.len();
    let block = len * inner;
    if data.is_empty() || block == 0 {
        return;
    }
    assert_eq!(data.len() % block, 0, "no whole number of blocks");
    let blocks = data.len() / block;
    let scale = T::of(scale);
    let lines = if inner == 1 { blocks } else { inner };
    match plan.side_by_side(lines) {
        Some(way) if inner == 1 => rows(par, way, data, len, direction, scale),
        Some(way) => columns(par, way, data, [len, inner], direction, scale),
        None => one_by_one(par, plan, data, inner, direction, scale),
    }
}

/// How many bundles of lines of this length a task takes.
pub(super) fn bundles_per_task(len: usize) -> usize {
    (GRAIN / (LANES * len.max(1))).max(1)
}

/// Runs `body` with the number of each bundle, cells for its transform and spare ones: a spectrum's half has one more.
pub(super) fn each_bundle<T: Real>(
    par: &dyn Par,
    count: usize,
    way: SideBySide<'_, T>,
    body: impl Fn(usize, &mut [Cell<T>], &mut [Cell<T>]) + Sync,
) {
    let (room, spare) = (way.room(), way.room() + 1);
    par.for_each(count, bundles_per_task(room), &|range| {
        T::with_room(0, room * 2 * LANES, |first| {
            T::with_room(1, spare * 2 * LANES, |second| {
                for at in range {
                    body(at, cells(first), cells(second));
                }
            });
        });
    });
}

/// Lines one behind the other.
fn rows<T: Real>(
    par: &dyn Par,
    way: SideBySide<'_, T>,
    data: &mut [Complex<T>],
    len: usize,
    direction: Direction,
    scale: T,
) {
    let count = data.len() / len;
    let places = way.places(direction);
    let data = Disjoint::new(data);
    each_bundle(par, count.div_ceil(LANES), way, |at, cells, spare| {
        let lines = LANES.min(count - at * LANES);
        // SAFETY: each line belongs to one bundle only.
        let rows = numbers_mut(unsafe { data.slice(at * LANES * len, lines * len) });
        let flat = cells.as_flattened_mut().as_flattened_mut();
        T::transpose((rows, 2 * len), [lines, 2 * len], (flat, LANES));
        way.run(cells, spare);
        let mut block = [[[T::of(0.0); LANES]; 2]; LANES];
        for (number, places) in places.chunks(LANES).enumerate() {
            pick(cells, places, scale, &mut block);
            store_block(&block[..places.len()], lines, (rows, 2 * len), number);
        }
    });
}

/// Puts cells, of which a bundle has [`LANES`] in each block, into the rows of their lines.
pub(super) fn store_block<T: Real>(
    cells: &[Cell<T>],
    lines: usize,
    rows: (&mut [T], usize),
    number: usize,
) {
    let (rows, row_len) = rows;
    let flat = cells.as_flattened().as_flattened();
    let to = &mut rows[number * 2 * LANES..];
    T::transpose((flat, LANES), [2 * cells.len(), lines], (to, row_len));
}

/// Lines side by side.
fn columns<T: Real>(
    par: &dyn Par,
    way: SideBySide<'_, T>,
    data: &mut [Complex<T>],
    [len, inner]: [usize; 2],
    direction: Direction,
    scale: T,
) {
    let per_block = inner.div_ceil(LANES);
    let count = data.len() / (len * inner) * per_block;
    let places = way.places(direction);
    let data = Disjoint::new(data);
    each_bundle(par, count, way, |at, cells, spare| {
        let first = at % per_block * LANES;
        let lines = LANES.min(inner - first);
        let row = |j: usize| {
            let from = (at / per_block * len + j) * inner + first;
            // SAFETY: each line belongs to one bundle only, and one row at a time is alive in it.
            unsafe { data.slice(from, lines) }
        };
        for (j, cell) in cells.iter_mut().enumerate().take(len) {
            load(row(j), cell);
        }
        way.run(cells, spare);
        for (k, place) in places.iter().enumerate() {
            store(&cells[*place as usize], scale, row(k));
        }
    });
}

/// Long lines, which fill vectors by themselves.
fn one_by_one<T: Real>(
    par: &dyn Par,
    plan: &Plan<T>,
    data: &mut [Complex<T>],
    inner: usize,
    direction: Direction,
    scale: T,
) {
    let len = plan.len();
    let count = data.len() / len;
    let is_inverse = direction == Direction::Inverse;
    let data = Disjoint::new(data);
    par.for_each(count, 1, &|range| {
        let (mut line, mut spare) = (Bundle::new(), Bundle::new());
        for at in range {
            let piece = |j: usize, len: usize| {
                let first = at / inner * plan.len() * inner + at % inner;
                // SAFETY: each number belongs to one line only, and one piece at a time is alive in it.
                unsafe { data.slice(first + j * inner, len) }
            };
            // Without a step between them they are one piece.
            let (pieces, each) = if inner == 1 { (1, len) } else { (len, 1) };
            line.resize(len);
            for j in 0..pieces {
                let range = j * each..(j + 1) * each;
                let (re, im) = (&mut line.re[range.clone()], &mut line.im[range]);
                for ((re, im), value) in re.iter_mut().zip(im).zip(&*piece(j, each)) {
                    (*re, *im) = (value.re, value.im);
                }
            }
            if is_inverse {
                line.swap();
            }
            plan.run(&mut line, &mut spare);
            if is_inverse {
                line.swap();
            }
            for j in 0..pieces {
                let range = j * each..(j + 1) * each;
                let parts = line.re[range.clone()].iter().zip(&line.im[range]);
                for ((re, im), value) in parts.zip(piece(j, each)) {
                    *value = Complex::new(*re * scale, *im * scale);
                }
            }
        }
    });
}

/// Real and imaginary parts in turn.
pub(super) fn numbers_mut<T: Real>(values: &mut [Complex<T>]) -> &mut [T] {
    let len = values.len() * 2;
    // SAFETY: a complex number is two floats, one behind the other, by `repr(C)`.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<T>(), len) }
}

/// As [`numbers_mut`], for reading.
pub(super) fn numbers<T: Real>(values: &[Complex<T>]) -> &[T] {
    let len = values.len() * 2;
    // SAFETY: as in `numbers_mut`.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<T>(), len) }
}
