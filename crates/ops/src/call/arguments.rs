//! `_Arg`, `_Retval`: where the arguments of a call come from and its results go to.
//!
//! TensorFlow: _Arg() -> output: T and _Retval(input: T), each with an index. Feeds and fetches of an
//! in-process session are such arguments and results.

use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::PartialShape;

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "_Arg",
        outputs: &["output: T"],
        attrs: &["T: type", "index: int >= 0"],
        stateful: true,
        infer: arg_shape,
        gradient: Gradient::Stop("an argument has no inputs"),
        kernels: &[cpu(&[], build_arg)],
        cost: Cost::Cheap,
        ..OpDef::BLANK
    },
    OpDef {
        name: "_Retval",
        ..RETVAL
    },
    OpDef {
        name: "_DeviceRetval",
        ..RETVAL
    },
];

const RETVAL: OpDef = OpDef {
    inputs: &["input: T"],
    attrs: &["T: type", "index: int >= 0"],
    stateful: true,
    infer: infer::unknown,
    gradient: Gradient::Stop("a result has no outputs"),
    kernels: &[cpu(&[], build_retval)],
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

fn arg_shape(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, PartialShape::unknown());
    Ok(())
}

fn index(node: &NodeInfo) -> Result<usize> {
    let index = node.attrs.int("index")?;
    usize::try_from(index).map_err(|_| invalid_argument!("index {index} must not be negative"))
}

fn build_arg(node: &NodeInfo) -> Result<AnyKernel> {
    let index = index(node)?;
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let tensor = ctx.env().call_frame.arg(index)?.clone();
        if tensor.dtype() != dtype {
            return Err(invalid_argument!(
                "argument {index} must be {dtype}, got {}",
                tensor.dtype()
            ));
        }
        ctx.set(0, tensor);
        Ok(())
    })
}

fn build_retval(node: &NodeInfo) -> Result<AnyKernel> {
    let index = index(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let tensor = ctx.take(0)?;
        ctx.env().call_frame.set_ret(index, tensor)
    })
}
