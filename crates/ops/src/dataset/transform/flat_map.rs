//! `FlatMapDataset`: the elements of the datasets that a function makes, one dataset after the other.
//!
//! TensorFlow: FlatMapDataset(input_dataset: variant, other_arguments: Targuments) -> handle: variant, with f: func.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::Result;

use crate::dataset::call::{Call, Function, FunctionOf, returned_dataset};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "ranges of ranges",
    "fn below(x: int64, step: int64) -> d {
         zero = int64[]{0}
         d = RangeDataset(zero, x, step) {output_types=[DT_INT64], output_shapes=[[]]}
     }
     fn number(x: int64) -> y {
         y = Identity(x)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     four = int64[]{4}
     some = RangeDataset(one, four, two) {output_types=[DT_INT64], output_shapes=[[]]}
     a = FlatMapDataset(some, [one]) {f=below, output_types=[DT_INT64], output_shapes=[[]]}
     b = FlatMapDataset(numbers, []) {f=number, output_types=[DT_INT64], output_shapes=[[]]}
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{0}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j fails INVALID_ARGUMENT Function must return a single scalar of dtype DT_VARIANT.",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "FlatMapDataset",
    inputs: &["input_dataset: variant", "other_arguments: Targuments"],
    attrs: &[
        "f: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''",
    ],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    kernel::build(node, move |ctx| {
        Ok(FlatMap {
            input: [Dataset::input(ctx, 0)?],
            function: function.read(ctx, 1)?,
        })
    })
}

struct FlatMap {
    input: [Dataset; 1],
    function: Function,
}

impl Stage for FlatMap {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Flattening {
            input: self.input[0].iterate(place)?,
            function: self.function.clone(),
            place: place.clone(),
            call: None,
            current: None,
        }))
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Flattening {
    input: Box<dyn Iterate>,
    function: Function,
    place: Place,
    call: Option<Call>,
    current: Option<Box<dyn Iterate>>,
}

impl Iterate for Flattening {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            if let Some(current) = &mut self.current {
                match ready!(current.next(waker))? {
                    Some(element) => return Poll::Ready(Ok(Some(element))),
                    None => self.current = None,
                }
            }
            if let Some(call) = &mut self.call {
                let results = ready!(call.poll(waker));
                self.call = None;
                let dataset = returned_dataset(&results?)?;
                self.current = Some(dataset.iterate(&self.place)?);
                continue;
            }
            let Some(element) = ready!(self.input.next(waker))? else {
                return Poll::Ready(Ok(None));
            };
            self.call = Some(self.function.call(&self.place.home, element));
        }
    }
}
