//! Putting a tensor, or a part of one, together from slices that were cut in another way.

use std::ops::Range;

use tensorfleet_status::{Result, internal, invalid_argument};

use crate::slice::{Ranges, TensorSlice};

/// Comparisons that the search for overlaps may take; far beyond any real partitioning.
const MAX_COMPARISONS: usize = 100_000_000;

/// What one stored slice gives to the wanted part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// Which stored slice.
    pub(crate) index: usize,
    /// The common part, in coordinates of the full tensor.
    pub(crate) part: Ranges,
}

/// Finds which stored slices make up `wanted`. Stored slices may not overlap and must cover it.
pub(crate) fn plan(
    stored: &[TensorSlice],
    full_dims: &[i64],
    wanted: &Ranges,
) -> Result<Option<Vec<Share>>> {
    let mut boxes = Vec::with_capacity(stored.len());
    for slice in stored {
        boxes.push(slice.ranges(full_dims)?);
    }
    check_disjoint(&boxes, stored)?;
    let mut shares = Vec::new();
    let mut covered = 0u64;
    for (index, ranges) in boxes.iter().enumerate() {
        if let Some(part) = intersect(ranges, wanted) {
            covered = covered.saturating_add(volume(&part));
            shares.push(Share { index, part });
        }
    }
    // Disjoint boxes inside a box fill it exactly when their volumes do.
    Ok((covered == volume(wanted)).then_some(shares))
}

/// Where `part` lies in the row-major elements of `whole`, if it is one unbroken run.
pub(super) fn contiguous(part: &Ranges, whole: &Ranges) -> Option<Range<usize>> {
    // Dimensions from the first one with more than one index on must be whole.
    let first = part
        .iter()
        .position(|(_, length)| *length != 1)
        .unwrap_or(part.len());
    let tail_is_whole = part.iter().zip(whole).skip(first + 1).all(|(a, b)| a == b);
    if !tail_is_whole {
        return None;
    }
    let start = offset_in(part, whole);
    Some(start..start + volume(part) as usize)
}

/// Copies `part` out of the elements of `source_box` into those of `target_box`; an element is so many bytes.
pub(crate) fn copy_part(
    part: &Ranges,
    source: &[u8],
    source_box: &Ranges,
    target: &mut [u8],
    target_box: &Ranges,
    element: usize,
) -> Result<()> {
    for_runs(part, source_box, target_box, |from, to, run| {
        let [from, to, run] = [from, to, run].map(|count| element * count);
        let (from, to) = (source.get(from..from + run)?, target.get_mut(to..to + run)?);
        to.copy_from_slice(from);
        Some(())
    })
}

/// The same for elements that are no plain bytes.
pub(crate) fn copy_elements<T: Clone>(
    part: &Ranges,
    source: &[T],
    source_box: &Ranges,
    target: &mut [T],
    target_box: &Ranges,
) -> Result<()> {
    for_runs(part, source_box, target_box, |from, to, run| {
        let (from, to) = (source.get(from..from + run)?, target.get_mut(to..to + run)?);
        to.clone_from_slice(from);
        Some(())
    })
}

/// Calls `copy(from, to, length)` for every run of elements of `part` that is unbroken in both boxes.
fn for_runs(
    part: &Ranges,
    source_box: &Ranges,
    target_box: &Ranges,
    mut copy: impl FnMut(usize, usize, usize) -> Option<()>,
) -> Result<()> {
    // The longest tail of dimensions that lies in one run in both.
    let mut split = part.len();
    while split > 0 {
        split -= 1;
        let whole = |boxes: &Ranges| boxes.get(split) == part.get(split);
        if !whole(source_box) || !whole(target_box) {
            break;
        }
    }
    let (outer, inner) = part.split_at_checked(split).unwrap_or((part, &[]));
    let run = inner
        .iter()
        .map(|(_, length)| *length as usize)
        .product::<usize>();
    let mut corner: Ranges = part.clone();
    loop {
        let from = offset_in(&corner, source_box);
        let to = offset_in(&corner, target_box);
        if copy(from, to, run).is_none() {
            return Err(internal!("a slice lies outside its tensor (copy_part)"));
        }
        if !advance(&mut corner, outer) {
            return Ok(());
        }
    }
}

/// Steps the corner to the next row-major position of the outer dimensions; `false` at the end.
fn advance(corner: &mut Ranges, outer: &[(i64, i64)]) -> bool {
    for (position, (start, length)) in corner.iter_mut().zip(outer).rev() {
        position.0 += 1;
        if position.0 < start + length {
            return true;
        }
        position.0 = *start;
    }
    false
}

/// Row-major element offset of a box's corner inside another box.
fn offset_in(inner: &Ranges, outer: &Ranges) -> usize {
    inner
        .iter()
        .zip(outer)
        .fold(0, |offset, ((start, _), (outer_start, length))| {
            offset * *length as usize + (start - outer_start) as usize
        })
}

fn volume(ranges: &Ranges) -> u64 {
    ranges.iter().fold(1, |product: u64, (_, length)| {
        product.saturating_mul(*length as u64)
    })
}

fn intersect(a: &Ranges, b: &Ranges) -> Option<Ranges> {
    let mut common = Vec::with_capacity(a.len());
    for ((start_a, length_a), (start_b, length_b)) in a.iter().zip(b) {
        let start = *start_a.max(start_b);
        let end = (start_a + length_a).min(start_b + length_b);
        if end <= start {
            return None;
        }
        common.push((start, end - start));
    }
    Some(common)
}

/// Sweeps along the dimension in which the slices differ most, comparing only neighbours that overlap there.
fn check_disjoint(boxes: &[Ranges], stored: &[TensorSlice]) -> Result<()> {
    let rank = boxes.first().map_or(0, Vec::len);
    let start_of = |index: usize, axis: usize| {
        boxes
            .get(index)
            .and_then(|b| b.get(axis))
            .copied()
            .unwrap_or((0, 0))
    };
    let distinct = |axis: usize| {
        let mut starts: Vec<i64> = (0..boxes.len())
            .map(|index| start_of(index, axis).0)
            .collect();
        starts.sort_unstable();
        starts.dedup();
        starts.len()
    };
    let axis = (0..rank).max_by_key(|axis| distinct(*axis)).unwrap_or(0);
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by_key(|index| start_of(*index, axis).0);
    let mut comparisons = 0;
    for (position, &first) in order.iter().enumerate() {
        let (start, length) = start_of(first, axis);
        for &second in order.iter().skip(position + 1) {
            if rank > 0 && start_of(second, axis).0 >= start + length {
                break;
            }
            comparisons += 1;
            if comparisons > MAX_COMPARISONS {
                return Err(invalid_argument!("too many slices: {}", boxes.len()));
            }
            let (a, b) = (first.min(second), first.max(second));
            if let (Some(box_a), Some(box_b)) = (boxes.get(a), boxes.get(b))
                && intersect(box_a, box_b).is_some()
                && let (Some(existing), Some(new)) = (stored.get(a), stored.get(b))
            {
                return Err(internal!(
                    "Overlapping slices: existing slice = {existing}, new slice = {new}"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slices(texts: &[&str]) -> Vec<TensorSlice> {
        texts
            .iter()
            .map(|text| TensorSlice::parse(text).unwrap())
            .collect()
    }

    #[test]
    fn plans_name_the_slices_that_share() {
        let stored = slices(&["0,3:-", "3,2:-"]);
        let shares = plan(&stored, &[5, 2], &vec![(2, 2), (0, 2)])
            .unwrap()
            .unwrap();
        assert_eq!(shares.len(), 2);
        assert_eq!(shares[1].part, vec![(3, 1), (0, 2)]);
        let shares = plan(&stored, &[5, 2], &vec![(0, 2), (1, 1)])
            .unwrap()
            .unwrap();
        assert_eq!(
            shares,
            [Share {
                index: 0,
                part: vec![(0, 2), (1, 1)]
            }]
        );
        assert_eq!(
            plan(&stored[1..], &[5, 2], &vec![(2, 2), (0, 2)]).unwrap(),
            None
        );
    }

    #[test]
    fn overlaps_are_found() {
        let error = plan(
            &slices(&["0,3:0,2", "2,2:0,2"]),
            &[5, 2],
            &vec![(0, 1), (0, 1)],
        )
        .unwrap_err();
        assert_eq!(
            error.message(),
            "Overlapping slices: existing slice = 0,3:0,2, new slice = 2,2:0,2"
        );
        assert!(plan(&slices(&["", ""]), &[], &vec![]).is_err());
    }

    #[test]
    fn runs_are_recognised() {
        assert_eq!(
            contiguous(&vec![(1, 2), (0, 4)], &vec![(0, 5), (0, 4)]),
            Some(4..12)
        );
        assert_eq!(
            contiguous(&vec![(1, 1), (1, 2)], &vec![(0, 5), (0, 4)]),
            Some(5..7)
        );
        assert_eq!(
            contiguous(&vec![(1, 2), (1, 2)], &vec![(0, 5), (0, 4)]),
            None
        );
        assert_eq!(contiguous(&vec![], &vec![]), Some(0..1));
    }

    /// Cuts `dims` at random places along every axis into a grid of boxes.
    fn grid(dims: &[i64], cuts: &[Vec<i64>]) -> Vec<Ranges> {
        let mut boxes: Vec<Ranges> = vec![vec![]];
        for (&dim, cuts) in dims.iter().zip(cuts) {
            let mut edges: Vec<i64> = cuts.iter().map(|cut| cut % dim).chain([0, dim]).collect();
            edges.sort_unstable();
            edges.dedup();
            boxes = boxes
                .iter()
                .flat_map(|prefix| {
                    edges.windows(2).map(move |edge| {
                        let mut ranges = prefix.clone();
                        ranges.push((edge[0], edge[1] - edge[0]));
                        ranges
                    })
                })
                .collect();
        }
        boxes
    }

    /// The elements of a box of a tensor whose element `i` is `i`, as little-endian u16.
    fn elements(dims: &[i64], ranges: &Ranges) -> Vec<u8> {
        let mut out = Vec::new();
        let mut corner = ranges.clone();
        loop {
            let whole: Ranges = dims.iter().map(|dim| (0, *dim)).collect();
            out.extend_from_slice(&(offset_in(&corner, &whole) as u16).to_le_bytes());
            if !advance(&mut corner, ranges) {
                return out;
            }
        }
    }

    proptest! {
        #[test]
        fn any_part_is_assembled_from_any_cut(
            dims in proptest::collection::vec(1i64..7, 0..4),
            cuts in proptest::collection::vec(proptest::collection::vec(0i64..7, 0..3), 4),
            wanted in proptest::collection::vec((0i64..7, 0i64..7), 4),
        ) {
            let wanted: Ranges = dims.iter().zip(wanted).map(|(dim, (a, b))| {
                let start = a % dim;
                (start, 1 + b % (dim - start))
            }).collect();
            let boxes = grid(&dims, &cuts);
            let stored: Vec<TensorSlice> = boxes.iter().map(|ranges| {
                let text: Vec<String> = ranges.iter().map(|(s, l)| format!("{s},{l}")).collect();
                TensorSlice::parse(&text.join(":")).unwrap()
            }).collect();
            let shares = plan(&stored, &dims, &wanted).unwrap().expect("a grid covers all");
            let mut target = vec![0xff; 2 * volume(&wanted) as usize];
            for share in shares {
                let source_box = &boxes[share.index];
                let source = elements(&dims, source_box);
                copy_part(&share.part, &source, source_box, &mut target, &wanted, 2).unwrap();
                if let Some(run) = contiguous(&share.part, &wanted) {
                    prop_assert_eq!(&target[2 * run.start..2 * run.end], elements(&dims, &share.part));
                }
            }
            prop_assert_eq!(target, elements(&dims, &wanted));
        }
    }
}
