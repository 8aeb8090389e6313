//! `TensorDataset`, `TensorSliceDataset`: tensors as one element, or their rows as one each.
//!
//! TensorFlow: TensorDataset(components: Toutput_types) -> handle: variant; TensorSliceDataset the same.

use std::task::{Poll, Waker};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Tensor;

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Iterate, Next, Stage, row};

const SCRIPT: Script = script(
    "whole and in rows",
    "x = float[3,2]{1, 2, 3, 4, 5, 6}
     s = string[3]{a, b, c}
     z = int32[]{7}
     w = string[2]{a, b}
     whole = TensorDataset([x, s]) {output_shapes=[[3,2], [3]]}
     rows = TensorSliceDataset([x, s]) {output_shapes=[[2], []]}
     i = IteratorV2() {output_types=[DT_FLOAT, DT_STRING], output_shapes=[[?,?], [?]], shared_name='', container=''}
     j = IteratorV2() {output_types=[DT_FLOAT, DT_STRING], output_shapes=[[2], []], shared_name='', container=''}
     make_i = MakeIterator(whole, i)
     make_j = MakeIterator(rows, j)
     wrong = MakeIterator(rows, i)
     a = IteratorGetNext(i) {output_types=[DT_FLOAT, DT_STRING], output_shapes=[[?,?], [?]]}
     b = IteratorGetNext(j) {output_types=[DT_FLOAT, DT_STRING], output_shapes=[[2], []]}
     wrong_type = IteratorGetNext(j) {output_types=[DT_INT32, DT_STRING], output_shapes=[[2], []]}
     wrong_shape = IteratorGetNext(j) {output_types=[DT_FLOAT, DT_STRING], output_shapes=[[3], []]}
     wrong_count = IteratorGetNext(j) {output_types=[DT_FLOAT], output_shapes=[[2]]}
     count = DatasetCardinality(rows)
     one = DatasetCardinality(whole)
     scalar = TensorSliceDataset([z]) {output_shapes=[[]]}
     uneven = TensorSliceDataset([x, w]) {output_shapes=[[2], []]}
     count_scalar = DatasetCardinality(scalar)
     count_uneven = DatasetCardinality(uneven)",
    &[
        "fetch a:0 fails FAILED_PRECONDITION GetNext() failed because the iterator has not been initialized.",
        "run make_i, make_j",
        "fetch a:0, a:1 => float[3,2]{1, 2, 3, 4, 5, 6}; string[3]{a, b, c}",
        "fetch a:0 fails OUT_OF_RANGE End of sequence",
        "fetch b:0, b:1 => float[2]{1, 2}; string[]{a}",
        "fetch b:0, b:1 => float[2]{3, 4}; string[]{b}",
        "fetch b:0, b:1 => float[2]{5, 6}; string[]{c}",
        "fetch b:0 fails OUT_OF_RANGE End of sequence",
        "run make_j",
        "fetch wrong_type:0 fails INVALID_ARGUMENT Data type mismatch at component 0: expected int32 but got float.",
        "fetch wrong_shape:0 fails INVALID_ARGUMENT Incompatible shapes at component 0: expected [3] but got [2].",
        "fetch wrong_count fails INVALID_ARGUMENT Number of components does not match: expected 1 types but got 2.",
        "fetch b:1 fails OUT_OF_RANGE End of sequence",
        "run wrong fails INVALID_ARGUMENT Incompatible shapes at component 0: expected [?,?] but got [2].",
        "fetch count, one => int64[]{3}; int64[]{1}",
        "fetch count_scalar fails INVALID_ARGUMENT All components must be at least 1-dimensional",
        "fetch count_uneven fails INVALID_ARGUMENT All components must have the same size in the 0th dimension",
    ],
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "TensorDataset",
        inputs: &["components: Toutput_types"],
        attrs: &[
            "Toutput_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        stateful: true,
        kernels: &[cpu(&[], build_whole)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "TensorSliceDataset",
        inputs: &["components: Toutput_types"],
        attrs: &[
            "Toutput_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "is_files: bool = false",
            "metadata: string = ''",
            "replicate_on_split: bool = false",
        ],
        stateful: true,
        kernels: &[cpu(&[], build_rows)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn build_whole(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| components(ctx).map(Whole))
}

fn build_rows(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let parts = components(ctx)?;
        let rows = parts.first().map_or(0, |part| part.shape().dim(0));
        for part in &parts {
            ensure!(
                part.rank() > 0,
                invalid_argument,
                "All components must be at least 1-dimensional"
            );
            ensure!(
                part.shape().dim(0) == rows,
                invalid_argument,
                "All components must have the same size in the 0th dimension"
            );
        }
        Ok(Rows { parts, at: 0, rows })
    })
}

fn components(ctx: &mut KernelCtx<'_>) -> Result<Vec<Tensor>> {
    (0..ctx.num_inputs()).map(|index| ctx.take(index)).collect()
}

struct Whole(Vec<Tensor>);

impl Stage for Whole {
    fn iterate(&self, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Once(Some(self.0.clone()))))
    }

    fn cardinality(&self) -> i64 {
        1
    }
}

struct Once(Option<Vec<Tensor>>);

impl Iterate for Once {
    fn next(&mut self, _: &Waker) -> Next {
        Poll::Ready(Ok(self.0.take()))
    }
}

#[derive(Clone)]
struct Rows {
    parts: Vec<Tensor>,
    at: usize,
    rows: usize,
}

impl Stage for Rows {
    fn iterate(&self, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(self.clone()))
    }

    fn cardinality(&self) -> i64 {
        self.rows as i64
    }
}

impl Iterate for Rows {
    fn next(&mut self, _: &Waker) -> Next {
        if self.at == self.rows {
            return Poll::Ready(Ok(None));
        }
        let parts = self.parts.iter().map(|part| row(part, self.at));
        let element = parts.collect::<Result<_>>()?;
        self.at += 1;
        Poll::Ready(Ok(Some(element)))
    }
}
