//! `VariableShape`: the shape of a resource variable's value.
//!
//! TensorFlow: VariableShape(input: resource) -> output: out_type, with attr out_type: {int32, int64} = DT_INT32.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::variable::find;

pub(crate) static OP: OpDef = OpDef {
    name: "VariableShape",
    inputs: &["input: resource"],
    outputs: &["output: out_type"],
    attrs: &["out_type: {int32, int64} = DT_INT32"],
    stateful: true,
    gradient: Gradient::Stop("a shape has no gradient"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "of a matrix, a scalar, nothing",
        "v = VarHandleOp() {dtype=DT_FLOAT, shape=?, shared_name='v'}
         m = float[2,0]{}
         s = float[]{1}
         set_m = AssignVariableOp(v, m)
         set_s = AssignVariableOp(v, s)
         short = VariableShape(v)
         long = VariableShape(v) {out_type=DT_INT64}",
        &[
            "fetch short fails NOT_FOUND localhost/v",
            "run set_m",
            "fetch short, long => int32[2]{2, 0}; int64[2]{2, 0}",
            "run set_s",
            "fetch short => int32[0]{}",
        ],
    )],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let out_type = node.attrs.dtype("out_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let variable = find(ctx, 0)?;
        let shape = match &*variable.read() {
            Some(value) => value.shape().clone(),
            None => return Err(variable.missing(&ctx.env().resources)),
        };
        ctx.set(0, dims(&shape, out_type)?);
        Ok(())
    })
}

fn dims(shape: &Shape, out_type: DType) -> Result<Tensor> {
    if out_type == DType::I64 {
        return Ok(Tensor::vector(shape.dims()));
    }
    let short = shape.iter().map(|dim| {
        i32::try_from(*dim).map_err(|_| {
            invalid_argument!("VariableShape output is int32 but a dimension is {dim}")
        })
    });
    Ok(Tensor::vector(&short.collect::<Result<Vec<i32>>>()?))
}
