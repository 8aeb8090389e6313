//! `CountUpTo` and `ResourceCountUpTo`: the value of a counter, which is then increased by one.
//!
//! TensorFlow: CountUpTo(ref: Ref(T)) -> output: T, with attrs limit: int, T: {int32, int64}. OUT_OF_RANGE once the
//! limit is reached.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{DType, Tensor};

use super::NO_GRADIENT;
use super::target::Target;
use super::variable::check_dtype;
use crate::types::INDEX;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "CountUpTo",
        inputs: &["ref: Ref(T)"],
        kernels: &[cpu(&[("T", INDEX)], build)],
        scripts: &[script(
            "to the limit",
            "v = VariableV2() {dtype=DT_INT32, shape=[]}
             three = int32[]{3}
             init = Assign(v, three)
             count = CountUpTo(v) {limit=5}",
            &[
                "run init",
                "fetch count => int32[]{3}",
                "fetch count => int32[]{4}",
                "fetch count fails OUT_OF_RANGE Reached limit of 5",
                "fetch v => int32[]{5}",
            ],
        )],
        ..COUNT
    },
    OpDef {
        name: "ResourceCountUpTo",
        inputs: &["resource: resource"],
        stateful: true,
        kernels: &[cpu(&[("T", INDEX)], build)],
        scripts: &[script(
            "to the limit",
            "v = VarHandleOp() {dtype=DT_INT64, shape=[], shared_name='v'}
             four = int64[]{4}
             init = AssignVariableOp(v, four)
             count = ResourceCountUpTo(v) {limit=5, T=DT_INT64}",
            &[
                "fetch count fails NOT_FOUND localhost/v",
                "run init",
                "fetch count => int64[]{4}",
                "fetch count fails OUT_OF_RANGE Reached limit of 5",
            ],
        )],
        ..COUNT
    },
];

const COUNT: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &["limit: int", "T: {int32, int64}"],
    infer: infer::scalar,
    gradient: NO_GRADIENT,
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let limit = node.attrs.int("limit")?;
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let target = Target::of(ctx, 0)?;
        let before = target.update(ctx, |var| count(var, dtype, limit))?;
        ctx.set(0, before);
        Ok(())
    })
}

fn count(var: &mut Tensor, dtype: DType, limit: i64) -> Result<Tensor> {
    check_dtype(var, dtype)?;
    ensure!(
        var.rank() == 0,
        invalid_argument,
        "input is not a scalar: {}",
        var.shape()
    );
    let value = match dtype {
        DType::I32 => i64::from(var.to_scalar::<i32>()?),
        _ => var.to_scalar::<i64>()?,
    };
    ensure!(value < limit, out_of_range, "Reached limit of {limit}");
    let next = match dtype {
        DType::I32 => Tensor::scalar(
            i32::try_from(value + 1)
                .map_err(|_| internal!("the counter {value} has no successor in {dtype}"))?,
        ),
        _ => Tensor::scalar(value + 1),
    };
    Ok(std::mem::replace(var, next))
}
