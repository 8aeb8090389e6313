//! `PartitionedCall`, `StatefulPartitionedCall`: call a function.
//!
//! TensorFlow: (args: Tin) -> output: Tout, with f: func. Passes inline most calls; these kernels run the rest.

use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, NodeInfo};
use tensorfleet_status::Result;

use super::{call_and_finish, take_args};

const CALL: OpDef = OpDef {
    inputs: &["args: Tin"],
    outputs: &["output: Tout"],
    attrs: &[
        "Tin: list(type) >= 0",
        "Tout: list(type) >= 0",
        "f: func",
        "config: string = ''",
        "config_proto: string = ''",
        "executor_type: string = ''",
    ],
    gradient: Gradient::None("functions are differentiated after they were inlined"),
    kernels: &[cpu(&[], build)],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "PartitionedCall",
        ..CALL
    },
    OpDef {
        name: "StatefulPartitionedCall",
        stateful: true,
        ..CALL
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let func = node.attrs.func("f")?.clone();
    AnyKernel::later(move |mut ctx: AsyncCtx| match take_args(&mut ctx, 0) {
        Ok(args) => call_and_finish(&func, args, ctx),
        Err(status) => ctx.fail(status),
    })
}
