//! `RepeatDataset`: the same elements again and again.
//!
//! TensorFlow: RepeatDataset(input_dataset: variant, count: int64) -> handle: variant, without end for a negative count.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::Result;

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{AtEnd, Dataset, INFINITE, Iterate, Next, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "twice and without end",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, two, one) {output_types=[DT_INT64], output_shapes=[[]]}
     minus = int64[]{-1}
     a = RepeatDataset(numbers, two) {output_types=[DT_INT64], output_shapes=[[]]}
     b = RepeatDataset(numbers, minus) {output_types=[DT_INT64], output_shapes=[[]]}
     c = RepeatDataset(numbers, zero) {output_types=[DT_INT64], output_shapes=[[]]}
     none = TakeDataset(numbers, zero) {output_types=[DT_INT64], output_shapes=[[]]}
     d = RepeatDataset(none, minus) {output_types=[DT_INT64], output_shapes=[[]]}
     n_a = DatasetCardinality(a)
     n_b = DatasetCardinality(b)
     n_c = DatasetCardinality(c)
     n_d = DatasetCardinality(d)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k, make_l",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{0}",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{0}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l fails OUT_OF_RANGE End of sequence",
        "fetch n_a, n_b, n_c, n_d => int64[]{4}; int64[]{-1}; int64[]{0}; int64[]{0}",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "RepeatDataset",
    inputs: &["input_dataset: variant", "count: int64"],
    attrs: kernel::TYPES_AND_METADATA,
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        Ok(Repeat {
            input: [Dataset::input(ctx, 0)?],
            count: kernel::scalar(ctx, 1, "count")?,
        })
    })
}

struct Repeat {
    input: [Dataset; 1],
    count: i64,
}

impl Stage for Repeat {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        if self.count == 0 {
            return Ok(Box::new(AtEnd));
        }
        Ok(Box::new(Repeating {
            dataset: self.input[0].clone(),
            current: self.input[0].iterate(place)?,
            place: place.clone(),
            left: u64::try_from(self.count).ok(),
            is_empty: true,
        }))
    }

    fn cardinality(&self) -> i64 {
        match (self.input[0].cardinality(), self.count) {
            (0, _) | (_, 0) => 0,
            (_, count) if count < 0 => INFINITE,
            (input @ (INFINITE | UNKNOWN), _) => input,
            (input, count) => input.saturating_mul(count),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Repeating {
    dataset: Dataset,
    current: Box<dyn Iterate>,
    place: Place,
    /// How often it still comes; `None` without end.
    left: Option<u64>,
    /// Whether this time had no element so far: without end that would never have one.
    is_empty: bool,
}

impl Iterate for Repeating {
    fn next(&mut self, waker: &Waker) -> Next {
        while self.left != Some(0) {
            if let Some(element) = ready!(self.current.next(waker))? {
                self.is_empty = false;
                return Poll::Ready(Ok(Some(element)));
            }
            self.left = self.left.map(|left| left - 1);
            if self.left == Some(0) || self.left.is_none() && self.is_empty {
                self.left = Some(0);
                self.current = Box::new(AtEnd);
                break;
            }
            self.is_empty = true;
            self.current = self.dataset.iterate(&self.place)?;
        }
        Poll::Ready(Ok(None))
    }
}
