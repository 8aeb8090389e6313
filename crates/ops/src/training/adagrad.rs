//! `ApplyAdagrad` and its sparse and resource forms: accum += grad², var -= lr·grad / √accum.
//!
//! TensorFlow: ApplyAdagrad(var: Ref(T), accum: Ref(T), lr: T, grad: T) -> out: Ref(T), with attrs
//! use_locking: bool = false, update_slots: bool = true; sparse forms take `indices: Tindices` after the
//! gradient.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{Adagrad, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] = refs!["var", "accum"; "lr: T", "grad: T"];
const SPARSE: &[&str] = refs!["var", "accum"; "lr: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyAdagrad",
        inputs: DENSE,
        attrs: dense_attrs!["update_slots: bool = true"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdagrad(v, a, lr, grad)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.7113249, 2.3535533, -3.4082482}",
                    "fetch apply => float[3]{0.46132487, 2.6422284, -3.7244759}",
                    "fetch a => float[3]{1, 3, 10}",
                ],
            ),
            script(
                "slots left alone",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdagrad(v, a, lr, grad) {update_slots=false}"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.6464466, 2.5, -3.7071068}",
                    "fetch apply => float[3]{0.2928932, 3, -4.4142137}",
                    "fetch a => float[3]{0.5, 1, 2}",
                ],
            ),
            BAD_DENSE,
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", a = "(0.5,0.25), (1,0)";
                "lr = complex64[]{0.5}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyAdagrad(v, a, lr, grad)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => complex64[2]{(0.37940162,1.1007092), (1.6382183,-1.0431468)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAdagrad",
        inputs: handles!["var", "accum"; "lr: T", "grad: T"],
        attrs: dense_attrs!["update_slots: bool = true"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = double[]{0.5}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyAdagrad(v, a, lr, grad)"),
                &[
                    "run set_v, set_a",
                    "fetch now_v => double[3]{0.7113248654051871, 2.353553390593274, -3.408248290463863}",
                    "fetch now_v, now_a => double[3]{0.46132486540518713, 2.642228525188087, -3.724476056480701}; double[3]{1, 3, 10}",
                ],
            ),
            BAD_SLOT,
        ],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyAdagrad",
        inputs: SPARSE,
        attrs: sparse_attrs!["update_slots: bool = true"],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[
            script(
                "two steps, one row twice",
                with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyAdagrad(v, a, lr, grad, rows)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3,2]{0.52859545, 2, -3, 4, 0.4389251, -0.18512174}",
                    "fetch apply => float[3,2]{0.18559825, 2, -3, 4, 0.38000777, -0.15872854}",
                    "fetch a => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}",
                ],
            ),
            script(
                "slots left alone",
                with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyAdagrad(v, a, lr, grad, rows) {update_slots=false}"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3,2]{-0.41421354, 2, -3, 4, 0.4375, -0.25}",
                    "fetch apply => float[3,2]{-1.8284271, 2, -3, 4, 0.375, -0.25}",
                    "fetch a => float[3,2]{0.5, 1, 2, 0.25, 4, 1}",
                ],
            ),
            BAD_SPARSE,
            NO_ROWS,
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyAdagrad",
        inputs: handles!["var", "accum"; "lr: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs!["update_slots: bool = true"],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("half" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = half[]{0.5}
                 grad = half[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyAdagrad(v, a, lr, grad, rows)"),
            &[
                "run set_v, set_a",
                "fetch now_v => half[3,2]{0.5283, 2, -3, 4, 0.4392, -0.185}",
                "fetch now_v, now_a => half[3,2]{0.1853, 2, -3, 4, 0.3804, -0.1587}; half[3,2]{8.5, 1, 2, 0.25, 4.625, 5}",
            ],
        )],
        ..BY_HANDLE
    },
];

const BAD_DENSE: Script = script(
    "what does not fit",
    with_refs!("float" "[2]", v = "1, 2", a = "1, 1";
        "lr = float[]{0.5}
         lrs = float[1]{0.5}
         grad = float[2]{1, 1}
         short = float[1]{1}
         apply = ApplyAdagrad(v, a, lr, grad)
         bad_lr = ApplyAdagrad(v, a, lrs, grad)
         bad_grad = ApplyAdagrad(v, a, lr, short)"),
    &[
        "run apply fails FAILED_PRECONDITION Attempting to use uninitialized value v",
        "run set_v",
        "run apply fails FAILED_PRECONDITION Attempting to use uninitialized value a",
        "run set_a",
        "run bad_lr fails INVALID_ARGUMENT lr is not a scalar: [1]",
        "run bad_grad fails INVALID_ARGUMENT var and grad do not have the same shape[2] [1]",
        "fetch v, a => float[2]{1, 2}; float[2]{1, 1}",
    ],
);

const BAD_SLOT: Script = script(
    "variables that do not fit",
    "v = VarHandleOp() {dtype=float, shape=?, shared_name='v'}
     a = VarHandleOp() {dtype=float, shape=?, shared_name='a'}
     two = float[2]{1, 2}
     three = float[3]{1, 2, 3}
     set_v = AssignVariableOp(v, two)
     set_a = AssignVariableOp(a, three)
     lr = float[]{0.5}
     apply = ResourceApplyAdagrad(v, a, lr, two)",
    &[
        "run apply fails INTERNAL Invalid variable reference.",
        "run set_v",
        "run apply fails INTERNAL Invalid variable reference.",
        "run set_a",
        "run apply fails INVALID_ARGUMENT var and accum do not have the same shape[2] [3]",
    ],
);

const BAD_SPARSE: Script = script(
    "what does not fit",
    with_refs!("float" "[3,2]", v = "1, 2, 3, 4, 5, 6", a = "1";
        "lr = float[]{0.5}
         grad = float[2,2]{1, 1, 1, 1}
         thin = float[2,1]{1, 1}
         flat = float[2]{1, 1}
         good = int32[2]{0, 1}
         high = int32[2]{0, 3}
         low = int32[2]{-1, 1}
         many = int32[3]{0, 1, 2}
         deep = int32[1,2]{0, 1}
         apply_high = SparseApplyAdagrad(v, a, lr, grad, high)
         apply_low = SparseApplyAdagrad(v, a, lr, grad, low)
         apply_many = SparseApplyAdagrad(v, a, lr, grad, many)
         apply_deep = SparseApplyAdagrad(v, a, lr, grad, deep)
         apply_thin = SparseApplyAdagrad(v, a, lr, thin, good)
         apply_flat = SparseApplyAdagrad(v, a, lr, flat, good)"),
    &[
        "run set_v, set_a",
        "run apply_high fails INVALID_ARGUMENT Index 3 at offset 1 in indices is out of range",
        "run apply_low fails INVALID_ARGUMENT Index -1 at offset 0 in indices is out of range",
        "run apply_many fails INVALID_ARGUMENT grad must be the same size as indices in the first dimension",
        "run apply_deep fails INVALID_ARGUMENT indices must be one-dimensional",
        "run apply_thin fails INVALID_ARGUMENT var and grad must match in dimension 1",
        "run apply_flat fails INVALID_ARGUMENT grad must have the same number of dimensions as var",
        "fetch a => float[3,2]{1}",
    ],
);

const NO_ROWS: Script = script(
    "no rows",
    with_refs!("float" "[2]", v = "1, 2", a = "1, 1";
        "lr = float[]{0.5}
         grad = float[0]{}
         rows = int64[0]{}
         apply = SparseApplyAdagrad(v, a, lr, grad, rows)"),
    &["run set_v, set_a", "fetch apply => float[2]{1, 2}"],
);

#[derive(Clone, Copy)]
struct Form {
    update_slots: bool,
}

impl<W: Wide> Optimizer<W, 1, 1> for Form {
    type Rule = Adagrad<W>;

    fn rule(self, [lr]: [W; 1]) -> Adagrad<W> {
        Adagrad {
            lr,
            update_slots: self.update_slots,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    let update_slots = node.attrs.bool("update_slots")?;
    complex_kernel(node, inputs, Form { update_slots })
}
