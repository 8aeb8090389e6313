//! `OneShotIterator`: an iterator over the dataset that a function makes, which is called when it is first needed.
//!
//! TensorFlow: OneShotIterator() -> handle: resource, with attr dataset_factory: func.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, FuncRef, NodeInfo};
use tensorfleet_status::{Code, Result, Status, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::ITERATOR;
use super::resource::IteratorResource;
use crate::data_flow::keeper::Keeper;
use crate::dataset::call::returned_dataset;
use crate::dataset::home::Home;
use crate::dataset::value::Spec;

const SCRIPT: Script = script(
    "made by a function",
    "fn factory() -> d {
         zero = int64[]{0}
         one = int64[]{1}
         two = int64[]{2}
         d = RangeDataset(zero, two, one) {output_types=[DT_INT64], output_shapes=[[]]}
     }
     fn number() -> n {
         n = int64[]{0}
     }
     a = OneShotIterator() {dataset_factory=factory, output_types=[DT_INT64], output_shapes=[[]]}
     next_a = IteratorGetNext(a) {output_types=[DT_INT64], output_shapes=[[]]}
     b = OneShotIterator() {dataset_factory=number, output_types=[DT_INT64], output_shapes=[[]]}
     next_b = IteratorGetNext(b) {output_types=[DT_INT64], output_shapes=[[]]}
     c = OneShotIterator() {dataset_factory=factory, output_types=[DT_FLOAT], output_shapes=[[]]}
     next_c = IteratorGetNext(c) {output_types=[DT_FLOAT], output_shapes=[[]]}",
    &[
        "fetch next_a => int64[]{0}",
        "fetch next_a => int64[]{1}",
        "fetch next_a fails OUT_OF_RANGE End of sequence",
        "fetch next_b fails INVALID_ARGUMENT",
        "fetch next_c fails INVALID_ARGUMENT Data type mismatch at component 0: expected float but got int64.",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "OneShotIterator",
    outputs: &["handle: resource"],
    attrs: &[
        "dataset_factory: func",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    infer: infer::scalar,
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..ITERATOR
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    ensure!(
        node.attrs.bytes("shared_name")?.is_empty(),
        invalid_argument,
        "OneShotIteratorOp does not currently support the 'shared_name' attr."
    );
    let kernel = Arc::new(OneShot {
        factory: node.attrs.func("dataset_factory")?.clone(),
        spec: Spec::of(node)?,
        keeper: Keeper::of(node)?,
        state: Mutex::new(State::New),
    });
    AnyKernel::later(move |ctx: AsyncCtx| kernel.start(ctx))
}

struct OneShot {
    factory: FuncRef,
    spec: Spec,
    keeper: Keeper<IteratorResource>,
    state: Mutex<State>,
}

enum State {
    New,
    /// The function runs; these wait for it.
    Making(Vec<AsyncCtx>),
    Made,
    Failed(Status),
}

impl OneShot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<OneShot>, ctx: AsyncCtx) {
        {
            let mut state = self.lock();
            match &mut *state {
                State::New => *state = State::Making(Vec::new()),
                State::Making(waiting) => return waiting.push(ctx),
                State::Made => {
                    drop(state);
                    return self.hand_out(ctx);
                }
                State::Failed(status) => {
                    let status = status.clone();
                    drop(state);
                    return ctx.fail(status);
                }
            }
        }
        let home = Home::lasting(ctx.env());
        let env = match home.step(home.cancel.clone()) {
            Ok(env) => env,
            Err(status) => return self.made(ctx, Err(status)),
        };
        let kernel = self.clone();
        let done = Box::new(move |result: Result<Vec<Tensor>>| {
            let mut ctx = ctx;
            let made = result.and_then(|results| kernel.make(&mut ctx, &results, home));
            kernel.made(ctx, made);
        });
        env.functions.call(&self.factory, Vec::new(), &env, done);
    }

    fn make(&self, ctx: &mut AsyncCtx, results: &[Tensor], home: Arc<Home>) -> Result<()> {
        ensure!(
            results.len() == 1,
            invalid_argument,
            "The `dataset_factory` function must return a single scalar of dtype DT_VARIANT."
        );
        let dataset = returned_dataset(results)?;
        let new = |_: &str| Ok(IteratorResource::new(self.spec.clone()));
        let start = |iterator: &IteratorResource| iterator.start(&dataset, home);
        ctx.view(|view| self.keeper.value(view, new, start).map(drop))
    }

    /// Answers those who wait.
    fn made(&self, ctx: AsyncCtx, made: Result<()>) {
        let next = match &made {
            Ok(()) => State::Made,
            // The next step may have more luck.
            Err(status) if status.code() == Code::Cancelled => State::New,
            Err(status) => State::Failed(status.clone()),
        };
        let before = std::mem::replace(&mut *self.lock(), next);
        let mut waiting = vec![ctx];
        if let State::Making(others) = before {
            waiting.extend(others);
        }
        for ctx in waiting {
            match &made {
                Ok(()) => self.hand_out(ctx),
                Err(status) => ctx.fail(status.clone()),
            }
        }
    }

    fn hand_out(&self, mut ctx: AsyncCtx) {
        let gone = |_: &str| {
            Err(invalid_argument!(
                "the container of the one-shot iterator was reset"
            ))
        };
        let handle = ctx.view(|view| self.keeper.value(view, gone, |_| Ok(())));
        ctx.finish(handle.map(|handle| std::iter::once(handle).collect()));
    }
}
