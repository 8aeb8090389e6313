//! `ApplyRMSProp` and its sparse and resource forms: ms is a moving average of grad², mom = momentum·mom + lr·grad / √(ms+epsilon), var -= mom.
//!
//! TensorFlow: ApplyRMSProp(var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T,
//! grad: T) -> out: Ref(T), with attr use_locking: bool = false; sparse forms take `indices: Tindices`
//! after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{RmsProp, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] =
    refs!["var", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T"];
const SPARSE: &[&str] = refs!["var", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyRMSProp",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", ms = "1, 1, 0.5", mom = "0, 0.5, -0.5";
                "lr = float[]{0.5}
                 rho = float[]{0.75}
                 momentum = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyRMSProp(v, ms, mom, lr, rho, momentum, epsilon, grad)"),
                &[
                    "run set_v, set_ms, set_mom",
                    "fetch apply => float[3]{0.74180114, 2.2214046, -3.5664966}",
                    "fetch apply => float[3]{0.33264565, 2.8035114, -4.5307503}",
                    "fetch ms, mom => float[3]{0.671875, 1, 2.03125}; float[3]{0.4091555, -0.5821068, 0.96425354}",
                ],
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", ms = "(1,0.5), (2,0)", mom = "(0,0), (0.5,-0.25)";
                "lr = complex64[]{0.5}
                 rho = complex64[]{0.75}
                 momentum = complex64[]{0.5}
                 epsilon = complex64[]{0.125}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyRMSProp(v, ms, mom, lr, rho, momentum, epsilon, grad)"),
                &[
                    "run set_v, set_ms, set_mom",
                    "fetch apply => complex64[2]{(0.75585496,1.6225808), (1.3808674,-0.95422435)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyRMSProp",
        inputs: handles!["var", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", ms = "1, 1, 0.5", mom = "0, 0.5, -0.5";
                "lr = double[]{0.5}
                 rho = double[]{0.75}
                 momentum = double[]{0.5}
                 epsilon = double[]{0.125}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyRMSProp(v, ms, mom, lr, rho, momentum, epsilon, grad)"),
            &[
                "run set_v, set_ms, set_mom",
                "fetch now_v => double[3]{0.7418011102528389, 2.221404520791032, -3.5664965809277263}",
                "fetch now_v, now_ms, now_mom => double[3]{0.3326456485736564, 2.8035113019775793, -4.530750095998588}; double[3]{0.671875, 1, 2.03125}; double[3]{0.4091554616791825, -0.5821067811865476, 0.964253515070862}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyRMSProp",
        inputs: SPARSE,
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", ms = "1, 1, 0.5, 2, 4, 1", mom = "0, 0.5, -0.5, 0.25, 1, 0";
                "lr = float[]{0.5}
                 rho = float[]{0.75}
                 momentum = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyRMSProp(v, ms, mom, lr, rho, momentum, epsilon, grad, rows)"),
            &[
                "run set_v, set_ms, set_mom",
                "fetch apply => float[3,2]{0.26970327, 1.75, -3, 4, -0.3799779, -0.014297724}",
                "fetch apply => float[3,2]{-0.73595774, 1.625, -3, 4, -0.7279781, 0.044627845}",
                "fetch ms, mom => float[3,2]{2.3125, 0.5625, 0.5, 2, 1.3632812, 1}; float[3,2]{1.005661, 0.125, -0.5, 0.25, 0.04769133, 0.29462785}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyRMSProp",
        inputs: handles!["var", "ms", "mom"; "lr: T", "rho: T", "momentum: T", "epsilon: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("half" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", ms = "1, 1, 0.5, 2, 4, 1", mom = "0, 0.5, -0.5, 0.25, 1, 0";
                "lr = half[]{0.5}
                 rho = half[]{0.75}
                 momentum = half[]{0.5}
                 epsilon = half[]{0.125}
                 grad = half[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyRMSProp(v, ms, mom, lr, rho, momentum, epsilon, grad, rows)"),
            &[
                "run set_v, set_ms, set_mom",
                "fetch now_v => half[3,2]{0.2695, 1.75, -3, 4, -0.3801, -0.01428}",
                "fetch now_v, now_ms, now_mom => half[3,2]{-0.7363, 1.625, -3, 4, -0.7285, 0.04468}; half[3,2]{2.312, 0.5625, 0.5, 2, 1.363, 1}; half[3,2]{1.006, 0.125, -0.5, 0.25, 0.04767, 0.2947}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: Wide> Optimizer<W, 2, 4> for Form {
    type Rule = RmsProp<W>;

    fn rule(self, [lr, rho, momentum, epsilon]: [W; 4]) -> RmsProp<W> {
        RmsProp {
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
