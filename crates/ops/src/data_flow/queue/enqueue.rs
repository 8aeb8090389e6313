//! `QueueEnqueueV2`, `QueueEnqueueManyV2` and their older forms: one element, or one for each row.
//!
//! TensorFlow: QueueEnqueueV2(handle: resource, components: Tcomponents), with attr timeout_ms: int = -1, which must stay
//! so. Waits while the queue is full; a closed queue takes nothing more.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::spec::Kind;
use super::waiting::{Queue, Rows, Work};
use super::{BY_HANDLE, BY_REF};
use crate::data_flow::keeper::resource;

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "QueueEnqueue",
        inputs: &["handle: Ref(string)", "components: Tcomponents"],
        attrs: ATTRS,
        kernels: &[cpu(&[], build_one)],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "QueueEnqueueMany",
        inputs: &["handle: Ref(string)", "components: Tcomponents"],
        attrs: ATTRS,
        kernels: &[cpu(&[], build_many)],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "QueueEnqueueManyV2",
        inputs: &["handle: resource", "components: Tcomponents"],
        attrs: ATTRS,
        kernels: &[cpu(&[], build_many)],
        scripts: &[ROWS, WRONG_MANY],
        ..BY_HANDLE
    },
    OpDef {
        name: "QueueEnqueueV2",
        inputs: &["handle: resource", "components: Tcomponents"],
        attrs: ATTRS,
        kernels: &[cpu(&[], build_one)],
        cost: Cost::Cheap,
        scripts: &[IN_ORDER, WRONG],
        ..BY_HANDLE
    },
];

const ATTRS: &[&str] = &["Tcomponents: list(type) >= 1", "timeout_ms: int = -1"];

const BY_NAME: Script = script(
    "by reference to a name",
    "q = FIFOQueue() {component_types=[DT_FLOAT]}
     x = float[2]{1, 2}
     one = QueueEnqueue(q, [x])
     many = QueueEnqueueMany(q, [x])
     got = QueueDequeue(q) {component_types=[DT_FLOAT]}",
    &[
        "run one",
        "run many",
        "fetch got => float[2]{1, 2}",
        "fetch got => float[]{1}",
        "fetch got => float[]{2}",
    ],
);

const IN_ORDER: Script = script(
    "first in, first out",
    "q = FIFOQueueV2() {component_types=[DT_FLOAT, DT_STRING]}
     x = float[2]{1, 2}
     y = float[]{3}
     s = string[]{a}
     t = string[1]{b}
     a = QueueEnqueueV2(q, [x, s])
     b = QueueEnqueueV2(q, [y, t], ^a)
     size = QueueSizeV2(q)
     got = QueueDequeueV2(q) {component_types=[DT_FLOAT, DT_STRING]}",
    &[
        "run b",
        "fetch size => int32[]{2}",
        "fetch got:0, got:1 => float[2]{1, 2}; string[]{a}",
        "fetch got:0, got:1 => float[]{3}; string[1]{b}",
        "fetch size => int32[]{0}",
    ],
);

const ROWS: Script = script(
    "one element for each row",
    "q = FIFOQueueV2() {component_types=[DT_INT64, DT_BOOL], shapes=[[2], []]}
     x = int64[3,2]{1, 2, 3, 4, 5, 6}
     b = bool[3]{true, false, true}
     put = QueueEnqueueManyV2(q, [x, b])
     none = int64[0,2]{}
     nob = bool[0]{}
     put_none = QueueEnqueueManyV2(q, [none, nob])
     size = QueueSizeV2(q)
     got = QueueDequeueV2(q) {component_types=[DT_INT64, DT_BOOL]}",
    &[
        "run put, put_none",
        "fetch size => int32[]{3}",
        "fetch got:0, got:1 => int64[2]{1, 2}; bool[]{true}",
        "fetch got:0, got:1 => int64[2]{3, 4}; bool[]{false}",
    ],
);

const WRONG: Script = script(
    "what does not fit",
    "q = FIFOQueueV2() {component_types=[DT_FLOAT], shapes=[[2]]}
     x = float[3]{1, 2, 3}
     y = float[2]{1, 2}
     i = int32[2]{1, 2}
     shape = QueueEnqueueV2(q, [x])
     dtype = QueueEnqueueV2(q, [i])
     count = QueueEnqueueV2(q, [y, y])
     timeout = QueueEnqueueV2(q, [y]) {timeout_ms=10}
     size = QueueSizeV2(q)
     close = QueueCloseV2(q)
     late = QueueEnqueueV2(q, [y])",
    &[
        "run shape fails INVALID_ARGUMENT Shape mismatch in tuple component 0. Expected [2], got [3]",
        "run dtype fails INVALID_ARGUMENT",
        "run count fails INVALID_ARGUMENT",
        "run timeout fails INVALID_ARGUMENT Timeout not supported yet.",
        "fetch size => int32[]{0}",
        "run close",
        "run late fails CANCELLED is closed.",
    ],
);

const WRONG_MANY: Script = script(
    "rows that do not fit",
    "q = FIFOQueueV2() {component_types=[DT_FLOAT, DT_FLOAT]}
     r = FIFOQueueV2() {component_types=[DT_FLOAT], shapes=[[2]]}
     x = float[3]{1, 2, 3}
     y = float[2]{1, 2}
     differ = QueueEnqueueManyV2(q, [x, y])
     shape = QueueEnqueueManyV2(r, [x])
     size = QueueSizeV2(q)",
    &[
        "run differ fails INVALID_ARGUMENT All input tensors must have the same size in the 0th dimension. Component 1 has 2, and should have 3",
        "run shape fails INVALID_ARGUMENT Shape mismatch in tuple component 0. Expected [3,2], got [3]",
        "fetch size => int32[]{0}",
    ],
);

fn build_one(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, false)
}

fn build_many(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, true)
}

fn build(node: &NodeInfo, batched: bool) -> Result<AnyKernel> {
    check_timeout(node)?;
    AnyKernel::later(
        move |mut ctx: AsyncCtx| match ctx.view(|view| prepare(view, batched)) {
            Ok((queue, rows)) => queue.submit(ctx, Work::Enqueue(rows)),
            Err(status) => ctx.fail(status),
        },
    )
}

/// Timeouts of single operations: TensorFlow has the attr and no more.
pub(super) fn check_timeout(node: &NodeInfo) -> Result<()> {
    ensure!(
        node.attrs.int("timeout_ms")? == -1,
        invalid_argument,
        "Timeout not supported yet."
    );
    Ok(())
}

fn prepare(ctx: &mut KernelCtx<'_>, batched: bool) -> Result<(Arc<Queue>, Rows)> {
    let queue = resource::<Queue>(ctx)?;
    let components = (1..ctx.num_inputs()).map(|index| ctx.take(index));
    let components: Vec<Tensor> = components.collect::<Result<_>>()?;
    queue.spec.check(&components, batched)?;
    if queue.spec.kind == Kind::Priority {
        check_priority(&components, batched)?;
    }
    let rows = match batched {
        true => Rows::many(components),
        false => Rows::one(components),
    };
    Ok((queue, rows))
}

fn check_priority(components: &[Tensor], batched: bool) -> Result<()> {
    let rank = usize::from(batched);
    match components.first() {
        Some(first) if first.rank() != rank => Err(invalid_argument!(
            "Expected the priority element to be a {}, but received shape: {}",
            if batched { "vector" } else { "scalar" },
            first.shape()
        )),
        _ => Ok(()),
    }
}
