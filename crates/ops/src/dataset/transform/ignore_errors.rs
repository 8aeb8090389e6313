//! `IgnoreErrorsDataset`: the elements that could be made.
//!
//! TensorFlow: IgnoreErrorsDataset(input_dataset: variant) -> handle: variant. Only a cancellation is handed on.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Code, Result};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, INFINITE, Iterate, Next, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "odd ones divided by one",
    "fn checked(x: int64) -> z {
         two = int64[]{2}
         m = FloorMod(x, two)
         z = FloorDiv(x, m)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     five = int64[]{5}
     numbers = RangeDataset(zero, five, one) {output_types=[DT_INT64], output_shapes=[[]]}
     maybe = MapDataset(numbers, []) {f=checked, output_types=[DT_INT64], output_shapes=[[]]}
     a = IgnoreErrorsDataset(maybe) {output_types=[DT_INT64], output_shapes=[[]]}
     n = DatasetCardinality(a)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{3}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch n => int64[]{-2}",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "IgnoreErrorsDataset",
    inputs: &["input_dataset: variant"],
    attrs: &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "log_warning: bool = false",
    ],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| Ok(IgnoreErrors([Dataset::input(ctx, 0)?])))
}

struct IgnoreErrors([Dataset; 1]);

impl Stage for IgnoreErrors {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Ignoring(self.0[0].iterate(place)?)))
    }

    fn cardinality(&self) -> i64 {
        match self.0[0].cardinality() {
            INFINITE => INFINITE,
            _ => UNKNOWN,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.0
    }
}

struct Ignoring(Box<dyn Iterate>);

impl Iterate for Ignoring {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            match ready!(self.0.next(waker)) {
                Err(status) if status.code() != Code::Cancelled => {}
                next => return Poll::Ready(next),
            }
        }
    }
}
