//! Softmax cross-entropy with its gradient.

use super::{GRAIN, SoftmaxElement, block_rows};
use crate::par::{Par, rows2_mut};

/// A label that is no column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLabel {
    /// The row it was given for.
    pub row: usize,
    /// The label.
    pub label: i64,
}

impl std::fmt::Display for BadLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "label {} of row {} is out of range",
            self.label, self.row
        )
    }
}

impl std::error::Error for BadLabel {}

/// Writes, for each row, the cross-entropy between `labels` and the softmax of `logits`, and its gradient in the logits.
///
/// # Panics
/// If the lengths do not fit together.
pub fn cross_entropy<T: SoftmaxElement>(
    par: &dyn Par,
    logits: &[T],
    labels: &[T],
    columns: usize,
    loss: &mut [T],
    backprop: &mut [T],
) {
    assert!(
        labels.len() == logits.len() && backprop.len() == logits.len(),
        "lengths differ"
    );
    if columns == 0 {
        return loss.fill(T::ZERO);
    }
    each_block(par, columns, loss, backprop, |row, loss, backprop| {
        let range = row * columns..row * columns + backprop.len();
        T::dense_block(
            &logits[range.clone()],
            &labels[range],
            columns,
            loss,
            backprop,
        );
    });
}

/// As [`cross_entropy`] with one column per row as label.
///
/// # Errors
/// The first label outside `0..columns`, with nothing written.
///
/// # Panics
/// If the lengths do not fit together.
pub fn sparse_cross_entropy<T: SoftmaxElement, L: Copy + Into<i64>>(
    par: &dyn Par,
    logits: &[T],
    labels: &[L],
    columns: usize,
    loss: &mut [T],
    backprop: &mut [T],
) -> Result<(), BadLabel> {
    assert!(
        labels.len() == loss.len() && backprop.len() == logits.len(),
        "lengths differ"
    );
    let labels: Vec<usize> = labels
        .iter()
        .enumerate()
        .map(|(row, &label)| {
            let label = label.into();
            let column = usize::try_from(label)
                .ok()
                .filter(|&column| column < columns);
            column.ok_or(BadLabel { row, label })
        })
        .collect::<Result<_, _>>()?;
    if columns == 0 {
        return Ok(());
    }
    each_block(par, columns, loss, backprop, |row, loss, backprop| {
        let logits = &logits[row * columns..][..backprop.len()];
        T::sparse_block(
            logits,
            &labels[row..row + loss.len()],
            columns,
            loss,
            backprop,
        );
    });
    Ok(())
}

fn each_block<T: Send>(
    par: &dyn Par,
    columns: usize,
    loss: &mut [T],
    backprop: &mut [T],
    body: impl Fn(usize, &mut [T], &mut [T]) + Sync,
) {
    let rows = block_rows(columns);
    let grain = (GRAIN / columns).max(1).next_multiple_of(rows);
    rows2_mut(
        par,
        (loss, 1),
        (backprop, columns),
        grain,
        |first, loss, backprop| {
            let mut row = first;
            for (loss, backprop) in loss
                .chunks_mut(rows)
                .zip(backprop.chunks_mut(rows * columns))
            {
                body(row, loss, backprop);
                row += loss.len();
            }
        },
    );
}
