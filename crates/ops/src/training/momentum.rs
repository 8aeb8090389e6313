//! `ApplyMomentum` and its sparse and resource forms: accum = momentum·accum + grad, var -= lr·accum.
//!
//! TensorFlow: ApplyMomentum(var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T) -> out: Ref(T), with
//! attrs use_locking: bool = false, use_nesterov: bool = false; sparse forms take `indices: Tindices` after
//! the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{Momentum, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] = refs!["var", "accum"; "lr: T", "grad: T", "momentum: T"];
const SPARSE: &[&str] =
    refs!["var", "accum"; "lr: T", "grad: T", "indices: Tindices", "momentum: T"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyMomentum",
        inputs: DENSE,
        attrs: dense_attrs!["use_nesterov: bool = false"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 momentum = float[]{0.5}
                 apply = ApplyMomentum(v, a, lr, grad, momentum)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.625, 2.25, -4.5}",
                    "fetch apply => float[3]{0.1875, 2.875, -6.25}",
                    "fetch a => float[3]{0.875, -1.25, 3.5}",
                ],
            ),
            script(
                "with Nesterov's momentum",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 momentum = float[]{0.5}
                 apply = ApplyMomentum(v, a, lr, grad, momentum) {use_nesterov=true}"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3]{0.5625, 2.625, -4.75}",
                    "fetch apply => float[3]{0.09375, 3.4375, -6.625}",
                    "fetch a => float[3]{0.875, -1.25, 3.5}",
                ],
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", a = "(0.5,0.25), (1,0)";
                "lr = complex64[]{0.5}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 momentum = complex64[]{0.5}
                 apply = ApplyMomentum(v, a, lr, grad, momentum)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => complex64[2]{(0.625,1.4375), (1.25,-1.125)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyMomentum",
        inputs: handles!["var", "accum"; "lr: T", "grad: T", "momentum: T"],
        attrs: dense_attrs!["use_nesterov: bool = false"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = double[]{0.5}
                 grad = double[3]{0.5, -1, 2}
                 momentum = double[]{0.5}
                 apply = ResourceApplyMomentum(v, a, lr, grad, momentum)"),
            &[
                "run set_v, set_a",
                "fetch now_v => double[3]{0.625, 2.25, -4.5}",
                "fetch now_v, now_a => double[3]{0.1875, 2.875, -6.25}; double[3]{0.875, -1.25, 3.5}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyMomentum",
        inputs: SPARSE,
        attrs: sparse_attrs!["use_nesterov: bool = false"],
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
                 momentum = float[]{0.5}
                 apply = SparseApplyMomentum(v, a, lr, grad, rows, momentum)"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3,2]{-0.125, 1.75, -3, 4, -1.25, -0.375}",
                    "fetch apply => float[3,2]{-1.6875, 1.625, -3, 4, -1.875, -0.40625}",
                    "fetch a => float[3,2]{3.125, 0.25, 2, 0.25, 0.25, 0.6875}",
                ],
            ),
            script(
                "with Nesterov's momentum",
                with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 momentum = float[]{0.5}
                 apply = SparseApplyMomentum(v, a, lr, grad, rows, momentum) {use_nesterov=true}"),
                &[
                    "run set_v, set_a",
                    "fetch apply => float[3,2]{-0.5625, 1.875, -3, 4, -0.5, -0.3125}",
                    "fetch apply => float[3,2]{-2.34375, 1.8125, -3, 4, -0.9375, -0.328125}",
                    "fetch a => float[3,2]{3.125, 0.25, 2, 0.25, 0.25, 0.6875}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyMomentum",
        inputs: handles!["var", "accum"; "lr: T", "grad: T", "indices: Tindices", "momentum: T"],
        attrs: sparse_attrs!["use_nesterov: bool = false"],
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
                 momentum = half[]{0.5}
                 apply = ResourceSparseApplyMomentum(v, a, lr, grad, rows, momentum)"),
            &[
                "run set_v, set_a",
                "fetch now_v => half[3,2]{-0.125, 1.75, -3, 4, -1.25, -0.375}",
                "fetch now_v, now_a => half[3,2]{-1.6875, 1.625, -3, 4, -1.875, -0.4062}; half[3,2]{3.125, 0.25, 2, 0.25, 0.25, 0.6875}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form {
    use_nesterov: bool,
}

impl<W: Wide> Optimizer<W, 1, 2> for Form {
    type Rule = Momentum<W>;

    fn rule(self, [lr, momentum]: [W; 2]) -> Momentum<W> {
        Momentum {
            lr,
            momentum,
            use_nesterov: self.use_nesterov,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    let use_nesterov = node.attrs.bool("use_nesterov")?;
    complex_kernel(node, inputs, Form { use_nesterov })
}
