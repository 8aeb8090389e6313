//! `ReadVariableOp` and `_ReadVariablesOp`: the values of resource variables.
//!
//! TensorFlow: ReadVariableOp(resource: resource) -> value: dtype. Nothing is copied: the value is shared until the
//! variable is updated, and the update copies then.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, failed_precondition};
use tensorfleet_tensor::{DType, Tensor};

use super::variable::{check_dtype, find};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ReadVariableOp",
        inputs: &["resource: resource"],
        outputs: &["value: dtype"],
        attrs: &["dtype: type"],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[], build)],
        scripts: &[ERRORS, UNCHANGED],
        ..READS
    },
    OpDef {
        name: "_ReadVariablesOp",
        inputs: &["resources: N * resource"],
        outputs: &["values: dtypes"],
        attrs: &["N: int >= 0", "dtypes: list(type) >= 1"],
        kernels: &[cpu(&[], build)],
        scripts: &[script(
            "two at once",
            "a = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='a'}
             b = VarHandleOp() {dtype=DT_INT32, shape=[], shared_name='b'}
             one = float[]{1}
             two = int32[]{2}
             set_a = AssignVariableOp(a, one)
             set_b = AssignVariableOp(b, two)
             read = _ReadVariablesOp([a, b]) {dtypes=[DT_FLOAT, DT_INT32]}",
            &[
                "run set_a",
                "fetch read:0 fails FAILED_PRECONDITION b",
                "run set_b",
                "fetch read:0, read:1 => float[]{1}; int32[]{2}",
            ],
        )],
        ..READS
    },
];

const READS: OpDef = OpDef {
    stateful: true,
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const ERRORS: Script = script(
    "no value, wrong dtype",
    "v = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name='v'}
     w = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name='w'}
     c = float[2]{1, 2}
     init = AssignVariableOp(v, c)
     read = ReadVariableOp(v) {dtype=DT_FLOAT}
     other = ReadVariableOp(w) {dtype=DT_FLOAT}",
    &[
        "fetch read fails FAILED_PRECONDITION Could not find variable v. This could mean that the variable has been deleted. In TF1, it can also mean the variable is uninitialized. Debug info: container=localhost, status error message=Container localhost does not exist. (Could not find resource: localhost/v)",
        "run init",
        "fetch other fails FAILED_PRECONDITION container=localhost, status error message=Resource localhost/w/N10tensorflow3VarE does not exist.",
        "fetch read => float[2]{1, 2}",
    ],
);

const UNCHANGED: Script = script(
    "what was read stays what it was",
    "v = VarHandleOp() {dtype=DT_FLOAT, shape=[5], shared_name='v'}
     ones = float[5]{1}
     init = AssignVariableOp(v, ones)
     before = ReadVariableOp(v) {dtype=DT_FLOAT}
     add = AssignAddVariableOp(v, before)
     after = ReadVariableOp(v, ^add) {dtype=DT_FLOAT}",
    &[
        "run init",
        "fetch before, after => float[5]{1}; float[5]{2}",
        "fetch before, after => float[5]{2}; float[5]{4}",
        "fetch ones => float[5]{1}",
    ],
);

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    dense(g.grad(0)?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtypes: Vec<DType> = node.output_types.iter().map(|port| port.dtype).collect();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        for (index, dtype) in dtypes.iter().enumerate() {
            let value = read(ctx, index)?;
            check_dtype(&value, *dtype)?;
            ctx.set(index, value);
        }
        Ok(())
    })
}

fn read(ctx: &KernelCtx<'_>, index: usize) -> Result<Tensor> {
    let value = find(ctx, index).and_then(|variable| {
        let value = variable.read().clone();
        value.ok_or_else(|| variable.missing(&ctx.env().resources))
    });
    value.or_else(|status| explain(ctx, index, &status))
}

/// What TensorFlow says about a variable that is not there.
#[cold]
pub(super) fn explain<R>(
    ctx: &KernelCtx<'_>,
    index: usize,
    status: &tensorfleet_status::Status,
) -> Result<R> {
    if status.code() != tensorfleet_status::Code::NotFound {
        return Err(status.clone());
    }
    let handle = ctx.handle(index)?;
    Err(failed_precondition!(
        "Could not find variable {}. This could mean that the variable has been deleted. In TF1, it can also mean \
         the variable is uninitialized. Debug info: container={}, status error message={}",
        handle.name,
        handle.container,
        status.message()
    ))
}
