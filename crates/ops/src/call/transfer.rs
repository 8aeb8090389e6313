//! `_Send`, `_Recv` and their host forms: tensors between the parts of a partitioned graph.
//!
//! TensorFlow: _Send(tensor: T), _Recv() -> tensor: tensor_type. The key names sender, its incarnation,
//! receiver, tensor, frame and iteration. A dead tensor is sent as dead, whatever its dtype.

use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, FrameIter, KernelCtx, NodeInfo, Received};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

const SEND: OpDef = OpDef {
    inputs: &["tensor: T"],
    attrs: &[
        "T: type",
        "tensor_name: string",
        "send_device: string",
        "send_device_incarnation: int",
        "recv_device: string",
        "client_terminated: bool = false",
    ],
    stateful: true,
    gradient: Gradient::None("partitioned graphs are not differentiated"),
    kernels: &[cpu(&[], build_send)],
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

const RECV: OpDef = OpDef {
    inputs: &[],
    outputs: &["tensor: tensor_type"],
    attrs: &[
        "tensor_type: type",
        "tensor_name: string",
        "send_device: string",
        "send_device_incarnation: int",
        "recv_device: string",
        "client_terminated: bool = false",
    ],
    distributed: true,
    kernels: &[cpu(&[], build_recv)],
    ..SEND
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "_Send",
        ..SEND
    },
    OpDef {
        name: "_HostSend",
        ..SEND
    },
    OpDef {
        name: "_Recv",
        ..RECV
    },
    OpDef {
        name: "_HostRecv",
        ..RECV
    },
];

/// All of a key but frame and iteration.
fn key_prefix(node: &NodeInfo) -> Result<String> {
    let attrs = &node.attrs;
    let incarnation = attrs.int("send_device_incarnation")? as u64;
    let (send, recv, name) = (
        attrs.str("send_device")?,
        attrs.str("recv_device")?,
        attrs.str("tensor_name")?,
    );
    Ok(format!("{send};{incarnation:016x};{recv};{name};"))
}

fn key(prefix: &str, frame: FrameIter) -> String {
    format!("{prefix}{}:{}", frame.frame_id, frame.iteration)
}

fn build_send(node: &NodeInfo) -> Result<AnyKernel> {
    let prefix = key_prefix(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let is_dead = ctx.input_is_dead();
        let tensor = if is_dead {
            Tensor::new(DType::F32, Shape::vector(0))?
        } else {
            ctx.take(0)?
        };
        ctx.env()
            .rendezvous
            .send(&key(&prefix, ctx.frame()), Received { tensor, is_dead })
    })
}

fn build_recv(node: &NodeInfo) -> Result<AnyKernel> {
    let prefix = key_prefix(node)?;
    let dtype = node.attrs.dtype("tensor_type")?;
    AnyKernel::later(move |ctx: AsyncCtx| {
        let rendezvous = ctx.env().rendezvous.clone();
        let key = key(&prefix, ctx.frame());
        let done = Box::new(move |received: Result<Received>| match received {
            Ok(received) if received.is_dead => ctx.finish_dead(),
            Ok(received) if received.tensor.dtype() == dtype => ctx.finish_with([received.tensor]),
            Ok(received) => ctx.fail(invalid_argument!(
                "received a tensor of {}, {dtype} was expected",
                received.tensor.dtype()
            )),
            Err(status) => ctx.fail(status),
        });
        rendezvous.recv(&key, done);
    })
}
