//! `ApplyAdam` and its resource form: m and v are moving averages of grad and grad², alpha = lr·√(1-beta2_power) / (1-beta1_power),
//! var -= alpha·m / (√v + epsilon).
//!
//! TensorFlow: ApplyAdam(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1:
//! T, beta2: T, epsilon: T, grad: T) -> out: Ref(T), with attrs use_locking: bool = false, use_nesterov:
//! bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{Adam, AdamInputs, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, with_handles, with_refs,
};
use crate::types::FLOATS_AND_COMPLEX;

const DENSE: &[&str] = refs!["var", "m", "v"; "beta1_power: T", "beta2_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ApplyAdam",
        inputs: DENSE,
        attrs: dense_attrs!["use_nesterov: bool = false"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5", s = "0.25, 1, 0.5";
                "beta1_power = float[]{0.75}
                 beta2_power = float[]{0.875}
                 lr = float[]{0.5}
                 beta1 = float[]{0.75}
                 beta2 = float[]{0.875}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdam(v, m, s, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)"),
                &[
                    "run set_v, set_m, set_s",
                    "fetch apply => float[3]{0.8585787, 1.9214326, -3.0808494}",
                    "fetch apply => float[3]{0.6110913, 2.0196419, -3.4103851}",
                    "fetch m, s => float[3]{0.21875, -0.15625, 0.59375}; float[3]{0.25, 1, 1.3203125}",
                ],
            ),
            script(
                "with Nesterov's momentum",
                with_refs!("float" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5", s = "0.25, 1, 0.5";
                "beta1_power = float[]{0.75}
                 beta2_power = float[]{0.875}
                 lr = float[]{0.5}
                 beta1 = float[]{0.75}
                 beta2 = float[]{0.875}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdam(v, m, s, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad) {use_nesterov=true}"),
                &[
                    "run set_v, set_m, set_s",
                    "fetch apply => float[3]{0.75251263, 2.0982094, -3.384035}",
                    "fetch apply => float[3]{0.42547575, 2.3290012, -3.908691}",
                    "fetch m, s => float[3]{0.21875, -0.15625, 0.59375}; float[3]{0.25, 1, 1.3203125}",
                ],
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", m = "(0,0.5), (0.25,0)", s = "(1,0), (0.5,0.5)";
                "beta1_power = complex64[]{0.75}
                 beta2_power = complex64[]{0.875}
                 lr = complex64[]{0.5}
                 beta1 = complex64[]{0.75}
                 beta2 = complex64[]{0.875}
                 epsilon = complex64[]{0.125}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyAdam(v, m, s, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)"),
                &[
                    "run set_v, set_m, set_s",
                    "fetch apply => complex64[2]{(0.9191127,0.9069973), (1.6868286,-0.9432623)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAdam",
        inputs: handles!["var", "m", "v"; "beta1_power: T", "beta2_power: T", "lr: T", "beta1: T", "beta2: T", "epsilon: T", "grad: T"],
        attrs: dense_attrs!["use_nesterov: bool = false"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5", s = "0.25, 1, 0.5";
                "beta1_power = double[]{0.75}
                 beta2_power = double[]{0.875}
                 lr = double[]{0.5}
                 beta1 = double[]{0.75}
                 beta2 = double[]{0.875}
                 epsilon = double[]{0.125}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyAdam(v, m, s, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)"),
            &[
                "run set_v, set_m, set_s",
                "fetch now_v => double[3]{0.8585786437626906, 1.9214325798681613, -3.0808494710824594}",
                "fetch now_v, now_m, now_s => double[3]{0.611091270347399, 2.0196418550329596, -3.4103853128712487}; double[3]{0.21875, -0.15625, 0.59375}; double[3]{0.25, 1, 1.3203125}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form {
    use_nesterov: bool,
}

impl<W: Wide> Optimizer<W, 2, 6> for Form {
    type Rule = Adam<W>;

    fn rule(self, [beta1_power, beta2_power, lr, beta1, beta2, epsilon]: [W; 6]) -> Adam<W> {
        Adam::new(
            AdamInputs {
                beta1_power,
                beta2_power,
                lr,
                beta1,
                beta2,
                epsilon,
            },
            self.use_nesterov,
        )
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    let use_nesterov = node.attrs.bool("use_nesterov")?;
    complex_kernel(node, inputs, Form { use_nesterov })
}
