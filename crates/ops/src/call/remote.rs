//! `For`, `RemoteCall`, `ToBool`: a counted loop, a call on a device, TensorFlow's idea of truth.
//!
//! TensorFlow: For(start: int32, limit: int32, delta: int32, input: T) -> output: T, with body(i, input) -> output;
//! RemoteCall(target: string, args: Tin) -> output: Tout; ToBool(input: T) -> output: bool. A remote call whose target is
//! a device of this process runs as any call.

use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_graph::example::{bools, ex, f32s, i32s, strs};
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, DeviceName, FuncRef, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{TString, Tensor};

use super::{call_and_finish, take_args, truth};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "For",
        inputs: &["start: int32", "limit: int32", "delta: int32", "input: T"],
        outputs: &["output: T"],
        attrs: &["T: list(type) >= 0", "body: func"],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[], build_for)],
        ..OpDef::BLANK
    },
    OpDef {
        name: "RemoteCall",
        inputs: &["target: string", "args: Tin"],
        outputs: &["output: Tout"],
        attrs: &["Tin: list(type) >= 1", "Tout: list(type) >= 1", "f: func"],
        stateful: true,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[], build_remote)],
        ..OpDef::BLANK
    },
    OpDef {
        name: "ToBool",
        inputs: &["input: T"],
        outputs: &["output: bool"],
        attrs: &["T: type"],
        infer: infer::scalar,
        gradient: Gradient::Stop("truth is not differentiated"),
        kernels: &[cpu(&[], build_to_bool)],
        examples: &[
            ex("a number", &[f32s(&[], &[0.5])], &[bools(&[], &[true])]),
            ex("zero", &[i32s(&[], &[0])], &[bools(&[], &[false])]),
            ex("no text", &[strs(&[], &[""])], &[bools(&[], &[false])]),
            ex("zeros", &[i32s(&[2], &[0])], &[bools(&[], &[true])]),
            ex("nothing", &[i32s(&[0], &[])], &[bools(&[], &[false])]),
        ],
        ..OpDef::BLANK
    },
];

fn build_to_bool(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let value = truth(ctx.input(0)?)?;
        ctx.set(0, Tensor::scalar(value));
        Ok(())
    })
}

fn build_remote(node: &NodeInfo) -> Result<AnyKernel> {
    let func = node.attrs.func("f")?.clone();
    let results = node.attrs.dtypes("Tout")?;
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let target = ctx.view(target);
        let ready = target.and_then(|target| Ok((target, take_args(&mut ctx, 1)?)));
        match ready {
            Ok((None, args)) => call_and_finish(&func, args, ctx),
            Ok((Some(device), args)) => {
                let env = ctx.env().clone();
                let done = Box::new(move |result: Result<Vec<Tensor>>| match result {
                    Ok(tensors) => ctx.finish_with(tensors),
                    Err(status) => ctx.fail(status),
                });
                env.functions
                    .call_on(&device, &func, args, &results, &env, done);
            }
            Err(status) => ctx.fail(status),
        }
    })
}

/// The device to call on, where it is one of another process. What its name leaves open is as in the name of our own.
fn target(view: &mut KernelCtx<'_>) -> Result<Option<String>> {
    let target = view.scalar::<TString>(0)?;
    let target = DeviceName::parse(&String::from_utf8_lossy(&target))?;
    let own = DeviceName::parse(&view.env().device.name)?;
    let mut device = own.clone();
    device.override_with(&target);
    Ok((!device.is_same_task(&own)).then(|| device.to_string()))
}

fn build_for(node: &NodeInfo) -> Result<AnyKernel> {
    let body = Arc::new(node.attrs.func("body")?.clone());
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let bounds = ctx.view(|view| {
            let bound = |index: usize, name: &str| match view.input(index)?.rank() {
                0 => view.scalar::<i32>(index).map(i64::from),
                _ => Err(invalid_argument!(
                    "{name} must be a scalar, not shape {}",
                    view.input(index)?.shape()
                )),
            };
            let (start, limit, delta) =
                (bound(0, "start")?, bound(1, "limit")?, bound(2, "delta")?);
            if delta == 0 && start != limit
                || delta > 0 && start > limit
                || delta < 0 && start < limit
            {
                return Err(invalid_argument!(
                    "Invalid start/limit/delta: {start} {limit} {delta}"
                ));
            }
            Ok((start, limit, delta))
        });
        match bounds.and_then(|bounds| Ok((bounds, take_args(&mut ctx, 3)?))) {
            Ok(((start, limit, delta), values)) => {
                let running = Arc::new(Counted {
                    body: body.clone(),
                    limit,
                    delta,
                    ctx: Mutex::new(Some(ctx)),
                    answer: Mutex::new(Answer::None),
                });
                running.go_on(start, values);
            }
            Err(status) => ctx.fail(status),
        }
    })
}

/// A call's answer on its way to the loop: calls may answer before they return.
enum Answer {
    None,
    /// The loop has left; whoever answers goes on.
    Left,
    Here(Result<Vec<Tensor>>),
}

struct Counted {
    body: Arc<FuncRef>,
    limit: i64,
    delta: i64,
    ctx: Mutex<Option<AsyncCtx>>,
    answer: Mutex<Answer>,
}

impl Counted {
    /// Goes on until a call does not answer at once, without recursion.
    fn go_on(self: &Arc<Counted>, mut at: i64, mut values: Vec<Tensor>) {
        loop {
            let ends = (self.delta > 0 && at >= self.limit)
                || (self.delta < 0 && at <= self.limit)
                || self.delta == 0;
            if ends {
                if let Some(ctx) = self.take_ctx() {
                    ctx.finish_with(values);
                }
                return;
            }
            match self.call(at, values) {
                Some(Ok(next)) => values = next,
                Some(Err(status)) => {
                    if let Some(ctx) = self.take_ctx() {
                        ctx.fail(status);
                    }
                    return;
                }
                None => return,
            }
            at += self.delta;
        }
    }

    /// Calls the body; its values if it answered before this returns.
    fn call(self: &Arc<Counted>, at: i64, values: Vec<Tensor>) -> Option<Result<Vec<Tensor>>> {
        let env = match &*self.ctx.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(ctx) => ctx.env().clone(),
            None => return None,
        };
        if let Err(status) = env.cancel.check() {
            return Some(Err(status));
        }
        let expected = values.len();
        let mut args = Vec::with_capacity(expected + 1);
        args.push(Tensor::scalar(at as i32));
        args.extend(values);
        let running = self.clone();
        let done = Box::new(move |result: Result<Vec<Tensor>>| {
            let result = result.and_then(|values| match values.len() == expected {
                true => Ok(values),
                false => Err(invalid_argument!(
                    "For loop body returned {} arguments. Expected: {expected}",
                    values.len()
                )),
            });
            let mut answer = running
                .answer
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if !matches!(*answer, Answer::Left) {
                *answer = Answer::Here(result);
                return;
            }
            *answer = Answer::None;
            drop(answer);
            match result {
                Ok(values) => running.go_on(at + running.delta, values),
                Err(status) => {
                    if let Some(ctx) = running.take_ctx() {
                        ctx.fail(status);
                    }
                }
            }
        });
        env.functions.call(&self.body, args, &env, done);
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *answer, Answer::None) {
            Answer::Here(values) => Some(values),
            _ => {
                *answer = Answer::Left;
                None
            }
        }
    }

    fn take_ctx(&self) -> Option<AsyncCtx> {
        self.ctx
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
