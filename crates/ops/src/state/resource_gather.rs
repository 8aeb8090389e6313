//! `ResourceGather` and `ResourceGatherNd`: rows of a resource variable, by index and by coordinates.
//!
//! TensorFlow: ResourceGather(resource: resource, indices: Tindices) -> output: dtype, with attrs batch_dims: int = 0,
//! validate_indices: bool = true; ResourceGatherNd(resource: resource, indices: Tindices) -> output: dtype. The rows
//! are copied under the variable's shared lock, so that the whole is never held and updates need not copy it.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

use super::variable::{check_dtype, find};
use crate::array::gather::gather_rows;
use crate::array::gather_nd::gather_nd;
use crate::array::nd::BadIndices;
use crate::math::calculus::first_of;
use crate::types::{INDEX, MOVABLE};

const INDICES: (&str, &[DType]) = ("Tindices", INDEX);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ResourceGather",
        attrs: &[
            "batch_dims: int = 0",
            "validate_indices: bool = true",
            "dtype: type",
            "Tindices: {int32, int64}",
        ],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("dtype", MOVABLE), INDICES], build_gather)],
        scripts: &[ROWS, BATCHES],
        ..GATHER
    },
    OpDef {
        name: "ResourceGatherNd",
        attrs: &["dtype: type", "Tindices: {int32, int64}"],
        gradient: Gradient::Rule(gradient_nd),
        kernels: &[cpu(&[("dtype", MOVABLE), INDICES], build_gather_nd)],
        scripts: &[COORDINATES],
        ..GATHER
    },
];

const GATHER: OpDef = OpDef {
    inputs: &["resource: resource", "indices: Tindices"],
    outputs: &["output: dtype"],
    stateful: true,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const ROWS: Script = script(
    "rows",
    "v = VarHandleOp() {dtype=float, shape=[3,2], shared_name='v'}
     c = float[3,2]{1, 2, 3, 4, 5, 6}
     init = AssignVariableOp(v, c)
     i = int32[1,3]{2, 0, 2}
     rows = ResourceGather(v, i) {dtype=float}
     one = int64[]{1}
     row = ResourceGather(v, one) {dtype=float}
     none = int32[0]{}
     nothing = ResourceGather(v, none) {dtype=float}
     far = int32[2]{0, 5}
     bad = ResourceGather(v, far) {dtype=float}",
    &[
        "fetch rows fails NOT_FOUND Container localhost does not exist. (Could not find resource: localhost/v)",
        "run init",
        "fetch rows => float[1,3,2]{5, 6, 1, 2, 5, 6}",
        "fetch row, nothing => float[2]{3, 4}; float[0,2]{}",
        "fetch bad fails INVALID_ARGUMENT indices[1] = 5 is not in [0, 3)",
    ],
);

const BATCHES: Script = script(
    "in batches",
    "v = VarHandleOp() {dtype=string, shape=[2,2], shared_name='v'}
     c = string[2,2]{a, b, c, d}
     init = AssignVariableOp(v, c)
     i = int32[2,3]{0, 1, 1, 1, 0, 1}
     rows = ResourceGather(v, i) {dtype=string, batch_dims=1}",
    &["run init", "fetch rows => string[2,3]{a, b, b, d, c, d}"],
);

const COORDINATES: Script = script(
    "elements and rows",
    "v = VarHandleOp() {dtype=int32, shape=[2,2], shared_name='v'}
     c = int32[2,2]{1, 2, 3, 4}
     init = AssignVariableOp(v, c)
     i = int64[2,2]{1, 0, 0, 1}
     elements = ResourceGatherNd(v, i) {dtype=int32}
     j = int32[1,1]{1}
     rows = ResourceGatherNd(v, j) {dtype=int32}
     far = int32[2,1]{0, 2}
     bad = ResourceGatherNd(v, far) {dtype=int32}",
    &[
        "fetch rows fails NOT_FOUND localhost/v",
        "run init",
        "fetch elements, rows => int32[2]{3, 2}; int32[1,2]{3, 4}",
        "fetch bad fails INVALID_ARGUMENT indices[1] = [2] does not index into param shape [2,2]",
    ],
);

/// The rows of the gradient belong to the rows that were gathered.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, handle, indices) = (g.grad(0)?, g.input(0), g.input(1));
    let dense_shape = g.apply("VariableShape", &[handle])?;
    let zero = g.builder().constant(Tensor::scalar(0i32))?;
    let size = g.apply("Size", &[indices])?;
    let size = g.apply("ExpandDims", &[size, zero])?;
    let (begin, end, step) = (g.ints(&[1])?, g.ints(&[0])?, g.ints(&[1])?);
    let row = g.builder().op("StridedSlice").input(dense_shape);
    let row = row.input(begin).input(end).input(step);
    let row = row.attr("end_mask", 1i64).output()?;
    let shape = g.builder().op("ConcatV2").list(&[size, row]).input(zero);
    let shape = shape.output()?;
    let values = g.apply("Reshape", &[grad, shape])?;
    let indices = g.apply("Reshape", &[indices, size])?;
    let rows = Grad::Rows {
        values,
        indices,
        dense_shape,
    };
    Ok(vec![Some(rows), None])
}

/// The gradients at the coordinates that were gathered.
fn gradient_nd(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, handle, indices) = (g.grad(0)?, g.input(0), g.input(1));
    let index_type = g.dtype(indices);
    let node = g.builder().op("VariableShape").input(handle);
    let shape = node.attr("out_type", index_type).output()?;
    let spread = g.apply("ScatterNd", &[indices, grad, shape])?;
    first_of(2, spread)
}

fn build_gather(node: &NodeInfo) -> Result<AnyKernel> {
    let batch_dims = node.attrs.int("batch_dims")?;
    ensure!(
        batch_dims >= 0,
        invalid_argument,
        "batch_dims is negative ({batch_dims})"
    );
    build(node, move |ctx, params, indices| {
        gather_rows(ctx, params, indices, batch_dims, batch_dims)
    })
}

fn build_gather_nd(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |ctx, params, indices| {
        gather_nd(ctx, params, indices, BadIndices::Fail)
    })
}

fn build(
    node: &NodeInfo,
    gather: impl Fn(&KernelCtx<'_>, &Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let variable = find(ctx, 0)?;
        let rows = match &*variable.read() {
            Some(params) => {
                check_dtype(params, dtype)?;
                gather(ctx, params, ctx.input(1)?)?
            }
            None => return Err(variable.missing(&ctx.env().resources)),
        };
        ctx.set(0, rows);
        Ok(())
    })
}
