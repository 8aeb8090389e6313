//! `ApplyGradientDescent` and its resource form: var -= alpha·delta.
//!
//! TensorFlow: ApplyGradientDescent(var: Ref(T), alpha: T, delta: T) -> out: Ref(T), with attr use_locking:
//! bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{GradientDescent, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, with_handles, with_refs,
};
use crate::types::FLOATS_AND_COMPLEX;

const DENSE: &[&str] = refs!["var"; "alpha: T", "delta: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ApplyGradientDescent",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
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
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)";
                "alpha = complex64[]{0.5}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyGradientDescent(v, alpha, grad)"),
                &[
                    "run set_v",
                    "fetch apply => complex64[2]{(0.75,1.5), (1.5,-1.125)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyGradientDescent",
        inputs: handles!["var"; "alpha: T", "delta: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
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

impl<W: Wide> Optimizer<W, 0, 1> for Form {
    type Rule = GradientDescent<W>;

    fn rule(self, [alpha]: [W; 1]) -> GradientDescent<W> {
        GradientDescent { lr: alpha }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    complex_kernel(node, inputs, Form)
}
