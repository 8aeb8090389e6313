//! `GeneratorDataset`: what a function returns again and again, until it says OUT_OF_RANGE.
//!
//! TensorFlow: GeneratorDataset(init_func_other_args, next_func_other_args, finalize_func_other_args) -> handle: variant, with
//! init_func() -> state, next_func(state) -> element and finalize_func(state), which is called at the end. Programs whose
//! generator is Python's have a Python function in these, and fail where that is called.
//!
//! Where we differ: an iterator that is left before its end does not call finalize_func.

use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Code, Result};

use crate::dataset::call::{Call, Function, FunctionOf};
use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Element, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "out of a queue that ends",
    "fn init(start: int64) -> s {
         s = Identity(start)
     }
     fn next(s: int64, v: resource) -> y {
         one = int64[]{1}
         q = QueueDequeueV2(v) {component_types=[DT_INT64]}
         y = AddV2(s, q)
     }
     fn end(s: int64) -> s {
     }
     five = int64[]{5}
     xs = int64[2]{1, 2}
     q = FIFOQueueV2() {component_types=[DT_INT64], shapes=[[]]}
     put = QueueEnqueueManyV2(q, [xs])
     close = QueueCloseV2(q)
     a = GeneratorDataset([five], [q], []) {init_func=init, next_func=next, finalize_func=end, output_types=[DT_INT64], output_shapes=[[]]}
     n = DatasetCardinality(a)
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}",
    &[
        "run put",
        "run close",
        "run make_i",
        "fetch next_i => int64[]{6}",
        "fetch next_i => int64[]{7}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch n => int64[]{-2}",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "GeneratorDataset",
    inputs: &[
        "init_func_other_args: Tinit_func_args",
        "next_func_other_args: Tnext_func_args",
        "finalize_func_other_args: Tfinalize_func_args",
    ],
    attrs: &[
        "init_func: func",
        "next_func: func",
        "finalize_func: func",
        "Tinit_func_args: list(type) >= 0",
        "Tnext_func_args: list(type) >= 0",
        "Tfinalize_func_args: list(type) >= 0",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''",
    ],
    stateful: true,
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..DATASET
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let init = FunctionOf::attrs(node, "init_func", "Tinit_func_args")?;
    let next = FunctionOf::attrs(node, "next_func", "Tnext_func_args")?;
    let finalize = FunctionOf::attrs(node, "finalize_func", "Tfinalize_func_args")?;
    kernel::build(node, move |ctx| {
        let (nexts, finalizes) = (init.end(0), next.end(init.end(0)));
        Ok(Generator {
            init: init.read(ctx, 0)?,
            next: next.read(ctx, nexts)?,
            finalize: finalize.read(ctx, finalizes)?,
        })
    })
}

#[derive(Clone)]
struct Generator {
    init: Function,
    next: Function,
    finalize: Function,
}

impl Stage for Generator {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Generating {
            functions: self.clone(),
            place: place.clone(),
            state: None,
            call: None,
            ends: false,
            ended: false,
        }))
    }
}

struct Generating {
    functions: Generator,
    place: Place,
    /// `None` until the first function returned it.
    state: Option<Element>,
    call: Option<Call>,
    /// Whether the call is the last one.
    ends: bool,
    ended: bool,
}

impl Iterate for Generating {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            let home = &self.place.home;
            let call = match (&mut self.call, &self.state) {
                (Some(call), _) => call,
                (call, None) => call.insert(self.functions.init.call(home, Vec::new())),
                (call, Some(state)) if self.ends => {
                    call.insert(self.functions.finalize.call(home, state.clone()))
                }
                (call, Some(state)) => call.insert(self.functions.next.call(home, state.clone())),
            };
            let results = ready!(call.poll(waker));
            self.call = None;
            match results {
                Ok(state) if self.state.is_none() => self.state = Some(state),
                Ok(_) if self.ends => self.ended = true,
                Ok(element) => return Poll::Ready(Ok(Some(element))),
                Err(status)
                    if status.code() == Code::OutOfRange && self.state.is_some() && !self.ends =>
                {
                    self.ends = true;
                }
                Err(status) => return Poll::Ready(Err(status)),
            }
        }
    }
}
