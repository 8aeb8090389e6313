//! `DirectedInterleaveDataset`: the elements of some datasets, in the order that another says.
//!
//! TensorFlow: DirectedInterleaveDataset(selector_input_dataset: variant, data_input_datasets: N * variant) -> handle: variant.
//! The selector gives numbers of datasets; one that has ended is passed over, or is the end of all.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, INFINITE, Iterate, Next, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "as another says",
    "which = int64[6]{1, 0, 1, 1, 0, 0}
     wrong = int64[1]{2}
     x = int64[2]{1, 2}
     y = int64[3]{7, 8, 9}
     selector = TensorSliceDataset([which]) {output_shapes=[[]]}
     bad = TensorSliceDataset([wrong]) {output_shapes=[[]]}
     xs = TensorSliceDataset([x]) {output_shapes=[[]]}
     ys = TensorSliceDataset([y]) {output_shapes=[[]]}
     a = DirectedInterleaveDataset(selector, [xs, ys]) {output_types=[DT_INT64], output_shapes=[[]]}
     b = DirectedInterleaveDataset(selector, [ys, xs]) {output_types=[DT_INT64], output_shapes=[[]], stop_on_empty_dataset=true}
     c = DirectedInterleaveDataset(bad, [xs, ys]) {output_types=[DT_INT64], output_shapes=[[]]}
     n = DatasetCardinality(a)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}
     k = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_k = MakeIterator(c, k)
     next_k = IteratorGetNext(k) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i, make_j, make_k",
        "fetch next_i => int64[]{7}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{8}",
        "fetch next_i => int64[]{9}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => int64[]{1}",
        "fetch next_j => int64[]{7}",
        "fetch next_j => int64[]{2}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
        "fetch next_k fails INVALID_ARGUMENT Selector index out of range: 2 >= 2",
        "fetch n => int64[]{-2}",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "DirectedInterleaveDataset",
    inputs: &[
        "selector_input_dataset: variant",
        "data_input_datasets: N * variant",
    ],
    attrs: &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "N: int >= 1",
        "stop_on_empty_dataset: bool = false",
    ],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let stops = node.attrs.bool("stop_on_empty_dataset")?;
    kernel::build(node, move |ctx| {
        let inputs = (0..ctx.num_inputs()).map(|index| Dataset::input(ctx, index));
        let inputs: Vec<Dataset> = inputs.collect::<Result<_>>()?;
        let (selector, data) = inputs
            .split_first()
            .ok_or_else(|| invalid_argument!("there is no selector"))?;
        let is_number = selector.spec().types == [DType::I64]
            && selector.spec().shapes.iter().all(|shape| shape.admits(&[]));
        ensure!(
            is_number,
            invalid_argument,
            "The selector input must be a dataset of scalar int64 elements."
        );
        for (index, input) in data.iter().enumerate() {
            let (first, types) = (&data[0].spec().types, &input.spec().types);
            ensure!(
                first == types,
                invalid_argument,
                "All inputs must have the same output_dtypes. First input has types {first:?}, and input {index} has types \
                 {types:?}"
            );
        }
        Ok(Directed { inputs, stops })
    })
}

struct Directed {
    /// The selector, then the others.
    inputs: Vec<Dataset>,
    stops: bool,
}

impl Stage for Directed {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        let mut all = self.inputs.iter().map(|input| input.iterate(place));
        let selector = all.next().transpose()?;
        Ok(Box::new(Selecting {
            selector,
            inputs: all.map(|input| input.map(Some)).collect::<Result<_>>()?,
            stops: self.stops,
            selected: None,
        }))
    }

    fn cardinality(&self) -> i64 {
        let data = self.inputs.get(1..).unwrap_or_default();
        match data.iter().any(|input| input.cardinality() == INFINITE) {
            true => INFINITE,
            false => UNKNOWN,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.inputs
    }
}

struct Selecting {
    /// `None` after the end.
    selector: Option<Box<dyn Iterate>>,
    inputs: Vec<Option<Box<dyn Iterate>>>,
    stops: bool,
    selected: Option<usize>,
}

impl Selecting {
    fn end(&mut self) -> Next {
        self.selector = None;
        self.inputs.clear();
        Poll::Ready(Ok(None))
    }
}

impl Iterate for Selecting {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            let Some(selector) = &mut self.selector else {
                return Poll::Ready(Ok(None));
            };
            let selected = match self.selected {
                Some(selected) => selected,
                None => {
                    let Some(element) = ready!(selector.next(waker))? else {
                        return self.end();
                    };
                    let number = element.first().map(Tensor::to_scalar::<i64>);
                    let number = number.transpose()?.unwrap_or(-1);
                    let selected = usize::try_from(number).ok();
                    let selected = selected.filter(|index| *index < self.inputs.len());
                    let Some(selected) = selected else {
                        return Poll::Ready(Err(invalid_argument!(
                            "Selector index out of range: {number} >= {}",
                            self.inputs.len()
                        )));
                    };
                    self.selected = Some(selected);
                    selected
                }
            };
            if let Some(input) = &mut self.inputs[selected] {
                let next = ready!(input.next(waker));
                self.selected = None;
                if let Some(element) = next? {
                    return Poll::Ready(Ok(Some(element)));
                }
                self.inputs[selected] = None;
                if self.stops || self.inputs.iter().all(Option::is_none) {
                    return self.end();
                }
            }
            self.selected = None;
        }
    }
}
