//! `DisableCopyOnRead`: asks that reads of a variable copy nothing; ours never do.
//!
//! TensorFlow: DisableCopyOnRead(resource: resource). Savers put it before their reads.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::NO_GRADIENT;
use super::read_variable::explain;
use super::variable::find;

pub(crate) static OP: OpDef = OpDef {
    name: "DisableCopyOnRead",
    inputs: &["resource: resource"],
    stateful: true,
    gradient: NO_GRADIENT,
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[script(
        "before a read",
        "v = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='v'}
         one = float[]{1}
         init = AssignVariableOp(v, one)
         plain = DisableCopyOnRead(v)
         read = ReadVariableOp(v, ^plain) {dtype=DT_FLOAT}",
        &[
            "run plain fails FAILED_PRECONDITION Could not find variable v",
            "run init",
            "fetch read => float[]{1}",
        ],
    )],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let known = find(ctx, 0).and_then(|variable| match &*variable.read() {
            Some(_) => Ok(()),
            None => Err(variable.missing(&ctx.env().resources)),
        });
        known.or_else(|status| explain(ctx, 0, &status))
    })
}
