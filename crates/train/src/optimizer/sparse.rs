//! Rows of gradients.

use tensorfleet_client::{IndexedSlices, Output};

/// The same rows, each index once: rows of equal index are summed. Most rules are wrong otherwise, for the
/// square of a sum is not the sum of squares.
pub(crate) fn sum_duplicates(rows: &IndexedSlices) -> IndexedSlices {
    let g = rows.values.graph();
    let unique = g.op("Unique").input(&rows.indices).build();
    let (indices, positions) = (unique.output(0), unique.output(1));
    let values = g
        .op("UnsortedSegmentSum")
        .input(&rows.values)
        .input(&positions)
        .input(count(&indices))
        .output();
    IndexedSlices {
        values,
        indices,
        dense_shape: rows.dense_shape.clone(),
    }
}

/// The number of rows as a scalar.
fn count(indices: &Output) -> Output {
    indices.shape_tensor().slice(&[0], &[1]).squeeze(&[0])
}
