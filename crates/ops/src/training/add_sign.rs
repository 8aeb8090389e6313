//! `ApplyAddSign` and its resource form: m is a moving average of grad, var -= lr·(alpha + sign_decay·sign(grad)·sign(m))·grad.
//!
//! TensorFlow: ApplyAddSign(var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T) ->
//! out: Ref(T), with attr use_locking: bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{AddSign, RealWide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, with_handles, with_refs,
};
use crate::types::FLOATS;

const DENSE: &[&str] =
    refs!["var", "m"; "lr: T", "alpha: T", "sign_decay: T", "beta: T", "grad: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ApplyAddSign",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_refs!("float" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5";
                "lr = float[]{0.5}
                 alpha = float[]{0.5}
                 sign_decay = float[]{0.5}
                 beta = float[]{0.75}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAddSign(v, m, lr, alpha, sign_decay, beta, grad)"),
            &[
                "run set_v, set_m",
                "fetch apply => float[3]{0.75, 2, -4}",
                "fetch apply => float[3]{0.5, 2.5, -5}",
                "fetch m => float[3]{0.21875, -0.15625, 0.59375}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAddSign",
        inputs: handles!["var", "m"; "lr: T", "alpha: T", "sign_decay: T", "beta: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5";
                "lr = double[]{0.5}
                 alpha = double[]{0.5}
                 sign_decay = double[]{0.5}
                 beta = double[]{0.75}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyAddSign(v, m, lr, alpha, sign_decay, beta, grad)"),
            &[
                "run set_v, set_m",
                "fetch now_v => double[3]{0.75, 2, -4}",
                "fetch now_v, now_m => double[3]{0.5, 2.5, -5}; double[3]{0.21875, -0.15625, 0.59375}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 1, 4> for Form {
    type Rule = AddSign<W>;

    fn rule(self, [lr, alpha, sign_decay, beta]: [W; 4]) -> AddSign<W> {
        AddSign {
            lr,
            alpha,
            sign_decay,
            beta,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
