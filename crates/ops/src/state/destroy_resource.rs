//! `DestroyResourceOp`: removes what a handle names from the resource manager.
//! Anonymous variables stay: they end with their handles.
//!
//! TensorFlow: DestroyResourceOp(resource: resource), with attr ignore_lookup_error: bool = true.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result};

use super::NO_GRADIENT;
use super::variable::remove;

pub(crate) static OP: OpDef = OpDef {
    name: "DestroyResourceOp",
    inputs: &["resource: resource"],
    attrs: &["ignore_lookup_error: bool = true"],
    stateful: true,
    gradient: NO_GRADIENT,
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[VARIABLE, QUEUE],
    ..OpDef::BLANK
};

const VARIABLE: Script = script(
    "a variable, twice",
    "v = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='v'}
     w = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='w'}
     one = float[]{1}
     init = AssignVariableOp(v, one)
     keep = AssignVariableOp(w, one)
     gone = DestroyResourceOp(v)
     must = DestroyResourceOp(v) {ignore_lookup_error=false}
     read = ReadVariableOp(v) {dtype=DT_FLOAT}",
    &[
        "run must fails NOT_FOUND Container localhost does not exist.",
        "run gone",
        "run init",
        "run keep",
        "fetch read => float[]{1}",
        "run must",
        "fetch read fails FAILED_PRECONDITION Could not find variable v",
        "run must fails NOT_FOUND Resource localhost/v/",
        "run init",
        "fetch read => float[]{1}",
    ],
);

const QUEUE: Script = script(
    "a closed queue, after which the name stands for a new one",
    "q = FIFOQueueV2() {component_types=[DT_FLOAT], shapes=[[]], shared_name='q'}
     one = float[]{1}
     put = QueueEnqueueV2(q, [one])
     close = QueueCloseV2(q)
     closed = QueueIsClosedV2(q)
     size = QueueSizeV2(q)
     gone = DestroyResourceOp(q)",
    &[
        "run put",
        "run close",
        "fetch closed, size => bool[]{true}; int32[]{1}",
        "run gone",
        "fetch closed, size => bool[]{false}; int32[]{0}",
        "run put",
        "fetch size => int32[]{1}",
    ],
);

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let ignore_lookup_error = node.attrs.bool("ignore_lookup_error")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let handle = ctx.handle(0)?;
        match remove(ctx, handle) {
            Err(status) if ignore_lookup_error && status.code() == Code::NotFound => Ok(()),
            result => result,
        }
    })
}
