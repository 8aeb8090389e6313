//! `ApplyProximalAdagrad` and its sparse and resource forms: a step of Adagrad, then shrinking by l1 and l2 (FOBOS).
//!
//! TensorFlow: ApplyProximalAdagrad(var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T) -> out:
//! Ref(T), with attr use_locking: bool = false; sparse forms take `indices: Tindices` after the gradient.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{ProximalAdagrad, RealWide};
use tensorfleet_status::{Result, ensure};

use super::apply::{Optimizer, check_strength, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{INDEX, SINGLE_AND_DOUBLE};

const DENSE: &[&str] = refs!["var", "accum"; "lr: T", "l1: T", "l2: T", "grad: T"];
const SPARSE: &[&str] =
    refs!["var", "accum"; "lr: T", "l1: T", "l2: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyProximalAdagrad",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyProximalAdagrad(v, a, lr, l1, l2, grad)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.4399769, 1.9248893, -3.0463047}",
                    "fetch apply => float[3]{0.05198152, 1.8712971, -3.0795445}",
                    "fetch a => float[3]{1, 3, 10}",
                ],
            ),
            BAD_SCALARS,
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyProximalAdagrad",
        inputs: handles!["var", "accum"; "lr: T", "l1: T", "l2: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyProximalAdagrad(v, a, lr, l1, l2, grad)"),
            &[
                "run set_v, set_a",
                "fetch now_v => double[3]{0.43997690565051034, 1.9248894475888327, -3.046305047216488}",
                "fetch now_v, now_a => double[3]{0.05198152452040827, 1.871297298744022, -3.0795449384246028}; double[3]{1, 3, 10}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyProximalAdagrad",
        inputs: SPARSE,
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", SINGLE_AND_DOUBLE), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyProximalAdagrad(v, a, lr, l1, l2, grad, rows)"),
            &[
                "run set_v, set_a",
                "fetch apply => float[3,2]{0.4201542, 1.5, -3, 4, 0.253212, -0.1779365}",
                "fetch apply => float[3,2]{0.031574853, 1.1, -3, 4, 0.06227495, -0.14319457}",
                "fetch a => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyProximalAdagrad",
        inputs: handles!["var", "accum"; "lr: T", "l1: T", "l2: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", SINGLE_AND_DOUBLE), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("double" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 grad = double[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyProximalAdagrad(v, a, lr, l1, l2, grad, rows)"),
            &[
                "run set_v, set_a",
                "fetch now_v => double[3,2]{0.4201542597420825, 1.5, -3, 4, 0.25321203918180063, -0.17793649647272677}",
                "fetch now_v, now_a => double[3,2]{0.03157491642499761, 1.1, -3, 4, 0.062274968502693324, -0.14319456699748961}; double[3,2]{8.5, 1, 2, 0.25, 4.625, 5}",
            ],
        )],
        ..BY_HANDLE
    },
];

const BAD_SCALARS: Script = script(
    "scalars out of range",
    with_refs!("float" "[2]", v = "1, 2", a = "1, 1";
        "zero = float[]{0}
         half = float[]{0.5}
         less = float[]{-1}
         grad = float[2]{1, 1}
         bad_lr = ApplyProximalAdagrad(v, a, zero, half, half, grad)
         bad_l1 = ApplyProximalAdagrad(v, a, half, less, half, grad)
         bad_l2 = ApplyProximalAdagrad(v, a, half, half, less, grad)"),
    &[
        "run set_v, set_a",
        "run bad_lr fails INVALID_ARGUMENT lr is not a positive scalar",
        "run bad_l1 fails INVALID_ARGUMENT l1 regularization strength is not a non-negative scalar",
        "run bad_l2 fails INVALID_ARGUMENT l2 regularization strength is not a non-negative scalar",
    ],
);

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 1, 3> for Form {
    type Rule = ProximalAdagrad<W>;

    fn rule(self, [lr, l1, l2]: [W; 3]) -> ProximalAdagrad<W> {
        ProximalAdagrad { lr, l1, l2 }
    }

    fn check(self, [lr, l1, l2]: [f64; 3]) -> Result<()> {
        ensure!(
            lr > 0.0,
            invalid_argument,
            "lr is not a positive scalar: {lr}"
        );
        check_strength("l1", l1)?;
        check_strength("l2", l2)
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
