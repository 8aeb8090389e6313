//! How often numbers occur (`Bincount`, `DenseBincount`, `HistogramFixedWidth`).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::movement::{BadIndex, Index, check_indices};
use crate::num::isa::multiversion;
use crate::num::{Num, Real};
use crate::par::{Par, rows_mut};

/// Values that are worth a thread of their own.
const GRAIN: usize = 16 << 10;

/// Counts how often each number below `bins` occurs in each row of `row_len` values, or adds the weights of its occurrences;
/// larger numbers are left out. Row `r` of `out` are the bins of row `r`.
///
/// With `binary` an occurrence makes the count one, however many there are. A negative number is an error.
///
/// # Panics
/// If there are weights, but not one for each value, or `out` has not as many rows.
pub fn bincount<T: Num, I: Index>(
    par: &dyn Par,
    (values, row_len): (&[I], usize),
    weights: Option<&[T]>,
    binary: bool,
    (out, bins): (&mut [T], usize),
) -> Result<(), BadIndex> {
    if let Some(weights) = weights {
        assert_eq!(weights.len(), values.len(), "weights and values");
    }
    if out.is_empty() {
        return check_indices(values, isize::MAX as usize);
    }
    // Counts beside the output are worth their memory only if many values go into few bins.
    if out.len() == bins && bins / 4 <= values.len() && (binary || weights.is_none()) {
        let any_negative = AtomicBool::new(false);
        let counts = tally(par, values.len(), bins, |range, counts| {
            any_negative.fetch_or(count(&values[range], counts), Ordering::Relaxed);
        });
        if any_negative.into_inner() {
            check_indices(values, isize::MAX as usize)?;
        }
        for (out, count) in out.iter_mut().zip(counts) {
            let count = if binary { count.min(1) } else { count };
            *out = T::from_f64(count as f64);
        }
        return Ok(());
    }
    check_indices(values, isize::MAX as usize)?;
    let grain = GRAIN.div_ceil(row_len + bins);
    rows_mut(par, out, bins, grain, |first, out| {
        for (row, out) in (first..).zip(out.chunks_exact_mut(bins)) {
            out.fill(T::ZERO);
            for at in row * row_len..(row + 1) * row_len {
                if let Some(out) = out.get_mut(values[at].position()) {
                    let weight = weights.map_or(T::ONE, |weights| weights[at]);
                    *out = if binary { T::ONE } else { out.add(weight) };
                }
            }
        }
    });
    Ok(())
}

/// Counts the values that have a bin; says whether any is negative.
fn count<I: Index>(values: &[I], counts: &mut [u64]) -> bool {
    let mut bits = 0;
    for value in values {
        bits |= value.position();
        if let Some(count) = counts.get_mut(value.position()) {
            *count += 1;
        }
    }
    bits > isize::MAX as usize
}

/// Counts in which of `bins` equal intervals between `low` and `high` the values lie; those outside count at the ends. `None` if
/// there are several intervals and a value is no number.
pub fn histogram<T: Real>(
    par: &dyn Par,
    values: &[T],
    (low, high): (T, T),
    bins: usize,
) -> Option<Vec<u64>> {
    // As doubles, and each limit on its own: their difference may be too large for `T` and even for a double.
    let range = (low.to_f64(), high.to_f64());
    let step = range.1 / bins as f64 - range.0 / bins as f64;
    let any_nan = AtomicBool::new(false);
    let counts = tally(par, values.len(), bins, |part, counts| {
        let mut places = [0u32; 256];
        for values in values[part].chunks(places.len()) {
            if place(values, range, step, bins, &mut places) {
                any_nan.store(true, Ordering::Relaxed);
            }
            for place in &places[..values.len()] {
                counts[*place as usize] += 1;
            }
        }
    });
    (bins == 1 || !any_nan.into_inner()).then_some(counts)
}

/// Says whether a value is no number.
#[inline(always)]
fn place_loop<T: Real>(
    values: &[T],
    (low, high): (f64, f64),
    step: f64,
    bins: usize,
    places: &mut [u32; 256],
) -> bool {
    let last = (bins - 1).min(i32::MAX as usize) as f64;
    let mut any_nan = 0;
    for (place, value) in places.iter_mut().zip(values) {
        any_nan |= u32::from(value.is_nan());
        let value = value.to_f64();
        let value = if value > low { value } else { low };
        let value = if value > high { high } else { value };
        let at = (value - low) / step;
        // No larger than an i32, which vectors convert to as it is.
        *place = (if at < last { at } else { last }) as i32 as u32;
    }
    any_nan != 0
}

multiversion! {
    fn place<T: Real>(values: &[T], range: (f64, f64), step: f64, bins: usize, places: &mut [u32; 256]) -> bool = place_loop;
}

/// Counts by `body`, which adds what it finds in a range; each thread has counts of its own if there are more values than bins.
fn tally(
    par: &dyn Par,
    len: usize,
    bins: usize,
    body: impl Fn(Range<usize>, &mut [u64]) + Sync,
) -> Vec<u64> {
    let parts = (len / GRAIN.max(4 * bins)).clamp(1, par.threads());
    let mut counts = vec![0; parts * bins];
    if bins == 0 {
        return counts;
    }
    rows_mut(par, &mut counts, bins, 1, |first, counts| {
        for (part, counts) in (first..).zip(counts.chunks_exact_mut(bins)) {
            body(len * part / parts..len * (part + 1) / parts, counts);
        }
    });
    let (first, others) = counts.split_at_mut(bins);
    for other in others.chunks_exact(bins) {
        for (sum, count) in first.iter_mut().zip(other) {
            *sum += count;
        }
    }
    counts.truncate(bins);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::{Pool, Serial};

    fn counted<T: Num>(values: &[i32], weights: Option<&[T]>, binary: bool, out: &mut [T]) {
        let (row_len, bins) = (values.len(), out.len());
        bincount(&Serial, (values, row_len), weights, binary, (out, bins)).unwrap();
    }

    #[test]
    fn counts_values() {
        let mut out = [9; 3];
        counted(&[0, 2, 2, 7], None, false, &mut out);
        assert_eq!(out, [1, 0, 2]);
        counted(&[0, 2, 2, 7], None, true, &mut out);
        assert_eq!(out, [1, 0, 1]);
        let mut out = [0.0; 2];
        counted(&[1, 1, 0], Some(&[0.5, 2.0, 4.0]), false, &mut out);
        assert_eq!(out, [4.0, 2.5]);
        let negative = bincount(&Serial, (&[1, -1], 2), None, false, (&mut out, 2));
        let (position, value) = (1, -1);
        assert_eq!(negative, Err(BadIndex { position, value }));
    }

    #[test]
    fn rows_are_counted_apart() {
        let mut out = [9.0; 6];
        let values = [1i64, 1, 0, 5];
        bincount(&Serial, (&values, 2), None, false, (&mut out, 3)).unwrap();
        assert_eq!(out, [0.0, 2.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn threads_count_what_one_counts() {
        let values: Vec<i32> = (0..200_000).map(|i| i % 1009 * (i % 11) % 1001).collect();
        let (mut one, mut many) = ([0i64; 1000], [0i64; 1000]);
        counted(&values, None, false, &mut one);
        let pool = Pool::new(3);
        bincount(
            &pool,
            (&values, values.len()),
            None,
            false,
            (&mut many, 1000),
        )
        .unwrap();
        assert_eq!(one, many);
        let width = histogram(&pool, &values, (1, 8), 7).unwrap();
        assert_eq!(histogram(&pool, &[1.0, f32::NAN], (0.0, 2.0), 2), None);
        assert_eq!(
            histogram(&pool, &[1.0, f32::NAN], (0.0, 1.0), 1),
            Some(vec![2])
        );
        assert_eq!(width[1..6], one.map(|count| count as u64)[2..7]);
        assert_eq!(width.iter().sum::<u64>(), 200_000);
        assert_eq!(width[0], (one[0] + one[1]) as u64);
    }
}
