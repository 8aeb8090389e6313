//! `ApplyGradientDescent` and its resource form: var -= alpha·delta.
//!
//! TensorFlow: ApplyGradientDescent(var: Ref(T), alpha: T, delta: T) -> out: Ref(T), with attr use_locking:
//! bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{GradientDescent, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, with_handles, with_refs,
};
use crate::types::FLOATS;

const DENSE: &[&str] = refs!["var"; "alpha: T", "delta: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ApplyGradientDescent",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_refs!("float" "[3]", v = "1, 2, -3";
                "alpha = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyGradientDescent(v, alpha, grad)"),
            &[
                "run set_v",
                "fetch apply => float[3]{0.75, 2.5, -4}",
                "fetch apply => float[3]{0.5, 3, -5}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyGradientDescent",
        inputs: handles!["var"; "alpha: T", "delta: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3";
                "alpha = double[]{0.5}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyGradientDescent(v, alpha, grad)"),
            &[
                "run set_v",
                "fetch now_v => double[3]{0.75, 2.5, -4}",
                "fetch now_v => double[3]{0.5, 3, -5}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl Optimizer<0, 1> for Form {
    type Rule<W: Wide> = GradientDescent<W>;

    fn rule<W: Wide>(self, [alpha]: [W; 1]) -> GradientDescent<W> {
        GradientDescent { lr: alpha }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
