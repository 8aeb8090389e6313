//! `ApplyProximalGradientDescent` and its sparse and resource forms: a step of gradient descent, then shrinking by l1 and l2 (FOBOS).
//!
//! TensorFlow: ApplyProximalGradientDescent(var: Ref(T), alpha: T, l1: T, l2: T, delta: T) -> out: Ref(T),
//! with attr use_locking: bool = false; sparse forms take `indices: Tindices` after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{ProximalGradientDescent, RealWide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{INDEX, SINGLE_AND_DOUBLE};

const DENSE: &[&str] = refs!["var"; "alpha: T", "l1: T", "l2: T", "delta: T"];
const SPARSE: &[&str] = refs!["var"; "alpha: T", "l1: T", "l2: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyProximalGradientDescent",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_refs!("float" "[3]", v = "1, 2, -3";
                "alpha = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyProximalGradientDescent(v, alpha, l1, l2, grad)"),
            &[
                "run set_v",
                "fetch apply => float[3]{0.5, 1.9, -3.1}",
                "fetch apply => float[3]{0.1, 1.82, -3.1799998}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyProximalGradientDescent",
        inputs: handles!["var"; "alpha: T", "l1: T", "l2: T", "delta: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3";
                "alpha = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyProximalGradientDescent(v, alpha, l1, l2, grad)"),
            &[
                "run set_v",
                "fetch now_v => double[3]{0.5, 1.9, -3.1}",
                "fetch now_v => double[3]{0.1, 1.8199999999999998, -3.1799999999999997}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyProximalGradientDescent",
        inputs: SPARSE,
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", SINGLE_AND_DOUBLE), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25";
                "alpha = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyProximalGradientDescent(v, alpha, l1, l2, grad, rows)"),
            &[
                "run set_v",
                "fetch apply => float[3,2]{0, 1.5, -3, 4, 0.08, -0.22}",
                "fetch apply => float[3,2]{-0.7, 1.1, -3, 4, 0, -0.20079999}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyProximalGradientDescent",
        inputs: handles!["var"; "alpha: T", "l1: T", "l2: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", SINGLE_AND_DOUBLE), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("double" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25";
                "alpha = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 grad = double[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyProximalGradientDescent(v, alpha, l1, l2, grad, rows)"),
            &[
                "run set_v",
                "fetch now_v => double[3,2]{0, 1.5, -3, 4, 0.08, -0.22000000000000003}",
                "fetch now_v => double[3,2]{-0.7, 1.1, -3, 4, 0, -0.2008}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 0, 3> for Form {
    type Rule = ProximalGradientDescent<W>;

    fn rule(self, [alpha, l1, l2]: [W; 3]) -> ProximalGradientDescent<W> {
        ProximalGradientDescent { lr: alpha, l1, l2 }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
