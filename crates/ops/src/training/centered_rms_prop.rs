//! `ApplyCenteredRMSProp` and its sparse and resource forms: mg and ms are moving averages of grad and grad²,
//! mom = momentum·mom + lr·grad / √(ms-mg²+epsilon), var -= mom.
//!
//! TensorFlow: ApplyCenteredRMSProp(var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T,
//! momentum: T, epsilon: T, grad: T) -> out: Ref(T), with attr use_locking: bool = false; sparse forms take
//! `indices: Tindices` after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{CenteredRmsProp, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] =
    refs!["var", "mg", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T"];
const SPARSE: &[&str] = refs!["var", "mg", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyCenteredRMSProp",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", mg = "0, 0.25, -0.25", ms = "1, 1, 0.5", mom = "0, 0.5, -0.5";
                "lr = float[]{0.5}
                 rho = float[]{0.75}
                 momentum = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyCenteredRMSProp(v, mg, ms, mom, lr, rho, momentum, epsilon, grad)"),
                &[
                    "run set_v, set_mg, set_ms, set_mom",
                    "fetch apply => float[3]{0.7396222, 2.2222252, -3.5944476}",
                    "fetch apply => float[3]{0.32057002, 2.8243685, -4.678088}",
                    "fetch mg, ms, mom => float[3]{0.21875, -0.296875, 0.734375}; float[3]{0.671875, 1, 2.03125}; float[3]{0.41905215, -0.6021434, 1.0836403}",
                ],
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", mg = "(0.25,0), (0,0.125)", ms = "(1,0.5), (2,0)", mom = "(0,0), (0.5,-0.25)";
                "lr = complex64[]{0.5}
                 rho = complex64[]{0.75}
                 momentum = complex64[]{0.5}
                 epsilon = complex64[]{0.125}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyCenteredRMSProp(v, mg, ms, mom, lr, rho, momentum, epsilon, grad)"),
                &[
                    "run set_v, set_mg, set_ms, set_mom",
                    "fetch apply => complex64[2]{(0.8294155,1.640937), (1.378407,-0.9628346)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyCenteredRMSProp",
        inputs: handles!["var", "mg", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", mg = "0, 0.25, -0.25", ms = "1, 1, 0.5", mom = "0, 0.5, -0.5";
                "lr = double[]{0.5}
                 rho = double[]{0.75}
                 momentum = double[]{0.5}
                 epsilon = double[]{0.125}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyCenteredRMSProp(v, mg, ms, mom, lr, rho, momentum, epsilon, grad)"),
            &[
                "run set_v, set_mg, set_ms, set_mom",
                "fetch now_v => double[3]{0.7396221780383523, 2.222225068880764, -3.5944477023508155}",
                "fetch now_v, now_mg, now_ms, now_mom => double[3]{0.3205700091878808, 2.8243685318110883, -4.678088016405609}; double[3]{0.21875, -0.296875, 0.734375}; double[3]{0.671875, 1, 2.03125}; double[3]{0.4190521688504715, -0.602143462930324, 1.0836403140547937}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyCenteredRMSProp",
        inputs: SPARSE,
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", mg = "0, 0.25, -0.25, 0, 0.125, 0.5", ms = "1, 1, 0.5, 2, 4, 1", mom = "0, 0.5, -0.5, 0.25, 1, 0";
                "lr = float[]{0.5}
                 rho = float[]{0.75}
                 momentum = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyCenteredRMSProp(v, mg, ms, mom, lr, rho, momentum, epsilon, grad, rows)"),
            &[
                "run set_v, set_mg, set_ms, set_mom",
                "fetch apply => float[3,2]{0.21553546, 1.75, -3, 4, -0.38140255, -0.036230713}",
                "fetch apply => float[3,2]{-0.95008606, 1.625, -3, 4, -0.73229784, -0.010561585}",
                "fetch mg, ms, mom => float[3,2]{0.875, 0.140625, -0.25, 0, 0.088378906, 0.25585938}; float[3,2]{2.3125, 0.5625, 0.5, 2, 1.3632812, 1}; float[3,2]{1.1656215, 0.125, -0.5, 0.25, 0.048476405, 0.31527647}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyCenteredRMSProp",
        inputs: handles!["var", "mg", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("half" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", mg = "0, 0.25, -0.25, 0, 0.125, 0.5", ms = "1, 1, 0.5, 2, 4, 1", mom = "0, 0.5, -0.5, 0.25, 1, 0";
                "lr = half[]{0.5}
                 rho = half[]{0.75}
                 momentum = half[]{0.5}
                 epsilon = half[]{0.125}
                 grad = half[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyCenteredRMSProp(v, mg, ms, mom, lr, rho, momentum, epsilon, grad, rows)"),
            &[
                "run set_v, set_mg, set_ms, set_mom",
                "fetch now_v => half[3,2]{0.2153, 1.75, -3, 4, -0.3813, -0.03662}",
                "fetch now_v, now_mg, now_ms, now_mom => half[3,2]{-0.9507, 1.625, -3, 4, -0.732, -0.01123}; half[3,2]{0.875, 0.1406, -0.25, 0, 0.0884, 0.2559}; half[3,2]{2.312, 0.5625, 0.5, 2, 1.363, 1}; half[3,2]{1.166, 0.125, -0.5, 0.25, 0.04852, 0.3154}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: Wide> Optimizer<W, 3, 4> for Form {
    type Rule = CenteredRmsProp<W>;

    fn rule(self, [lr, rho, momentum, epsilon]: [W; 4]) -> CenteredRmsProp<W> {
        CenteredRmsProp {
            lr,
            rho,
            momentum,
            epsilon,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    complex_kernel(node, inputs, Form)
}
