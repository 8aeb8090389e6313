//! `ApplyPowerSign` and its resource form: m is a moving average of grad, var -= lr·exp(logbase·sign_decay·sign(grad)·sign(m))·grad.
//!
//! TensorFlow: ApplyPowerSign(var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T)
//! -> out: Ref(T), with attr use_locking: bool = false.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{PowerSign, RealWide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, with_handles, with_refs,
};
use crate::types::FLOATS;

const DENSE: &[&str] =
    refs!["var", "m"; "lr: T", "logbase: T", "sign_decay: T", "beta: T", "grad: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ApplyPowerSign",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_refs!("float" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5";
                "lr = float[]{0.5}
                 logbase = float[]{1}
                 sign_decay = float[]{0.5}
                 beta = float[]{0.75}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyPowerSign(v, m, lr, logbase, sign_decay, beta, grad)"),
            &[
                "run set_v, set_m",
                "fetch apply => float[3]{0.5878197, 2.3032653, -4.648721}",
                "fetch apply => float[3]{0.17563939, 3.127626, -6.2974424}",
                "fetch m => float[3]{0.21875, -0.15625, 0.59375}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyPowerSign",
        inputs: handles!["var", "m"; "lr: T", "logbase: T", "sign_decay: T", "beta: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", m = "0, 0.5, -0.5";
                "lr = double[]{0.5}
                 logbase = double[]{1}
                 sign_decay = double[]{0.5}
                 beta = double[]{0.75}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyPowerSign(v, m, lr, logbase, sign_decay, beta, grad)"),
            &[
                "run set_v, set_m",
                "fetch now_v => double[3]{0.587819682324968, 2.3032653298563166, -4.648721270700128}",
                "fetch now_v, now_m => double[3]{0.1756393646499359, 3.1276259652063807, -6.297442541400256}; double[3]{0.21875, -0.15625, 0.59375}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 1, 4> for Form {
    type Rule = PowerSign<W>;

    fn rule(self, [lr, logbase, sign_decay, beta]: [W; 4]) -> PowerSign<W> {
        PowerSign {
            lr,
            logbase,
            sign_decay,
            beta,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
