//! The largest elements of each row.

use crate::num::isa::multiversion;
use crate::par::{Par, rows2_mut};

/// Elements per task.
const GRAIN: usize = 8 * 1024;

/// Writes the `k` largest elements of each row of `columns` and their columns; equal elements keep their order.
///
/// The largest come first. `greater` says whether its first argument belongs before its second.
/// Elements that are not comparable, such as NaN, may come anywhere, but the columns written are distinct.
///
/// # Panics
/// If `k > columns` or a slice has another length than it must.
pub fn top_k<T, I>(
    par: &dyn Par,
    src: &[T],
    columns: usize,
    k: usize,
    values: &mut [T],
    indices: &mut [I],
    greater: impl Fn(T, T) -> bool + Sync,
) where
    T: Copy + Send + Sync,
    I: From<i32> + Send,
{
    assert!(
        k <= columns && i32::try_from(columns).is_ok(),
        "k {k} of {columns}"
    );
    if k == 0 {
        return;
    }
    let rows = src.len() / columns;
    assert_eq!(rows * columns, src.len(), "input is not whole rows");
    assert_eq!(
        (values.len(), indices.len()),
        (rows * k, rows * k),
        "outputs"
    );
    let before = |row: &[T], a: u32, b: u32| {
        let (x, y) = (row[a as usize], row[b as usize]);
        match (greater(x, y), greater(y, x)) {
            (true, false) => std::cmp::Ordering::Less,
            (false, true) => std::cmp::Ordering::Greater,
            _ => a.cmp(&b),
        }
    };
    let grain = GRAIN.div_ceil(columns);
    rows2_mut(
        par,
        (values, k),
        (indices, k),
        grain,
        |first, values, indices| {
            let mut order = Vec::with_capacity(columns);
            let outputs = values.chunks_exact_mut(k).zip(indices.chunks_exact_mut(k));
            for (i, (values, indices)) in outputs.enumerate() {
                let row = &src[(first + i) * columns..(first + i + 1) * columns];
                order.clear();
                if k <= 64 {
                    insert(&mut order, row, k, &greater);
                } else {
                    order.extend(0..columns as u32);
                    select(&mut order, k, |&a, &b| before(row, a, b));
                }
                for ((value, index), &column) in values.iter_mut().zip(indices).zip(&order) {
                    *value = row[column as usize];
                    *index = I::from(column as i32);
                }
            }
        },
    );
}

/// Keeps the best `k` columns so far in order: few elements get past the comparison with the last of them.
fn insert<T: Copy>(best: &mut Vec<u32>, row: &[T], k: usize, greater: impl Fn(T, T) -> bool) {
    for (column, &element) in row.iter().enumerate() {
        if best.len() == k {
            if !greater(element, row[best[k - 1] as usize]) {
                continue;
            }
            best.pop();
        }
        let place = best
            .iter()
            .rposition(|&column| !greater(element, row[column as usize]));
        best.insert(place.map_or(0, |place| place + 1), column as u32);
    }
}

/// Brings the first `k` elements to the front in order.
fn select(order: &mut [u32], k: usize, mut compare: impl FnMut(&u32, &u32) -> std::cmp::Ordering) {
    if k < order.len() {
        order.select_nth_unstable_by(k - 1, &mut compare);
    }
    order[..k].sort_unstable_by(compare);
}

multiversion! {
    /// Whether less than `k` elements of a row are larger than `wanted`, and all are finite (`InTopK`).
    pub fn is_in_top_k(row: &[f32], wanted: f32, k: i64) -> bool = is_in_top_k_body;
}

/// Both what is larger and what is not finite speaks against it, so that the first block that says enough ends the search.
#[inline(always)]
fn is_in_top_k_body(row: &[f32], wanted: f32, k: i64) -> bool {
    let mut larger = 0;
    for block in row.chunks(64) {
        let (mut found, mut endless) = (0u32, 0u32);
        for x in block {
            found += u32::from(*x > wanted);
            endless += u32::from(!x.is_finite());
        }
        larger += i64::from(found);
        if larger >= k || endless > 0 {
            return false;
        }
    }
    k > 0 && wanted.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_in_if_few_are_larger_and_all_are_finite() {
        let mut row: Vec<f32> = (0..200).map(|i| ((i * 37) % 200) as f32).collect();
        for wanted in [0.0, 100.0, 195.0, 199.0] {
            for k in [-1, 0, 1, 5, 100, 1000] {
                let larger = row.iter().filter(|x| **x > wanted).count() as i64;
                assert_eq!(is_in_top_k(&row, wanted, k), larger < k, "{wanted} {k}");
            }
        }
        row[150] = f32::NAN;
        assert!(!is_in_top_k(&row, 199.0, 5));
        assert!(!is_in_top_k(&[], f32::INFINITY, 5));
    }
}
