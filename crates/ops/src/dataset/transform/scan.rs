//! `ScanDataset`: a function of each element and of what it made of those before.
//!
//! TensorFlow: ScanDataset(input_dataset: variant, initial_state: Tstate, other_arguments: Targuments) -> handle: variant, with
//! f: func, which takes the state and an element and returns the next state and an element.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

use crate::dataset::call::{Call, Function, FunctionOf, mapped};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Dataset, Element, Iterate, Next, Spec, Stage, UNKNOWN};

const SCRIPT: Script = script(
    "sums so far",
    "fn sum(state: int64, x: int64) -> s, y {
         s = AddV2(state, x)
         y = Identity(s)
     }
     fn less(state: int64, x: int64) -> s {
         s = AddV2(state, x)
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(one, ten, three) {output_types=[DT_INT64], output_shapes=[[]]}
     a = ScanDataset(numbers, [ten], []) {f=sum, output_types=[DT_INT64], output_shapes=[[]]}
     b = ScanDataset(numbers, [ten], []) {f=less, output_types=[DT_INT64], output_shapes=[[]]}
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run make_i",
        "fetch next_i => int64[]{11}",
        "fetch next_i => int64[]{15}",
        "fetch next_i => int64[]{22}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "ScanDataset",
    inputs: &[
        "input_dataset: variant",
        "initial_state: Tstate",
        "other_arguments: Targuments",
    ],
    attrs: &[
        "f: func",
        "Tstate: list(type) >= 1",
        "Targuments: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "preserve_cardinality: bool = false",
        "use_default_device: bool = true",
        "metadata: string = ''",
    ],
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    let keeps = node.attrs.bool("preserve_cardinality")?;
    let types = node.attrs.dtypes("Tstate")?;
    let spec = Spec::of(node)?;
    kernel::build(node, move |ctx| {
        let state = (1..1 + types.len()).map(|index| ctx.take(index));
        let state = state.collect::<Result<_>>()?;
        Ok(Scan {
            input: [Dataset::input(ctx, 0)?],
            function: function.read(ctx, 1 + types.len())?,
            types: types.clone(),
            spec: spec.clone(),
            state,
            keeps,
        })
    })
}

struct Scan {
    input: [Dataset; 1],
    function: Function,
    types: Vec<DType>,
    spec: Spec,
    state: Vec<Tensor>,
    keeps: bool,
}

impl Stage for Scan {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Scanning {
            input: self.input[0].iterate(place)?,
            function: self.function.clone(),
            place: place.clone(),
            types: self.types.clone(),
            spec: self.spec.clone(),
            state: self.state.clone(),
            keeps: self.keeps,
            call: None,
        }))
    }

    fn cardinality(&self) -> i64 {
        match self.keeps {
            true => self.input[0].cardinality(),
            false => UNKNOWN,
        }
    }

    fn inputs(&self) -> &[Dataset] {
        &self.input
    }
}

struct Scanning {
    input: Box<dyn Iterate>,
    function: Function,
    place: Place,
    types: Vec<DType>,
    spec: Spec,
    state: Vec<Tensor>,
    keeps: bool,
    call: Option<Call>,
}

impl Scanning {
    /// Takes the state off what the function returned.
    fn take(&mut self, mut results: Element) -> Result<Element> {
        let count = self.types.len();
        let wanted = count + self.spec.types.len();
        ensure!(
            results.len() == wanted,
            invalid_argument,
            "scan_func returned {} elements, but expected {wanted} elements.",
            results.len()
        );
        let element = results.split_off(count);
        for (index, (value, dtype)) in results.iter().zip(&self.types).enumerate() {
            check_type(index, *dtype, value)?;
        }
        self.state = results;
        for (index, (value, dtype)) in element.iter().zip(&self.spec.types).enumerate() {
            check_type(count + index, *dtype, value)?;
        }
        for (index, (value, shape)) in element.iter().zip(&self.spec.shapes).enumerate() {
            ensure!(
                shape.admits(value.shape()),
                invalid_argument,
                "Got wrong shape for scan_func return value {} (expected {shape}, got {}).",
                count + index,
                value.shape()
            );
        }
        Ok(element)
    }
}

fn check_type(index: usize, wanted: DType, value: &Tensor) -> Result<()> {
    ensure!(
        value.dtype() == wanted,
        invalid_argument,
        "Got wrong type for scan_func return value {index} (expected {wanted}, got {}).",
        value.dtype()
    );
    Ok(())
}

impl Iterate for Scanning {
    fn next(&mut self, waker: &Waker) -> Next {
        let call = match &mut self.call {
            Some(call) => call,
            None => {
                let Some(element) = ready!(self.input.next(waker))? else {
                    return Poll::Ready(Ok(None));
                };
                let args = self.state.iter().cloned().chain(element).collect();
                self.call.insert(self.function.call(&self.place.home, args))
            }
        };
        let results = ready!(call.poll(waker));
        self.call = None;
        Poll::Ready(match mapped(results, self.keeps)? {
            Some(results) => self.take(results).map(Some),
            None => Ok(None),
        })
    }
}
