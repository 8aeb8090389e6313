//! `Assert`: fails the step with the given tensors unless a condition holds.
//!
//! TensorFlow: Assert(condition: bool, data: T...), with summarize.

use std::fmt::Write as _;

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::summarize;

pub(crate) static OP: OpDef = OpDef {
    name: "Assert",
    inputs: &["condition: bool", "data: T"],
    attrs: &["T: list(type) >= 1", "summarize: int = 3"],
    stateful: true,
    gradient: Gradient::Stop("it has no outputs"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    scripts: &[script(
        "holds and does not",
        "yes = bool[]{true}
         no = bool[]{false}
         text = string[]{why}
         x = float[4]{1, 2, 3, 4}
         good = Assert(yes, [text, x])
         bad = Assert(no, [text, x])",
        &[
            "run good",
            "run bad fails INVALID_ARGUMENT assertion failed: [why] [1 2 3...]",
        ],
    )],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let limit = usize::try_from(node.attrs.int("summarize")?).unwrap_or(usize::MAX);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let condition = ctx.input(0)?;
        if condition.elements() != 1 {
            return Err(invalid_argument!(
                "In[0] should be a scalar: {}",
                condition.shape()
            ));
        }
        if condition.to_scalar::<bool>()? {
            return Ok(());
        }
        let mut text = String::from("assertion failed:");
        for index in 1..ctx.num_inputs() {
            let tensor = ctx.input(index)?;
            let (open, close) = if tensor.rank() == 0 {
                ("[", "]")
            } else {
                ("", "")
            };
            let _ = write!(text, " {open}");
            let _ = summarize(tensor, limit, &mut text);
            text.push_str(close);
        }
        Err(invalid_argument!("{text}"))
    })
}
