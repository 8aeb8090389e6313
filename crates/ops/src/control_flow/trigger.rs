//! `ControlTrigger`: runs when its control inputs came, dead or not. `Abort`: fails the step.
//!
//! TensorFlow's `Abort` ends the whole process. A server that a graph can end is no server: ours fails
//! the step with ABORTED instead.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, aborted};

use super::NATIVE;

pub(crate) static CONTROL_TRIGGER: OpDef = OpDef {
    name: "ControlTrigger",
    gradient: Gradient::Stop("it carries no data"),
    kernels: &NATIVE,
    cost: Cost::Cheap,
    scripts: &[script(
        "runs after a dead node",
        "p = bool[]{false}
         x = float[]{1}
         s = Switch(x, p)
         dead = Identity(s:1)
         t = ControlTrigger(^dead)
         y = Identity(x, ^t)",
        &["fetch y => float[]{1}"],
    )],
    ..OpDef::BLANK
};

pub(crate) static ABORT: OpDef = OpDef {
    name: "Abort",
    attrs: &["error_msg: string = ''", "exit_without_error: bool = false"],
    gradient: Gradient::Stop("it carries no data"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let message = node.attrs.str("error_msg")?.to_owned();
    let quiet = node.attrs.bool("exit_without_error")?;
    AnyKernel::sync(move |_: &mut KernelCtx<'_>| {
        if quiet {
            Ok(())
        } else {
            Err(aborted!("Abort op: {message}"))
        }
    })
}
