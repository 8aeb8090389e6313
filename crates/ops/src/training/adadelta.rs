//! `ApplyAdadelta` and its sparse and resource forms: accum = rho·accum + (1-rho)·grad², update = √(accum_update+epsilon) / √(accum+epsilon) · grad,
//! accum_update = rho·accum_update + (1-rho)·update², var -= lr·update.
//!
//! TensorFlow: ApplyAdadelta(var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T,
//! grad: T) -> out: Ref(T), with attr use_locking: bool = false; sparse forms take `indices: Tindices`
//! after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{Adadelta, Wide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, complex_kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS_AND_COMPLEX, INDEX};

const DENSE: &[&str] =
    refs!["var", "accum", "accum_update"; "lr: T", "rho: T", "epsilon: T", "grad: T"];
const SPARSE: &[&str] = refs!["var", "accum", "accum_update"; "lr: T", "rho: T", "epsilon: T", "grad: T", "indices: Tindices"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyAdadelta",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", u = "0.25, 0.5, 1";
                "lr = float[]{0.5}
                 rho = float[]{0.75}
                 epsilon = float[]{0.125}
                 grad = float[3]{0.5, -1, 2}
                 apply = ApplyAdadelta(v, a, u, lr, rho, epsilon, grad)"),
                &[
                    "run set_v, set_a, set_u",
                    "fetch apply => float[3]{0.79587585, 2.372678, -3.6546535}",
                    "fetch apply => float[3]{0.588682, 2.749474, -4.313838}",
                    "fetch a, u => float[3]{0.390625, 1, 2.875}; float[3]{0.21480429, 0.527392, 1.3184524}",
                ],
            ),
            script(
                "complex numbers",
                with_refs!("complex64" "[2]", v = "(1,1), (2,-1)", a = "(0.5,0.25), (1,0)", u = "(0.25,0), (0.5,-0.5)";
                "lr = complex64[]{0.5}
                 rho = complex64[]{0.75}
                 epsilon = complex64[]{0.125}
                 grad = complex64[2]{(0.5,-1), (1,0.25)}
                 apply = ApplyAdadelta(v, a, u, lr, rho, epsilon, grad)"),
                &[
                    "run set_v, set_a, set_u",
                    "fetch apply => complex64[2]{(0.6766859,1.5130165), (1.5684108,-0.93543667)}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAdadelta",
        inputs: handles!["var", "accum", "accum_update"; "lr: T", "rho: T", "epsilon: T", "grad: T"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", u = "0.25, 0.5, 1";
                "lr = double[]{0.5}
                 rho = double[]{0.75}
                 epsilon = double[]{0.125}
                 grad = double[3]{0.5, -1, 2}
                 apply = ResourceApplyAdadelta(v, a, u, lr, rho, epsilon, grad)"),
            &[
                "run set_v, set_a, set_u",
                "fetch now_v => double[3]{0.7958758547680685, 2.372677996249965, -3.654653670707977}",
                "fetch now_v, now_a, now_u => double[3]{0.5886820012653815, 2.749474106423591, -4.313837870703555}; double[3]{0.390625, 1, 2.875}; double[3]{0.21480429292929293, 0.5273919753086421, 1.318452380952381}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyAdadelta",
        inputs: SPARSE,
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1", u = "0.25, 0.5, 1, 2, 0, 1";
                "lr = float[]{0.5}
                 rho = float[]{0.75}
                 epsilon = float[]{0.125}
                 grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 apply = SparseApplyAdadelta(v, a, u, lr, rho, epsilon, grad, rows)"),
            &[
                "run set_v, set_a, set_u",
                "fetch apply => float[3,2]{0.5, 2, -3, 4, 0.47907573, -0.25}",
                "fetch apply => float[3,2]{-0.01075393, 2, -3, 4, 0.45175007, -0.25}",
                "fetch a, u => float[3,2]{2.03125, 0.5625, 2, 0.25, 1.3632812, 1}; float[3,2]{0.58899456, 0.28125, 1, 2, 0.0059839366, 1}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyAdadelta",
        inputs: handles!["var", "accum", "accum_update"; "lr: T", "rho: T", "epsilon: T", "grad: T", "indices: Tindices"],
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", FLOATS_AND_COMPLEX), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("half" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1", u = "0.25, 0.5, 1, 2, 0, 1";
                "lr = half[]{0.5}
                 rho = half[]{0.75}
                 epsilon = half[]{0.125}
                 grad = half[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 apply = ResourceSparseApplyAdadelta(v, a, u, lr, rho, epsilon, grad, rows)"),
            &[
                "run set_v, set_a, set_u",
                "fetch now_v => half[3,2]{0.5, 2, -3, 4, 0.479, -0.25}",
                "fetch now_v, now_a, now_u => half[3,2]{-0.01074, 2, -3, 4, 0.4517, -0.25}; half[3,2]{2.031, 0.5625, 2, 0.25, 1.363, 1}; half[3,2]{0.589, 0.2812, 1, 2, 0.005985, 1}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: Wide> Optimizer<W, 2, 3> for Form {
    type Rule = Adadelta<W>;

    fn rule(self, [lr, rho, epsilon]: [W; 3]) -> Adadelta<W> {
        Adadelta { lr, rho, epsilon }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    complex_kernel(node, inputs, Form)
}
