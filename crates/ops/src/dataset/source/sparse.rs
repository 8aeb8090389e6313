//! `SparseTensorSliceDataset`: the rows of a sparse tensor, each a sparse tensor.
//!
//! TensorFlow: SparseTensorSliceDataset(indices: int64, values: Tvalues, dense_shape: int64) -> handle: variant. Elements are
//! indices, values and shape of one row; the indices must be ordered by row.

use std::task::{Poll, Waker};

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure, unimplemented};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Iterate, Next, Spec, Stage};

pub(crate) static OP: OpDef = OpDef {
    name: "SparseTensorSliceDataset",
    inputs: &["indices: int64", "values: Tvalues", "dense_shape: int64"],
    attrs: &["Tvalues: type"],
    stateful: true,
    kernels: &[cpu(&[], build)],
    scripts: &[script(
        "with an empty row",
        "at = int64[3,2]{0, 1, 0, 3, 2, 2}
         values = float[3]{1, 2, 3}
         shape = int64[2]{3, 4}
         rows = SparseTensorSliceDataset(at, values, shape)
         i = IteratorV2() {output_types=[DT_INT64, DT_FLOAT, DT_INT64], output_shapes=[[?,1], [?], [1]], shared_name='', container=''}
         make = MakeIterator(rows, i)
         next = IteratorGetNext(i) {output_types=[DT_INT64, DT_FLOAT, DT_INT64], output_shapes=[[?,1], [?], [1]]}
         unordered = int64[3,2]{2, 1, 0, 3, 2, 2}
         wrong = SparseTensorSliceDataset(unordered, values, shape)
         make_wrong = MakeIterator(wrong, i)",
        &[
            "run make",
            "fetch next:0, next:1, next:2 => int64[2,1]{1, 3}; float[2]{1, 2}; int64[1]{4}",
            "fetch next:0, next:1, next:2 => int64[0,1]{}; float[0]{}; int64[1]{4}",
            "fetch next:0, next:1, next:2 => int64[1,1]{2}; float[1]{3}; int64[1]{4}",
            "fetch next:0 fails OUT_OF_RANGE End of sequence",
            "run make_wrong fails UNIMPLEMENTED The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not currently supported.",
        ],
    )],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("Tvalues")?;
    let unknown = PartialShape::unknown;
    let spec = Spec {
        types: vec![DType::I64, dtype, DType::I64],
        shapes: vec![unknown(), unknown(), unknown()],
    };
    kernel::build_as(spec, |ctx| {
        let (indices, values, shape) = (ctx.take(0)?, ctx.take(1)?, ctx.take(2)?);
        ensure!(
            indices.rank() == 2,
            invalid_argument,
            "Input indices must be a matrix. Got: {}",
            indices.shape()
        );
        ensure!(
            values.rank() == 1,
            invalid_argument,
            "Input values must be a vector. Got: {}",
            values.shape()
        );
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "Input shape must be a vector. Got: {}",
            shape.shape()
        );
        ensure!(
            values.shape().dim(0) == indices.shape().dim(0),
            invalid_argument,
            "Number of values must match first dimension of indices. Got {} values, indices shape: {}",
            values.shape().dim(0),
            indices.shape()
        );
        let rank = shape.shape().dim(0);
        ensure!(
            rank == indices.shape().dim(1),
            invalid_argument,
            "Number of dimensions must match second dimension of indices. Got {rank} dimensions, indices shape: {}",
            indices.shape()
        );
        ensure!(
            rank > 0,
            invalid_argument,
            "The shape argument requires at least one element."
        );
        let mut before = 0;
        for at in indices.slice::<i64>()?.chunks_exact(rank) {
            let row = at.first().copied().unwrap_or(0);
            if row < before {
                return Err(unimplemented!(
                    "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not \
                     currently supported."
                ));
            }
            before = row;
        }
        let dims = shape.slice::<i64>()?;
        let rows = dims.first().copied().unwrap_or(0).max(0);
        let row_shape = Tensor::vector(dims.get(1..).unwrap_or_default());
        Ok(Rows {
            indices,
            values,
            row_shape,
            rows,
            at: 0,
            used: 0,
        })
    })
}

#[derive(Clone)]
struct Rows {
    indices: Tensor,
    values: Tensor,
    row_shape: Tensor,
    rows: i64,
    at: i64,
    /// Entries before this one are of earlier rows.
    used: usize,
}

impl Stage for Rows {
    fn iterate(&self, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(self.clone()))
    }

    fn cardinality(&self) -> i64 {
        self.rows
    }
}

impl Iterate for Rows {
    fn next(&mut self, _: &Waker) -> Next {
        if self.at >= self.rows {
            return Poll::Ready(Ok(None));
        }
        let rank = self.indices.shape().dim(1).max(1);
        let mut inner = Vec::new();
        let mut count = 0;
        let rest = self.indices.slice::<i64>()?.chunks_exact(rank);
        for entry in rest.skip(self.used) {
            match entry.split_first() {
                Some((row, within)) if *row == self.at => inner.extend_from_slice(within),
                _ => break,
            }
            count += 1;
        }
        let shape = Shape::matrix(count, rank - 1)?;
        let indices = Tensor::from_vec(shape, inner)?;
        let values = self.values.rows(self.used, count)?;
        self.used += count;
        self.at += 1;
        Poll::Ready(Ok(Some(vec![indices, values, self.row_shape.clone()])))
    }
}
