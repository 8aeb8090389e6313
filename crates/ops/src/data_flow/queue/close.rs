//! `QueueCloseV2`, `QueueIsClosedV2`, `QueueSizeV2` and their older forms: the end of a queue, and what is in it.
//!
//! TensorFlow: QueueCloseV2(handle: resource), with attr cancel_pending_enqueues: bool = false: closes after all enqueues
//! that wait, or at once and they fail with CANCELLED. QueueIsClosedV2(handle: resource) -> is_closed: bool;
//! QueueSizeV2(handle: resource) -> size: int32.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use super::waiting::{Queue, Work};
use super::{BY_HANDLE, BY_REF};
use crate::data_flow::keeper::resource;

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "QueueClose",
        inputs: &["handle: Ref(string)"],
        attrs: &["cancel_pending_enqueues: bool = false"],
        kernels: &[cpu(&[], build_close)],
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "QueueCloseV2",
        inputs: &["handle: resource"],
        attrs: &["cancel_pending_enqueues: bool = false"],
        kernels: &[cpu(&[], build_close)],
        scripts: &[CLOSED],
        ..BY_HANDLE
    },
    OpDef {
        name: "QueueIsClosed",
        inputs: &["handle: Ref(string)"],
        outputs: &["is_closed: bool"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_is_closed)],
        cost: Cost::Cheap,
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "QueueIsClosedV2",
        inputs: &["handle: resource"],
        outputs: &["is_closed: bool"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_is_closed)],
        cost: Cost::Cheap,
        scripts: &[CLOSED],
        ..BY_HANDLE
    },
    OpDef {
        name: "QueueSize",
        inputs: &["handle: Ref(string)"],
        outputs: &["size: int32"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_size)],
        cost: Cost::Cheap,
        scripts: &[BY_NAME],
        ..BY_REF
    },
    OpDef {
        name: "QueueSizeV2",
        inputs: &["handle: resource"],
        outputs: &["size: int32"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_size)],
        cost: Cost::Cheap,
        scripts: &[CLOSED],
        ..BY_HANDLE
    },
];

const BY_NAME: Script = script(
    "by reference to a name",
    "q = FIFOQueue() {component_types=[DT_INT32], shapes=[[]]}
     x = int32[]{1}
     put = QueueEnqueue(q, [x])
     size = QueueSize(q)
     closed = QueueIsClosed(q)
     close = QueueClose(q) {cancel_pending_enqueues=true}",
    &[
        "run put",
        "fetch size, closed => int32[]{1}; bool[]{false}",
        "run close",
        "fetch size, closed => int32[]{1}; bool[]{true}",
    ],
);

const CLOSED: Script = script(
    "closed once, cancelled often",
    "q = FIFOQueueV2() {component_types=[DT_INT32]}
     x = int32[]{1}
     put = QueueEnqueueV2(q, [x])
     close = QueueCloseV2(q)
     cancel = QueueCloseV2(q) {cancel_pending_enqueues=true}
     closed = QueueIsClosedV2(q)
     size = QueueSizeV2(q)",
    &[
        "run put",
        "fetch closed, size => bool[]{false}; int32[]{1}",
        "run close",
        "fetch closed, size => bool[]{true}; int32[]{1}",
        "run close fails CANCELLED is already closed.",
        "run cancel",
        "run cancel",
    ],
);

fn build_close(node: &NodeInfo) -> Result<AnyKernel> {
    let cancel = node.attrs.bool("cancel_pending_enqueues")?;
    AnyKernel::later(
        move |mut ctx: AsyncCtx| match ctx.view(|view| resource::<Queue>(view)) {
            Ok(queue) if cancel => {
                queue.close_and_cancel();
                ctx.finish_with([]);
            }
            Ok(queue) => queue.submit(ctx, Work::Close),
            Err(status) => ctx.fail(status),
        },
    )
}

fn build_is_closed(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let closed = resource::<Queue>(ctx)?.is_closed();
        ctx.set(0, Tensor::scalar(closed));
        Ok(())
    })
}

fn build_size(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let size = resource::<Queue>(ctx)?.size();
        ctx.set(0, Tensor::scalar(size as i32));
        Ok(())
    })
}
