//! `ConcatenateDataset`, `ZipDataset`: datasets one after the other, or side by side.
//!
//! TensorFlow: ConcatenateDataset(input_dataset: variant, another_dataset: variant) -> handle: variant;
//! ZipDataset(input_datasets: N * variant), which ends with the shortest.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, Status, ensure};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{AtEnd, Dataset, Element, INFINITE, Iterate, Next, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "behind and beside",
    "zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, two, one) {output_types=[DT_INT64], output_shapes=[[]]}
     word = string[3]{a, b, c}
     words = TensorSliceDataset([word]) {output_shapes=[[]]}
     a = ConcatenateDataset(numbers, numbers) {output_types=[DT_INT64], output_shapes=[[]]}
     b = ZipDataset([numbers, words]) {output_types=[DT_INT64, DT_STRING], output_shapes=[[], []]}
     wrong = ConcatenateDataset(numbers, words) {output_types=[DT_INT64], output_shapes=[[]]}
     n_a = DatasetCardinality(a)
     n_b = DatasetCardinality(b)
     n_wrong = DatasetCardinality(wrong)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64, DT_STRING], output_shapes=[[], []], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64, DT_STRING], output_shapes=[[], []]}",
    &[
        "run make_i, make_j",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j:0, next_j:1 => int64[]{0}; string[]{a}",
        "fetch next_j:0, next_j:1 => int64[]{1}; string[]{b}",
        "fetch next_j:0 fails OUT_OF_RANGE End of sequence",
        "fetch n_a, n_b => int64[]{4}; int64[]{2}",
        "fetch n_wrong fails INVALID_ARGUMENT input dataset and dataset to concatenate have different output_types",
    ],
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ConcatenateDataset",
        inputs: &["input_dataset: variant", "another_dataset: variant"],
        attrs: kernel::TYPES_AND_METADATA,
        kernels: &[cpu(&[], build_concatenate)],
        scripts: &[SCRIPT],
        ..DATASET
    },
    OpDef {
        name: "ZipDataset",
        inputs: &["input_datasets: N * variant"],
        attrs: &[
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "N: int >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], build_zip)],
        scripts: &[SCRIPT],
        ..DATASET
    },
];

fn build_concatenate(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let both = [Dataset::input(ctx, 0)?, Dataset::input(ctx, 1)?];
        ensure!(
            both[0].spec().types == both[1].spec().types,
            invalid_argument,
            "input dataset and dataset to concatenate have different output_types {:?} and {:?}",
            both[0].spec().types,
            both[1].spec().types
        );
        Ok(Concatenate(both))
    })
}

fn build_zip(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let inputs = (0..ctx.num_inputs()).map(|index| Dataset::input(ctx, index));
        Ok(Zip(inputs.collect::<Result<_>>()?))
    })
}

struct Concatenate([Dataset; 2]);

impl Stage for Concatenate {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(OneThenOther {
            current: self.0[0].iterate(place)?,
            other: Some(self.0[1].clone()),
            place: place.clone(),
        }))
    }

    fn cardinality(&self) -> i64 {
        match (self.0[0].cardinality(), self.0[1].cardinality()) {
            (INFINITE, _) | (_, INFINITE) => INFINITE,
            (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
            (one, other) => one.saturating_add(other),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.0
    }
}

struct OneThenOther {
    current: Box<dyn Iterate>,
    other: Option<Dataset>,
    place: Place,
}

impl Iterate for OneThenOther {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            let next = ready!(self.current.next(waker))?;
            if next.is_some() {
                return Poll::Ready(Ok(next));
            }
            match self.other.take() {
                Some(other) => self.current = other.iterate(&self.place)?,
                None => {
                    self.current = Box::new(AtEnd);
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }
}

struct Zip(Vec<Dataset>);

impl Stage for Zip {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let inputs = self.0.iter().map(|input| input.iterate(place));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        Ok(Box::new(SideBySide {
            inputs,
            element: Vec::new(),
            done: 0,
            ended: false,
            failed: None,
        }))
    }

    fn cardinality(&self) -> i64 {
        let counts = self.0.iter().map(Dataset::cardinality);
        counts.fold(INFINITE, |least, count| match (least, count) {
            (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
            (INFINITE, count) => count,
            (least, INFINITE) => least,
            (least, count) => least.min(count),
        })
    }

    fn inputs(&self) -> &[Dataset] {
        &self.0
    }
}

struct SideBySide {
    inputs: Vec<Box<dyn Iterate>>,
    /// The components of the first `done` inputs. All are asked equally often, whatever becomes of the element.
    element: Element,
    done: usize,
    ended: bool,
    failed: Option<Status>,
}

impl Iterate for SideBySide {
    fn next(&mut self, waker: &Waker) -> Next {
        while let Some(input) = self.inputs.get_mut(self.done) {
            match ready!(input.next(waker)) {
                Ok(Some(parts)) => self.element.extend(parts),
                Ok(None) => self.ended = true,
                Err(status) => self.failed = self.failed.take().or(Some(status)),
            }
            self.done += 1;
        }
        self.done = 0;
        let element = std::mem::take(&mut self.element);
        if let Some(status) = self.failed.take() {
            self.ended = false;
            return Poll::Ready(Err(status));
        }
        if self.ended || self.inputs.is_empty() {
            self.inputs.clear();
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(Ok(Some(element)))
    }
}
