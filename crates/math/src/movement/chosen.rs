//! The coordinates of chosen elements (`Where`): counted first, so that the caller can make room, then written by all threads.

use crate::disjoint::Disjoint;
use crate::par::{Par, chunks_mut};

/// Elements per task, and per count.
const GRAIN: usize = 16 << 10;

/// Elements that are looked at together.
const BLOCK: usize = 256;

/// How many elements are chosen, in all and up to each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// How many are chosen before each part of [`GRAIN`] elements, and in all.
    before: Vec<usize>,
}

impl Chosen {
    /// Counts the chosen ones.
    pub fn count(par: &dyn Par, chosen: &[bool]) -> Chosen {
        let mut before = vec![0; chosen.len().div_ceil(GRAIN) + 1];
        chunks_mut(par, &mut before[1..], 1, |first, counts| {
            for (part, count) in chosen.chunks(GRAIN).skip(first).zip(counts) {
                *count = part.iter().map(|chosen| usize::from(*chosen)).sum();
            }
        });
        let mut sum = 0;
        for count in &mut before {
            sum += *count;
            *count = sum;
        }
        Chosen { before }
    }

    /// How many elements are chosen.
    pub fn total(&self) -> usize {
        self.before.last().copied().unwrap_or(0)
    }
}

/// Writes the coordinates of the chosen elements of an array with dimensions `dims`, one row for each, in row-major order.
///
/// # Panics
/// If `count` is not that of `chosen`, there are no dimensions, or a slice has another length than it must.
pub fn coordinates_of(
    par: &dyn Par,
    chosen: &[bool],
    count: &Chosen,
    dims: &[usize],
    out: &mut [i64],
) {
    let rank = dims.len();
    assert_eq!(chosen.len(), dims.iter().product(), "elements");
    assert_eq!(out.len(), count.total() * rank, "room for coordinates");
    if out.is_empty() {
        return;
    }
    let places = Disjoint::new(out);
    par.for_each(chosen.len(), GRAIN, &|range| {
        let parts = range.start / GRAIN..range.end.div_ceil(GRAIN);
        let (from, to) = (count.before[parts.start], count.before[parts.end]);
        // SAFETY: the parts before a range have other rows than its own, and ranges are disjoint.
        let rows = unsafe { places.slice(from * rank, (to - from) * rank) };
        match rank {
            1 => write::<1>(&chosen[range.clone()], range.start, dims, rows),
            2 => write::<2>(&chosen[range.clone()], range.start, dims, rows),
            3 => write::<3>(&chosen[range.clone()], range.start, dims, rows),
            _ => write::<0>(&chosen[range.clone()], range.start, dims, rows),
        }
    });
}

/// `RANK` is the number of dimensions, or zero if it is not known when this is compiled.
fn write<const RANK: usize>(mut chosen: &[bool], start: usize, dims: &[usize], out: &mut [i64]) {
    let rank = if RANK == 0 { dims.len() } else { RANK };
    let last = rank - 1;
    let mut at = vec![0i64; rank];
    let mut rest = start;
    for (at, extent) in at.iter_mut().zip(dims).rev() {
        *at = (rest % extent) as i64;
        rest /= extent;
    }
    let mut rows = out.chunks_exact_mut(rank);
    let mut found = [0u8; BLOCK];
    while !chosen.is_empty() {
        // A block ends with its row: only the last coordinate differs in it.
        let len = (dims[last] - at[last] as usize)
            .min(BLOCK)
            .min(chosen.len());
        let (block, behind) = chosen.split_at(len);
        let mut count = 0;
        for (i, chosen) in block.iter().enumerate() {
            // No branch: the place is written over unless it is chosen. Less than `BLOCK` came before it.
            found[count % BLOCK] = i as u8;
            count += usize::from(*chosen);
        }
        for (i, row) in found[..count].iter().zip(rows.by_ref()) {
            row[..last].copy_from_slice(&at[..last]);
            row[last] = at[last] + i64::from(*i);
        }
        chosen = behind;
        at[last] += len as i64;
        for axis in (0..rank).rev() {
            if at[axis] < dims[axis] as i64 || axis == 0 {
                break;
            }
            at[axis] = 0;
            at[axis - 1] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Pool;

    #[test]
    fn chosen_elements_have_their_coordinates() {
        let pool = Pool::new(3);
        let cases: [&[usize]; 6] = [
            &[3],
            &[70_000],
            &[300, 301],
            &[2, 3, 5],
            &[7, 11, 13, 17],
            &[20_000, 1, 2],
        ];
        for (dims, every) in cases
            .into_iter()
            .flat_map(|dims| [1, 2, 7].map(|n| (dims, n)))
        {
            let len = dims.iter().product();
            let chosen: Vec<bool> = (0..len).map(|i| i * i % every == 0).collect();
            let count = Chosen::count(&pool, &chosen);
            let mut out = vec![-1; count.total() * dims.len()];
            coordinates_of(&pool, &chosen, &count, dims, &mut out);
            let positions = (0..len).filter(|i| chosen[*i]);
            let back: Vec<usize> = out
                .chunks_exact(dims.len())
                .map(|row| {
                    row.iter()
                        .zip(dims)
                        .fold(0, |sum, (at, n)| sum * n + *at as usize)
                })
                .collect();
            assert!(positions.eq(back), "{dims:?} {every}");
        }
    }
}
