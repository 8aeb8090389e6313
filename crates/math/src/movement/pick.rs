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

/// What [`unique_by`] finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unique {
    /// Position of the first occurrence of each distinct element, in order.
    pub first: Vec<usize>,
    /// How often each distinct element occurs.
    pub count: Vec<usize>,
}

/// Finds the distinct ones among `len` elements that are known by their hash and by comparison of two positions.
///
/// `put` gets, for each element, which of the distinct ones it is. An element that does not equal itself (a NaN) is always a new
/// one.
pub fn unique_by(
    len: usize,
    hash: impl Fn(usize) -> u64,
    equal: impl Fn(usize, usize) -> bool,
    mut put: impl FnMut(usize),
) -> Unique {
    const EMPTY: usize = usize::MAX;
    let mut found = Unique::default();
    // Open addressing at most a quarter full; slots hold numbers of distinct elements.
    let mut slots = vec![EMPTY; 16];
    let slot_of = |position: usize, slots: usize| {
        let mixed = hash(position).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (slots - 1)
    };
    for position in 0..len {
        if 4 * found.first.len() >= slots.len() {
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
        put(number);
        found.count[number] += 1;
    }
    found
}

/// [`unique_by`] for integers and others that have a number of their own.
pub fn unique<T: Copy + PartialEq>(
    elements: &[T],
    key: impl Fn(T) -> u64,
    put: impl FnMut(usize),
) -> Unique {
    unique_by(
        elements.len(),
        |position| key(elements[position]),
        |a, b| elements[a] == elements[b],
        put,
    )
}
