//! Between indices and elements: one-hot rows, positions of chosen elements, first occurrences.

use super::Item;
use super::copy::GRAIN;
use super::index::Index;
use crate::par::{Par, rows_mut};

/// Writes `on` where the index says and `off` elsewhere: `[prefix, suffix]` indices give `[prefix, depth, suffix]` elements.
///
/// An index outside of `0..depth` leaves its place all `off`.
///
/// # Panics
/// If `dst` has another length than it must.
pub fn one_hot<T: Item, I: Index>(
    par: &dyn Par,
    indices: &[I],
    depth: usize,
    suffix: usize,
    (on, off): (&T, &T),
    dst: &mut [T],
) {
    assert_eq!(dst.len(), indices.len() * depth, "output");
    if dst.is_empty() {
        return;
    }
    let row_len = depth * suffix;
    rows_mut(
        par,
        dst,
        row_len,
        GRAIN.div_ceil(row_len),
        |first, chunk| {
            chunk.fill(off.clone());
            for (i, row) in chunk.chunks_exact_mut(row_len).enumerate() {
                let indices = &indices[(first + i) * suffix..(first + i + 1) * suffix];
                for (column, index) in indices.iter().enumerate() {
                    if index.position() < depth {
                        row[index.position() * suffix + column].clone_from(on);
                    }
                }
            }
        },
    );
}

/// Positions of the chosen elements as rows of coordinates (`Where`); `out` takes `dims.len()` numbers for each.
///
/// # Panics
/// If `dims` is empty while `out` is not.
pub fn coordinates_of(chosen: impl Iterator<Item = bool>, dims: &[usize], out: &mut [i64]) {
    if out.is_empty() {
        return;
    }
    let positions = chosen.enumerate().filter(|(_, chosen)| *chosen);
    for (row, (position, _)) in out.chunks_exact_mut(dims.len()).zip(positions) {
        let mut rest = position;
        for (out, extent) in row.iter_mut().zip(dims).rev() {
            *out = (rest % extent) as i64;
            rest /= extent;
        }
    }
}

/// What [`unique_by`] finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unique {
    /// Position of the first occurrence of each distinct element, in order.
    pub first: Vec<usize>,
    /// For each element, which of the distinct ones it is.
    pub index: Vec<usize>,
    /// How often each distinct element occurs.
    pub count: Vec<usize>,
}

/// Finds the distinct ones among `len` elements that are known by their hash and by comparison of two positions.
///
/// An element that does not equal itself (a NaN) is always a new one.
pub fn unique_by(
    len: usize,
    hash: impl Fn(usize) -> u64,
    equal: impl Fn(usize, usize) -> bool,
) -> Unique {
    const EMPTY: usize = usize::MAX;
    let mut found = Unique {
        index: Vec::with_capacity(len),
        ..Unique::default()
    };
    // Open addressing at most half full; slots hold numbers of distinct elements.
    let mut slots = vec![EMPTY; 16];
    let slot_of = |position: usize, slots: usize| {
        let mixed = hash(position).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (slots - 1)
    };
    for position in 0..len {
        if 2 * found.first.len() >= slots.len() {
            let mut larger = vec![EMPTY; 4 * slots.len()];
            for (number, &first) in found.first.iter().enumerate() {
                let mut slot = slot_of(first, larger.len());
                while larger[slot] != EMPTY {
                    slot = (slot + 1) & (larger.len() - 1);
                }
                larger[slot] = number;
            }
            slots = larger;
        }
        let mut slot = slot_of(position, slots.len());
        let number = loop {
            match slots[slot] {
                EMPTY => {
                    slots[slot] = found.first.len();
                    found.first.push(position);
                    found.count.push(0);
                    break found.first.len() - 1;
                }
                number if equal(found.first[number], position) => break number,
                _ => slot = (slot + 1) & (slots.len() - 1),
            }
        };
        found.index.push(number);
        found.count[number] += 1;
    }
    found
}

/// [`unique_by`] for integers and others that have a number of their own.
pub fn unique<T: Copy + PartialEq>(elements: &[T], key: impl Fn(T) -> u64) -> Unique {
    unique_by(
        elements.len(),
        |position| key(elements[position]),
        |a, b| elements[a] == elements[b],
    )
}
