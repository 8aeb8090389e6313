//! `ApplyAdagradV2` and its sparse and resource forms: accum += grad², var -= lr·grad / (√accum + epsilon).
//!
//! TensorFlow: ApplyAdagradV2(var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T) -> out: Ref(T), with
//! attrs use_locking: bool = false, update_slots: bool = true; sparse forms take `indices: Tindices` after
//! the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{AdagradV2, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] = refs!["var", "accum"; "lr: T", "epsilon: T", "grad: T"];
const SPARSE: &[&str] =
    refs!["var", "accum"; "lr: T", "epsilon: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyAdagradV2",
        inputs: DENSE,
        attrs: dense_attrs!["update_slots: bool = true"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdagradV2(v, a, lr, epsilon, grad)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.74773604, 2.3248413, -3.3884265}",
                    "fetch apply => float[3]{0.5255138, 2.5940855, -3.6926296}",
                    "fetch a => float[3]{1, 3, 10}",
                ],
            ),
            script(
                "slots left alone",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdagradV2(v, a, lr, epsilon, grad) {update_slots=false}"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.6995578, 2.4444444, -3.6496825}",
                    "fetch apply => float[3]{0.39911556, 2.8888888, -4.299365}",
                    "fetch a => float[3]{0.5, 1, 2}",
                ],
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", a = "(0.5,0.25), (1,0)";
                "lr = complex64[]{0.5}
                 epsilon = complex64[]{0.125}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyAdagradV2(v, a, lr, epsilon, grad)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => complex64[2]{(0.4425394,1.151808), (1.6678177,-1.0430683)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAdagradV2",
        inputs: handles!["var", "accum"; "lr: T", "epsilon: T", "grad: T"],
        attrs: dense_attrs!["update_slots: bool = true"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = double[]{0.5}
                 epsilon = double[]{0.125}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyAdagradV2(v, a, lr, epsilon, grad)"),
            &[
                "run set_v, set_a",
                "fetch now_v => double[3]{0.7477360327542336, 2.324841212566449, -3.388426484433743}",
                "fetch now_v, now_a => double[3]{0.5255138105320114, 2.5940853269235387, -3.692629567768291}; double[3]{1, 3, 10}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyAdagradV2",
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
                 epsilon = float[]{0.125}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyAdagradV2(v, a, lr, epsilon, grad, rows)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3,2]{0.5548275, 2, -3, 4, 0.4424402, -0.19440287}",
                    "fetch apply => float[3,2]{0.22593161, 2, -3, 4, 0.38680074, -0.17087732}",
                    "fetch a => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}",
                ],
            ),
            script(
                "slots left alone",
                with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 epsilon = float[]{0.125}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyAdagradV2(v, a, lr, epsilon, grad, rows) {update_slots=false}"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3,2]{-0.20176888, 2, -3, 4, 0.44117647, -0.25}",
                    "fetch apply => float[3,2]{-1.4035378, 2, -3, 4, 0.38235295, -0.25}",
                    "fetch a => float[3,2]{0.5, 1, 2, 0.25, 4, 1}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyAdagradV2",
        inputs: handles!["var", "accum"; "lr: T", "epsilon: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs!["update_slots: bool = true"],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("half" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = half[]{0.5}
                 epsilon = half[]{0.125}
                 grad = half[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyAdagradV2(v, a, lr, epsilon, grad, rows)"),
            &[
                "run set_v, set_a",
                "fetch now_v => half[3,2]{0.5547, 2, -3, 4, 0.4426, -0.1943}",
                "fetch now_v, now_a => half[3,2]{0.2258, 2, -3, 4, 0.387, -0.1708}; half[3,2]{8.5, 1, 2, 0.25, 4.625, 5}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form {
    update_slots: bool,
}

impl<W: Wide> Optimizer<W, 1, 2> for Form {
    type Rule = AdagradV2<W>;

    fn rule(self, [lr, epsilon]: [W; 2]) -> AdagradV2<W> {
        AdagradV2 {
            lr,
            epsilon,
            update_slots: self.update_slots,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    let update_slots = node.attrs.bool("update_slots")?;
    complex_kernel(node, inputs, Form { update_slots })
}
