//! `ApplyAdagradDA` and its sparse and resource forms: dual averaging: sums of gradients and of their squares, from which var is made anew.
//!
//! TensorFlow: ApplyAdagradDA(var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator:
//! Ref(T), grad: T, lr: T, l1: T, l2: T, global_step: int64) -> out: Ref(T), with attr use_locking: bool =
//! false; sparse forms take `indices: Tindices` after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{AdagradDa, RealWide};
use tensorfleet_status::Result;

use super::apply::{Optimizer, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{INDEX, SINGLE_AND_DOUBLE};

const DENSE: &[&str] = refs!["var", "gradient_accumulator", "gradient_squared_accumulator"; "grad: T", "lr: T", "l1: T", "l2: T", "global_step: int64"];
const SPARSE: &[&str] = refs!["var", "gradient_accumulator", "gradient_squared_accumulator"; "grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "global_step: int64"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyAdagradDA",
        inputs: DENSE,
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_refs!("float" "[3]", v = "1, 2, -3", sum = "0, 1, -1", squares = "0.5, 1, 2";
                "grad = float[3]{0.5, -1, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 step = int64[]{2}
                 apply = ApplyAdagradDA(v, sum, squares, grad, lr, l1, l2, step)"),
            &[
                "run set_v, set_sum, set_squares",
                "fetch apply => float[3]{0, 0, -0.08476042}",
                "fetch apply => float[3]{-0.16666667, 0.112004615, -0.34131765}",
                "fetch sum, squares => float[3]{1, -1, 3}; float[3]{1, 3, 10}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyAdagradDA",
        inputs: handles!["var", "gradient_accumulator", "gradient_squared_accumulator"; "grad: T", "lr: T", "l1: T", "l2: T", "global_step: int64"],
        attrs: dense_attrs![],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", sum = "0, 1, -1", squares = "0.5, 1, 2";
                "grad = double[3]{0.5, -1, 2}
                 lr = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 step = int64[]{2}
                 apply = ResourceApplyAdagradDA(v, sum, squares, grad, lr, l1, l2, step)"),
            &[
                "run set_v, set_sum, set_squares",
                "fetch now_v => double[3]{0, 0, -0.08476042359926862}",
                "fetch now_v, now_sum, now_squares => double[3]{-0.16666666666666666, 0.11200461886989795, -0.3413176487395358}; double[3]{1, -1, 3}; double[3]{1, 3, 10}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyAdagradDA",
        inputs: SPARSE,
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", SINGLE_AND_DOUBLE), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", sum = "0, 1, -1, 2, 0.5, 0", squares = "0.5, 1, 2, 4, 1, 0.25";
                "grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 step = int64[]{2}
                 apply = SparseApplyAdagradDA(v, sum, squares, grad, rows, lr, l1, l2, step)"),
            &[
                "run set_v, set_sum, set_squares",
                "fetch apply => float[3,2]{-0.28611538, -0.16666667, -3, 4, -0.07595811, 0}",
                "fetch apply => float[3,2]{-0.5123737, -0.16666667, -3, 4, -0.14086452, 0}",
                "fetch sum, squares => float[3,2]{4, 1, -1, 2, 1, 0}; float[3,2]{8.5, 1, 2, 4, 1.625, 4.25}",
            ],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyAdagradDA",
        inputs: handles!["var", "gradient_accumulator", "gradient_squared_accumulator"; "grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "global_step: int64"],
        attrs: sparse_attrs![],
        kernels: &[cpu(
            &[("T", SINGLE_AND_DOUBLE), ("Tindices", INDEX)],
            |node| build(node, SPARSE),
        )],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("double" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", sum = "0, 1, -1, 2, 0.5, 0", squares = "0.5, 1, 2, 4, 1, 0.25";
                "grad = double[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 lr = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 step = int64[]{2}
                 apply = ResourceSparseApplyAdagradDA(v, sum, squares, grad, rows, lr, l1, l2, step)"),
            &[
                "run set_v, set_sum, set_squares",
                "fetch now_v => double[3,2]{-0.2861153547458193, -0.16666666666666666, -3, 4, -0.07595810867517176, 0}",
                "fetch now_v, now_sum, now_squares => double[3,2]{-0.5123736858169258, -0.16666666666666666, -3, 4, -0.14086452334512659, 0}; double[3,2]{4, 1, -1, 2, 1, 0}; double[3,2]{8.5, 1, 2, 4, 1.625, 4.25}",
            ],
        )],
        ..BY_HANDLE
    },
];

#[derive(Clone, Copy)]
struct Form;

impl<W: RealWide> Optimizer<W, 2, 4> for Form {
    type Rule = AdagradDa<W>;

    fn rule(self, [lr, l1, l2, global_step]: [W; 4]) -> AdagradDa<W> {
        AdagradDa {
            lr,
            l1,
            l2,
            global_step,
        }
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel(node, inputs, Form)
}
