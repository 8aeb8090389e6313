//! `Multinomial`: class indices drawn from unnormalised log-probabilities.

use super::philox::Philox;
use super::uniform::unit_f64;
use crate::par::{Par, rows_mut};

/// The outputs a stateful op must reserve (see [`Philox::reserve_outputs`]) to draw `samples` from each of `rows` rows.
pub fn multinomial_outputs(rows: usize, samples: usize) -> usize {
    rows.saturating_mul(samples.next_multiple_of(4))
        .saturating_mul(2)
}

/// Draws `samples` class indices for each row of `classes` logits; `out` has `samples` indices a row.
///
/// Logits that are not finite have no weight; a row without weight yields `classes`. The stream runs through all rows, as in
/// TensorFlow when one thread does them.
///
/// # Panics
/// If `logits` and `out` are not whole rows of the same number, or `classes` exceeds the range of `i32`.
pub fn fill_multinomial<T, I>(
    par: &dyn Par,
    philox: Philox,
    logits: &[T],
    classes: usize,
    samples: usize,
    out: &mut [I],
) where
    T: Copy + Into<f64> + Sync,
    I: From<i32> + Send,
{
    assert!(
        i32::try_from(classes).is_ok(),
        "{classes} classes are too many"
    );
    if out.is_empty() {
        return;
    }
    assert_eq!(
        logits.len() / classes.max(1),
        out.len() / samples,
        "rows of logits and outputs differ"
    );
    let grain = 4096 / (classes + 8 * samples) + 1;
    rows_mut(par, out, samples, grain, |first, rows| {
        let mut cumulative = vec![0.0; classes];
        for (row, out) in rows.chunks_exact_mut(samples).enumerate() {
            let row = first + row;
            let logits = &logits[row * classes..(row + 1) * classes];
            let total = accumulate(logits, &mut cumulative);
            for (i, out) in out.iter_mut().enumerate() {
                // Two draws to a sample.
                let draw = row * samples + i;
                let words = philox.sample_at(draw as u64 / 2);
                let words = &words[draw % 2 * 2..];
                let point = unit_f64(words[0], words[1]) * total;
                let class = cumulative.partition_point(|&sum| sum <= point);
                *out = I::from(class as i32);
            }
        }
    });
}

/// Writes the running sums of the classes' weights and returns the last.
fn accumulate<T: Copy + Into<f64>>(logits: &[T], cumulative: &mut [f64]) -> f64 {
    let finite = || logits.iter().map(|&logit| logit.into());
    let largest = finite()
        .filter(|logit: &f64| logit.is_finite())
        .fold(f64::MIN, f64::max);
    let mut total = 0.0;
    for (sum, logit) in cumulative.iter_mut().zip(finite()) {
        if logit.is_finite() {
            total += (logit - largest).exp();
        }
        *sum = total;
    }
    total
}
