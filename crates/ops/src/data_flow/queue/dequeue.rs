//! `QueueDequeueV2`, `QueueDequeueManyV2`, `QueueDequeueUpToV2` and their older forms: one element, `n`, or what is left.
//!
//! TensorFlow: QueueDequeueV2(handle: resource) -> components: component_types; QueueDequeueManyV2(handle: resource,
//! n: int32) -> components: component_types, each with a new dimension 0. Waits for elements; a closed queue that has too few
//! is OUT_OF_RANGE, except that QueueDequeueUpToV2 then takes what is left (TensorFlow's priority queue fails even then).

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::DType;

use super::enqueue::check_timeout;
use super::waiting::{Queue, Work};
use super::{BY_HANDLE, BY_REF};
use crate::data_flow::keeper::resource;

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "QueueDequeue",
        inputs: &["handle: Ref(string)"],
        kernels: &[cpu(&[], build_one)],
        scripts: &[BY_NAME],
        ..DEQUEUE_REF
    },
    OpDef {
        name: "QueueDequeueMany",
        inputs: &["handle: Ref(string)", "n: int32"],
        kernels: &[cpu(&[], build_many)],
        scripts: &[BY_NAME],
        ..DEQUEUE_REF
    },
    OpDef {
        name: "QueueDequeueManyV2",
        inputs: &["handle: resource", "n: int32"],
        kernels: &[cpu(&[], build_many)],
        scripts: &[MANY, WRONG_MANY],
        ..DEQUEUE
    },
    OpDef {
        name: "QueueDequeueUpTo",
        inputs: &["handle: Ref(string)", "n: int32"],
        kernels: &[cpu(&[], build_up_to)],
        scripts: &[BY_NAME],
        ..DEQUEUE_REF
    },
    OpDef {
        name: "QueueDequeueUpToV2",
        inputs: &["handle: resource", "n: int32"],
        kernels: &[cpu(&[], build_up_to)],
        scripts: &[UP_TO],
        ..DEQUEUE
    },
    OpDef {
        name: "QueueDequeueV2",
        inputs: &["handle: resource"],
        kernels: &[cpu(&[], build_one)],
        cost: Cost::Cheap,
        scripts: &[CLOSED],
        ..DEQUEUE
    },
];

const DEQUEUE: OpDef = OpDef {
    outputs: &["components: component_types"],
    attrs: &["component_types: list(type) >= 1", "timeout_ms: int = -1"],
    ..BY_HANDLE
};

const DEQUEUE_REF: OpDef = OpDef {
    stateful: BY_REF.stateful,
    ..DEQUEUE
};

const BY_NAME: Script = script(
    "by reference to a name",
    "q = FIFOQueue() {component_types=[DT_INT32], shapes=[[]]}
     x = int32[4]{1, 2, 3, 4}
     two = int32[]{2}
     put = QueueEnqueueMany(q, [x])
     one = QueueDequeue(q) {component_types=[DT_INT32]}
     many = QueueDequeueMany(q, two) {component_types=[DT_INT32]}
     rest = QueueDequeueUpTo(q, two) {component_types=[DT_INT32]}
     close = QueueClose(q)",
    &[
        "run put",
        "fetch one => int32[]{1}",
        "fetch many => int32[2]{2, 3}",
        "run close",
        "fetch rest => int32[1]{4}",
    ],
);

const CLOSED: Script = script(
    "what is left may be taken from a closed queue",
    "q = FIFOQueueV2() {component_types=[DT_INT32]}
     x = int32[]{1}
     put = QueueEnqueueV2(q, [x])
     close = QueueCloseV2(q)
     got = QueueDequeueV2(q) {component_types=[DT_INT32]}
     dtype = QueueDequeueV2(q) {component_types=[DT_FLOAT]}
     count = QueueDequeueV2(q) {component_types=[DT_INT32, DT_INT32]}",
    &[
        "run put",
        "run close",
        "fetch dtype fails INVALID_ARGUMENT",
        "fetch count fails INVALID_ARGUMENT",
        "fetch got => int32[]{1}",
        "fetch got fails OUT_OF_RANGE is closed and has insufficient elements (requested 1, current size 0)",
    ],
);

const MANY: Script = script(
    "many at once",
    "q = FIFOQueueV2() {component_types=[DT_INT32, DT_STRING], shapes=[[2], []]}
     x = int32[3,2]{1, 2, 3, 4, 5, 6}
     s = string[3]{a, b, c}
     put = QueueEnqueueManyV2(q, [x, s])
     two = int32[]{2}
     zero = int32[]{0}
     got = QueueDequeueManyV2(q, two) {component_types=[DT_INT32, DT_STRING]}
     none = QueueDequeueManyV2(q, zero) {component_types=[DT_INT32, DT_STRING]}
     close = QueueCloseV2(q)
     size = QueueSizeV2(q)",
    &[
        "run put",
        "fetch got:0, got:1 => int32[2,2]{1, 2, 3, 4}; string[2]{a, b}",
        "fetch none:0, none:1 => int32[0,2]{}; string[0]{}",
        "run close",
        "fetch got:0 fails OUT_OF_RANGE is closed and has insufficient elements (requested 2, current size 1)",
        "fetch size => int32[]{1}",
    ],
);

const WRONG_MANY: Script = script(
    "numbers that are none, shapes that are not known",
    "q = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]]}
     r = FIFOQueueV2() {component_types=[DT_INT32]}
     minus = int32[]{-1}
     one = int32[]{1}
     a = QueueDequeueManyV2(q, minus) {component_types=[DT_INT32]}
     b = QueueDequeueManyV2(r, one) {component_types=[DT_INT32]}
     c = QueueDequeueUpToV2(q, minus) {component_types=[DT_INT32]}",
    &[
        "fetch a fails INVALID_ARGUMENT DequeueManyOp requested -1 < 0 elements",
        "fetch b fails INVALID_ARGUMENT FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.",
        "fetch c fails INVALID_ARGUMENT DequeueUpToOp requested -1 < 0 elements",
    ],
);

const UP_TO: Script = script(
    "what is left",
    "q = FIFOQueueV2() {component_types=[DT_INT32], shapes=[[]]}
     x = int32[5]{1, 2, 3, 4, 5}
     put = QueueEnqueueManyV2(q, [x])
     three = int32[]{3}
     got = QueueDequeueUpToV2(q, three) {component_types=[DT_INT32]}
     close = QueueCloseV2(q)",
    &[
        "run put",
        "fetch got => int32[3]{1, 2, 3}",
        "run close",
        "fetch got => int32[2]{4, 5}",
        "fetch got fails OUT_OF_RANGE is closed and has insufficient elements (requested 3, current size 0)",
    ],
);

fn build_one(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |_, _| Ok(Work::DequeueOne))
}

fn build_many(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |ctx, queue| many(ctx, queue, "DequeueManyOp", false))
}

fn build_up_to(node: &NodeInfo) -> Result<AnyKernel> {
    build(node, |ctx, queue| many(ctx, queue, "DequeueUpToOp", true))
}

fn many(ctx: &KernelCtx<'_>, queue: &Queue, op: &str, up_to: bool) -> Result<Work> {
    let wanted = ctx.int(1)?;
    ensure!(
        wanted >= 0,
        invalid_argument,
        "{op} requested {wanted} < 0 elements"
    );
    ensure!(
        !queue.spec.shapes.is_empty(),
        invalid_argument,
        "{}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
        queue.spec.kind.name()
    );
    Ok(Work::DequeueMany {
        wanted: wanted as usize,
        up_to,
        taken: Vec::new(),
    })
}

fn build(node: &NodeInfo, work: fn(&KernelCtx<'_>, &Queue) -> Result<Work>) -> Result<AnyKernel> {
    check_timeout(node)?;
    let dtypes = node.attrs.dtypes("component_types")?;
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let prepared = ctx.view(|view| -> Result<(Arc<Queue>, Work)> {
            let queue = resource::<Queue>(view)?;
            check_types(&dtypes, &queue.spec.dtypes)?;
            let work = work(view, &queue)?;
            Ok((queue, work))
        });
        match prepared {
            Ok((queue, work)) => queue.submit(ctx, work),
            Err(status) => ctx.fail(status),
        }
    })
}

pub(super) fn check_types(asked: &[DType], of_queue: &[DType]) -> Result<()> {
    let names = |dtypes: &[DType]| {
        let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
        names.join(",")
    };
    ensure!(
        asked == of_queue,
        invalid_argument,
        "Signature mismatch, have: ->{} expected: ->{}",
        names(asked),
        names(of_queue)
    );
    Ok(())
}
