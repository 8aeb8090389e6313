//! `FilterDataset`, `ParallelFilterDataset`, `TakeWhileDataset`: elements for which a function is true, all or only those
//! before the first for which it is not.
//!
//! TensorFlow: FilterDataset(input_dataset: variant, other_arguments: Targuments) -> handle: variant, with predicate: func;
//! TakeWhileDataset the same, ParallelFilterDataset with num_parallel_calls: int64.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};

use crate::dataset::call::{Call, Function, FunctionOf, truth};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{AtEnd, Dataset, Element, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "odd ones",
    "fn odd(x: int64) -> y {
         two = int64[]{2}
         one = int64[]{1}
         m = FloorMod(x, two)
         y = Equal(m, one)
     }
     fn less(x: int64, limit: int64) -> y {
         y = Less(x, limit)
     }
     fn number(x: int64) -> y {
         y = Identity(x)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, ten, one) {output_types=[DT_INT64], output_shapes=[[]]}
     a = FilterDataset(numbers, []) {predicate=odd, output_types=[DT_INT64], output_shapes=[[]]}
     b = ParallelFilterDataset(numbers, [], two) {predicate=odd, output_types=[DT_INT64], output_shapes=[[]], deterministic='true'}
     c = TakeWhileDataset(numbers, [three]) {predicate=less, output_types=[DT_INT64], output_shapes=[[]]}
     d = FilterDataset(numbers, []) {predicate=number, output_types=[DT_INT64], output_shapes=[[]]}
     e = TakeWhileDataset(numbers, []) {predicate=number, output_types=[DT_INT64], output_shapes=[[]]}
     count = DatasetCardinality(a)
     keep = bool[]{false}
     b_all = BatchDatasetV2(b, ten, keep) {output_types=[DT_INT64], output_shapes=[[?]]}
     five = DatasetToSingleElement(b_all) {output_types=[DT_INT64], output_shapes=[[?]]}
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}
     l = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_l = MakeIterator(d, l)
     next_l = IteratorGetNext(l) {output_types=[DT_INT64], output_shapes=[[]]}
     m = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_m = MakeIterator(e, m)
     next_m = IteratorGetNext(m) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_k, make_l, make_m",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{3}",
        "fetch next_i => int64[]{5}",
        "fetch next_i => int64[]{7}",
        "fetch next_i => int64[]{9}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch five => int64[5]{1, 3, 5, 7, 9}",
        "fetch next_k => int64[]{0}",
        "fetch next_k => int64[]{1}",
        "fetch next_k => int64[]{2}",
        "fetch next_k fails OUT_OF_RANGE End of sequence",
        "fetch next_l fails INVALID_ARGUMENT Filter predicate `f` must return a scalar bool.",
        "fetch next_m fails INVALID_ARGUMENT `predicate` must returns a scalar bool tensor.",
        "fetch count => int64[]{-2}",
    ],
);

const FILTER: OpDef = OpDef {
    inputs: &["input_dataset: variant", "other_arguments: Targuments"],
    attrs: &[
        "predicate: func",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''",
    ],
    scripts: &[SCRIPT],
    ..DATASET
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "FilterDataset",
        kernels: &[cpu(&[], |node| build(node, false))],
        ..FILTER
    },
    OpDef {
        name: "ParallelFilterDataset",
        inputs: &[
            "input_dataset: variant",
            "other_arguments: Targuments",
            "num_parallel_calls: int64",
        ],
        attrs: &[
            "predicate: func",
            "deterministic: string = 'default'",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        kernels: &[cpu(&[], |node| build(node, false))],
        ..FILTER
    },
    OpDef {
        name: "TakeWhileDataset",
        kernels: &[cpu(&[], |node| build(node, true))],
        ..FILTER
    },
];

fn build(node: &NodeInfo, stops: bool) -> Result<AnyKernel> {
    let function = FunctionOf::attrs(node, "predicate", "Targuments")?;
    kernel::build(node, move |ctx| {
        Ok(Filter {
            input: [Dataset::input(ctx, 0)?],
            function: function.read(ctx, 1)?,
            stops,
        })
    })
}

struct Filter {
    input: [Dataset; 1],
    function: Function,
    /// Whether the first element for which the function is false ends the sequence.
    stops: bool,
}

impl Stage for Filter {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Filtering {
            input: self.input[0].iterate(place)?,
            function: self.function.clone(),
            place: place.clone(),
            stops: self.stops,
            asked: None,
        }))
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Filtering {
    input: Box<dyn Iterate>,
    function: Function,
    place: Place,
    stops: bool,
    /// The element that the function is asked about.
    asked: Option<(Element, Call)>,
}

impl Iterate for Filtering {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            if let Some((_, call)) = &mut self.asked {
                let results = ready!(call.poll(waker));
                let element = self.asked.take().map(|(element, _)| element);
                match truth(&results?) {
                    Some(true) => return Poll::Ready(Ok(element)),
                    Some(false) if self.stops => {
                        self.input = Box::new(AtEnd);
                        return Poll::Ready(Ok(None));
                    }
                    Some(false) => {}
                    None if self.stops => {
                        return Poll::Ready(Err(invalid_argument!(
                            "`predicate` must returns a scalar bool tensor."
                        )));
                    }
                    None => {
                        return Poll::Ready(Err(invalid_argument!(
                            "Filter predicate `f` must return a scalar bool."
                        )));
                    }
                }
            }
            let Some(element) = ready!(self.input.next(waker))? else {
                return Poll::Ready(Ok(None));
            };
            let call = self.function.call(&self.place.home, element.clone());
            self.asked = Some((element, call));
        }
    }
}
