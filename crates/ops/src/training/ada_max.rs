//! `ApplyAdaMax` and its resource form: m is a moving average of grad, v = max(beta2·v, |grad|),
//! var -= lr / (1-beta1_power) · m / (v + epsilon).
//!
//! TensorFlow: ApplyAdaMax(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T,
//! epsilon: T, grad: T) -> out: Ref(T), with attr use_locking: bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{AdaMax, RealWide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, with_handles, with_refs,
};
use crate::types::FLOATS;

const DENSE: &[&str] = refs!["var", "m", "v"; "beta1_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ApplyAdaMax",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_refs!("float" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5", s = "0.25, 1, 0.5";
                "beta1_power = float[]{0.75}
                 lr = float[]{0.5}
                 beta1 = float[]{0.75}
                 beta2 = float[]{0.875}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdaMax(v, m, s, beta1_power, lr, beta1, beta2, epsilon, grad)"),
            &[
                "run set_v, set_m, set_s",
                "fetch apply => float[3]{0.6, 1.7777778, -3.1176472}",
                "fetch apply => float[3]{-0.099999964, 2.0555556, -3.6764708}",
                "fetch m, s => float[3]{0.21875, -0.15625, 0.59375}; float[3]{0.5, 1, 2}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAdaMax",
        inputs: handles!["var", "m", "v"; "beta1_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5", s = "0.25, 1, 0.5";
                "beta1_power = double[]{0.75}
                 lr = double[]{0.5}
                 beta1 = double[]{0.75}
                 beta2 = double[]{0.875}
                 epsilon = double[]{0.125}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyAdaMax(v, m, s, beta1_power, lr, beta1, beta2, epsilon, grad)"),
            &[
                "run set_v, set_m, set_s",
                "fetch now_v => double[3]{0.6, 1.7777777777777777, -3.1176470588235294}",
                "fetch now_v, now_m, now_s => double[3]{-0.09999999999999998, 2.0555555555555554, -3.6764705882352944}; double[3]{0.21875, -0.15625, 0.59375}; double[3]{0.5, 1, 2}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 2, 5> for Form {
    type Rule = AdaMax<W>;

    fn rule(self, [beta1_power, lr, beta1, beta2, epsilon]: [W; 5]) -> AdaMax<W> {
        AdaMax {
            beta1_power,
            lr,
            beta1,
            beta2,
            epsilon,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
