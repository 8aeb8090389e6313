//! What transforms need of a float besides arithmetic: work space, and rows exchanged with columns.

use crate::gemm::scratch;
use crate::movement::mover::{BLOCK, Block, Exchange};

/// A float that lines in lanes are made of.
pub trait Lane: Sized {
    /// Calls `body` with so many numbers of this thread's work space `slot`, 0 or 1; they have any values.
    fn with_room(slot: usize, len: usize, body: impl FnOnce(&mut [Self]));

    /// `to[c * to_row + r] = from[r * from_row + c]` for all rows and columns of `from`.
    fn transpose(from: (&[Self], usize), size: [usize; 2], to: (&mut [Self], usize));
}

macro_rules! lanes {
    ($($t:ty),*) => {$(
        impl Lane for $t {
            fn with_room(slot: usize, len: usize, body: impl FnOnce(&mut [Self])) {
                scratch::with(slot, len, body);
            }

            fn transpose(from: (&[Self], usize), size: [usize; 2], to: (&mut [Self], usize)) {
                let ((from, from_row), [rows, columns], (to, to_row)) = (from, size, to);
                for row in (0..rows).step_by(BLOCK) {
                    for column in (0..columns).step_by(BLOCK) {
                        let block = Block {
                            at: (row * from_row + column) as isize,
                            stride: from_row as isize,
                            width: BLOCK.min(rows - row),
                            rows: BLOCK.min(columns - column),
                            row_len: to_row,
                        };
                        <$t>::exchange(block, from, &mut to[column * to_row + row..]);
                    }
                }
            }
        }
    )*};
}

lanes!(f32, f64);
