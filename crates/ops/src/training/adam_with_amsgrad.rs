//! `ResourceApplyAdamWithAmsgrad`: as Adam, with the largest v so far in place of v.
//!
//! TensorFlow: ResourceApplyAdamWithAmsgrad(var: resource, m: resource, v: resource, vhat: resource,
//! beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T), with attr use_locking:
//! bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{AdamInputs, AdamWithAmsgrad, RealWide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{BY_HANDLE, dense_attrs, handles, refs, with_handles};
use crate::types::FLOATS;

const DENSE: &[&str] = refs!["var", "m", "v", "vhat"; "beta1_power: T", "beta2_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"];

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "ResourceApplyAdamWithAmsgrad",
    inputs: handles!["var", "m", "v", "vhat"; "beta1_power: T", "beta2_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"],
    attrs: dense_attrs![],
    kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
    scripts: &[script(
        "two steps",
        with_handles!("float" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5", s = "0.25, 1, 0.5", top = "0.5, 0.5, 0.5";
                "beta1_power = float[]{0.75}
                 beta2_power = float[]{0.875}
                 lr = float[]{0.5}
                 beta1 = float[]{0.75}
                 beta2 = float[]{0.875}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ResourceApplyAdamWithAmsgrad(v, m, s, top, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)"),
        &[
            "run set_v, set_m, set_s, set_top",
            "fetch now_v => float[3]{0.8937776, 1.9214326, -3.0808494}",
            "fetch now_v, now_m, now_s, now_top => float[3]{0.7078885, 2.0196419, -3.4103851}; float[3]{0.21875, -0.15625, 0.59375}; float[3]{0.25, 1, 1.3203125}; float[3]{0.5, 1, 1.3203125}",
        ],
    )],
    ..BY_HANDLE
}];

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 3, 6> for Form {
    type Rule = AdamWithAmsgrad<W>;

    fn rule(
        self,
        [beta1_power, beta2_power, lr, beta1, beta2, epsilon]: [W; 6],
    ) -> AdamWithAmsgrad<W> {
        AdamWithAmsgrad::new(AdamInputs {
            beta1_power,
            beta2_power,
            lr,
            beta1,
            beta2,
            epsilon,
        })
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
