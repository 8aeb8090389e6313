//! Turns of two rows against each other, as QR steps make them.

use super::Scalar;
use super::grid::{Grid, LANES, Vector};
use crate::num::isa::multiversion;

/// The cosine and sine of a turn.
pub(super) type Turn = (f64, f64);

/// Cosine and sine of the turn that makes `(x, z)` to `(length, 0)`, and the length.
pub(super) fn turn(x: f64, z: f64) -> (f64, f64, f64) {
    let mut length = (x * x + z * z).sqrt();
    if length < 1e-140 {
        length = x.hypot(z);
        if length == 0.0 {
            return (1.0, 0.0, 0.0);
        }
        return (x / length, z / length, length);
    }
    let inverse = 1.0 / length;
    (x * inverse, z * inverse, length)
}

multiversion! {
    /// Turns rows `first` and the next, then that and the next, and so on.
    pub(super) fn turn_rows<T: Scalar>(rows: &mut Grid<T>, first: usize, turns: &[Turn]) = turn_rows_body;
}

#[inline(always)]
fn turn_rows_body<T: Scalar>(rows: &mut Grid<T>, first: usize, turns: &[Turn]) {
    let width = rows.width;
    let rows = &mut rows.vectors[first * width..(first + turns.len() + 1) * width];
    let mut at = 0;
    while at + 4 <= width {
        turn_columns::<T, 4>(rows, width, at, turns);
        at += 4;
    }
    while at < width {
        turn_columns::<T, 1>(rows, width, at, turns);
        at += 1;
    }
}

/// `W` vectors of every row: what is handed on from row to row stays in registers.
#[inline(always)]
fn turn_columns<T: Scalar, const W: usize>(
    rows: &mut [Vector<T>],
    width: usize,
    at: usize,
    turns: &[Turn],
) {
    let mut carry: [Vector<T>; W] = std::array::from_fn(|i| rows[at + i]);
    let mut from = at;
    for (c, s) in turns {
        let pair = &mut rows[from..from + width + W];
        for i in 0..W {
            let next = pair[width + i];
            for lane in 0..LANES {
                let (x, y) = (carry[i][lane], next[lane]);
                pair[i][lane] = x.scaled(*c) + y.scaled(*s);
                carry[i][lane] = y.scaled(*c) - x.scaled(*s);
            }
        }
        from += width;
    }
    rows[from..from + W].copy_from_slice(&carry);
}
