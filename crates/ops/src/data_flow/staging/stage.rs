//! `Stage`, `Unstage`, `StagePeek`, `StageSize`, `StageClear`: tuples in order of their arrival.
//!
//! TensorFlow: Stage(values: dtypes); Unstage() -> values: dtypes; StagePeek(index: int32) -> values: dtypes; StageSize() ->
//! size: int32; StageClear(); each with capacity, memory_limit, dtypes, container, shared_name.

use std::collections::VecDeque;
use std::sync::Arc;

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo, Resource, Value};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::{ANY_TYPES, AREA, Area, Limits, area_of, byte_size, check_types};
use crate::state::names::SharedName;

const STAGE: OpDef = OpDef {
    scripts: &[script(
        "two tuples",
        "a = float[2]{1, 2}
         b = string[]{x}
         c = float[1]{3}
         zero = int32[]{0}
         one = int32[]{1}
         put = Stage([a, b]) {shared_name='s', dtypes=[DT_FLOAT, DT_STRING]}
         other = Stage([c, b]) {shared_name='s', dtypes=[DT_FLOAT, DT_STRING]}
         large = Stage([a, b]) {shared_name='t', memory_limit=1, dtypes=[DT_FLOAT, DT_STRING]}
         size = StageSize() {shared_name='s', dtypes=[DT_FLOAT, DT_STRING]}
         peek = StagePeek(one) {shared_name='s', dtypes=[DT_FLOAT, DT_STRING]}
         get = Unstage() {shared_name='s', dtypes=[DT_FLOAT, DT_STRING]}
         clear = StageClear() {shared_name='s', dtypes=[DT_FLOAT, DT_STRING]}",
        &[
            "run put",
            "run other",
            "fetch size => int32[]{2}",
            "fetch peek:0 => float[1]{3}",
            "fetch get:0, get:1 => float[2]{1, 2}; string[]{x}",
            "fetch size => int32[]{1}",
            "run clear",
            "fetch size => int32[]{0}",
            "run large fails RESOURCE_EXHAUSTED Staging Area with a memory limit of '1'",
        ],
    )],
    ..AREA
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "Stage",
        inputs: &["values: dtypes"],
        kernels: &[cpu(&[], build_put)],
        ..STAGE
    },
    OpDef {
        name: "StageClear",
        attrs: ANY_TYPES,
        kernels: &[cpu(&[], build_clear)],
        ..STAGE
    },
    OpDef {
        name: "StagePeek",
        inputs: &["index: int32"],
        outputs: &["values: dtypes"],
        kernels: &[cpu(&[], build_peek)],
        ..STAGE
    },
    OpDef {
        name: "StageSize",
        outputs: &["size: int32"],
        attrs: ANY_TYPES,
        infer: infer::scalar,
        kernels: &[cpu(&[], build_size)],
        ..STAGE
    },
    OpDef {
        name: "Unstage",
        outputs: &["values: dtypes"],
        kernels: &[cpu(&[], build_get)],
        ..STAGE
    },
];

/// Tuples in order.
#[derive(Default)]
struct Staged {
    tuples: VecDeque<Vec<Tensor>>,
    bytes: usize,
}

#[derive(Default)]
struct Buffer(Arc<Area<Staged>>);

impl Resource for Buffer {
    fn type_name(&self) -> &'static str {
        "StagingBuffer"
    }
}

/// The tensors among inputs `from..`, moved out.
pub(super) fn values(ctx: &mut AsyncCtx, from: usize) -> Result<Vec<Tensor>> {
    let inputs = ctx.take_inputs().into_iter().skip(from);
    let tensors = inputs.map(|value| match value {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(internal!("a value to stage is missing")),
    });
    tensors.collect()
}

fn build_put(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, limits) = (SharedName::of(node)?, Limits::of(node)?);
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx
            .view(|view| area_of::<Buffer>(view, &names))
            .and_then(|buffer| Ok((buffer, values(&mut ctx, 0)?)));
        match ready {
            Ok((buffer, tuple)) => {
                let mut tuple = Some(tuple);
                let attempt = move |staged: &mut Staged| {
                    let more = byte_size(tuple.as_deref().unwrap_or_default());
                    match limits.admit(staged.tuples.len(), staged.bytes, more) {
                        Ok(true) => {
                            staged.bytes += more;
                            staged.tuples.extend(tuple.take());
                            Some(Ok(Vec::new()))
                        }
                        Ok(false) => None,
                        Err(status) => Some(Err(status)),
                    }
                };
                buffer.0.submit(ctx, Box::new(attempt));
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_get(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, types) = (SharedName::of(node)?, Arc::new(node.output_types.clone()));
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        match ctx.view(|view| area_of::<Buffer>(view, &names)) {
            Ok(buffer) => {
                let types = types.clone();
                let attempt = move |staged: &mut Staged| {
                    let tuple = staged.tuples.pop_front()?;
                    staged.bytes -= byte_size(&tuple);
                    Some(check_types(&types, &tuple).map(|()| tuple))
                };
                buffer.0.submit(ctx, Box::new(attempt));
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_peek(node: &NodeInfo) -> Result<AnyKernel> {
    let (names, types) = (SharedName::of(node)?, Arc::new(node.output_types.clone()));
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let ready = ctx.view(|view| {
            let shape = view.input(0)?.shape();
            if shape.rank() != 0 {
                return Err(invalid_argument!("index must be scalar, got shape {shape}"));
            }
            let index = view.int(0)?;
            let index = usize::try_from(index)
                .map_err(|_| invalid_argument!("the index to peek at is negative: {index}"))?;
            Ok((area_of::<Buffer>(view, &names)?, index))
        });
        match ready {
            Ok((buffer, index)) => {
                let types = types.clone();
                let attempt = move |staged: &mut Staged| {
                    let tuple = staged.tuples.get(index)?.clone();
                    Some(check_types(&types, &tuple).map(|()| tuple))
                };
                buffer.0.submit(ctx, Box::new(attempt));
            }
            Err(status) => ctx.fail(status),
        }
    })
}

fn build_size(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let buffer = area_of::<Buffer>(ctx, &names)?;
        let size = buffer.0.with(|staged| staged.tuples.len());
        ctx.set(0, Tensor::scalar(i32::try_from(size).unwrap_or(i32::MAX)));
        Ok(())
    })
}

fn build_clear(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let buffer = area_of::<Buffer>(ctx, &names)?;
        buffer.0.with(|staged| *staged = Staged::default());
        Ok(())
    })
}
