//! `ResourceApplyKerasMomentum` and its sparse form: accum = momentum·accum - lr·grad, var += accum.
//!
//! TensorFlow: ResourceApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, momentum: T),
//! with attrs use_locking: bool = false, use_nesterov: bool = false; sparse forms take `indices: Tindices`
//! after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{KerasMomentum, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{BY_HANDLE, dense_attrs, handles, refs, sparse_attrs, with_handles};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] = refs!["var", "accum"; "lr: T", "grad: T", "momentum: T"];
const SPARSE: &[&str] =
    refs!["var", "accum"; "lr: T", "grad: T", "indices: Tindices", "momentum: T"];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ResourceApplyKerasMomentum",
        inputs: handles!["var", "accum"; "lr: T", "grad: T", "momentum: T"],
        attrs: dense_attrs!["use_nesterov: bool = false"],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_handles!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 momentum = float[]{0.5}
                 apply = ResourceApplyKerasMomentum(v, a, lr, grad, momentum)"),
                &[
                    "run set_v, set_a",
                    "fetch now_v => float[3]{1, 3, -3}",
                    "fetch now_v, now_a => float[3]{0.75, 4, -4}; float[3]{-0.25, 1, -1}",
                ],
            ),
            script(
                "with Nesterov's momentum",
                with_handles!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2";
                "lr = float[]{0.5}
                 grad = float[3]{0.5, -1, 2}
                 momentum = float[]{0.5}
                 apply = ResourceApplyKerasMomentum(v, a, lr, grad, momentum) {use_nesterov=true}"),
                &[
                    "run set_v, set_a",
                    "fetch now_v => float[3]{0.75, 3, -4}",
                    "fetch now_v, now_a => float[3]{0.375, 4, -5.5}; float[3]{-0.25, 1, -1}",
                ],
            ),
            script(
                "complex numbers",
                with_handles!("complex64" "[2]", v = "(1,1), (2,-1)", a = "(0.5,0.25), (1,0)";
                "lr = complex64[]{0.5}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 momentum = complex64[]{0.5}
                 apply = ResourceApplyKerasMomentum(v, a, lr, grad, momentum)"),
                &[
                    "run set_v, set_a",
                    "fetch now_v, now_a => complex64[2]{(1,1.625), (2,-1.125)}; complex64[2]{(0,0.625), (0,-0.125)}",
                ],
            ),
        ],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceSparseApplyKerasMomentum",
        inputs: handles!["var", "accum"; "lr: T", "grad: T", "indices: Tindices", "momentum: T"],
        attrs: sparse_attrs!["use_nesterov: bool = false"],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[
            script(
                "two steps, one row twice",
                with_handles!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 momentum = float[]{0.5}
                 apply = ResourceSparseApplyKerasMomentum(v, a, lr, grad, rows, momentum)"),
                &[
                    "run set_v, set_a",
                    "fetch now_v => float[3,2]{0.25, 2.5, -3, 4, 3.25, 0.75}",
                    "fetch now_v, now_a => float[3,2]{-1.125, 2.75, -3, 4, 3.75, 1}; float[3,2]{-1.375, 0.25, 2, 0.25, 0.25, -0.25}",
                ],
            ),
            script(
                "with Nesterov's momentum",
                with_handles!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1";
                "lr = float[]{0.5}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 momentum = float[]{0.5}
                 apply = ResourceSparseApplyKerasMomentum(v, a, lr, grad, rows, momentum) {use_nesterov=true}"),
                &[
                    "run set_v, set_a",
                    "fetch now_v => float[3,2]{-0.375, 2.25, -3, 4, 1.75, 0.25}",
                    "fetch now_v, now_a => float[3,2]{-2.0625, 2.375, -3, 4, 1.875, 0.375}; float[3,2]{-1.375, 0.25, 2, 0.25, 0.25, -0.25}",
                ],
            ),
        ],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form {
    use_nesterov: bool,
}

impl<W: Wide> Optimizer<W, 1, 2> for Form {
    type Rule = KerasMomentum<W>;

    fn rule(self, [lr, momentum]: [W; 2]) -> KerasMomentum<W> {
        KerasMomentum {
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
