//! `ApplyFtrl` and its sparse and resource forms: follow the regularised leader.
//!
//! TensorFlow: ApplyFtrl(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T,
//! lr_power: T) -> out: Ref(T), with attrs use_locking: bool = false, multiply_linear_by_lr: bool = false;
//! sparse forms take `indices: Tindices` after the gradient.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::optimizer::{Ftrl, RealWide};
use tensorfleet_status::{Result, ensure};

use super::apply::{Optimizer, check_strength, kernel};
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS, INDEX};

const DENSE: &[&str] =
    refs!["var", "accum", "linear"; "grad: T", "lr: T", "l1: T", "l2: T", "lr_power: T"];
const SPARSE: &[&str] = refs!["var", "accum", "linear"; "grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "lr_power: T"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyFtrl",
        inputs: DENSE,
        attrs: dense_attrs!["multiply_linear_by_lr: bool = false"],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[
            script(
                "two steps",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", l = "0, 0.5, -1";
                "grad = float[3]{0.5, -1, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 lr_power = float[]{-0.5}
                 apply = ApplyFtrl(v, a, l, grad, lr, l1, l2, lr_power)"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3]{0, 0.4980777, -1.1801461}",
                    "fetch apply => float[3]{-0.14405425, 0.7220869, -1.4532001}",
                    "fetch a, l => float[3]{1, 3, 10}; float[3]{0.68216276, -3.4734695, 10.894045}",
                ],
            ),
            script(
                "linear slot scaled by the learning rate",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", l = "0, 0.5, -1";
                "grad = float[3]{0.5, -1, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 lr_power = float[]{-0.5}
                 apply = ApplyFtrl(v, a, l, grad, lr, l1, l2, lr_power) {multiply_linear_by_lr=true}"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3]{0, 0.36747575, -1.0106252}",
                    "fetch apply => float[3]{-0.14405425, 0.59148496, -1.2836792}",
                    "fetch a, l => float[3]{1, 3, 10}; float[3]{0.34108138, -1.4452245, 4.82619}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyFtrl",
        inputs: handles!["var", "accum", "linear"; "grad: T", "lr: T", "l1: T", "l2: T", "lr_power: T"],
        attrs: dense_attrs!["multiply_linear_by_lr: bool = false"],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", l = "0, 0.5, -1";
                "grad = double[3]{0.5, -1, 2}
                 lr = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 lr_power = double[]{-0.5}
                 apply = ResourceApplyFtrl(v, a, l, grad, lr, l1, l2, lr_power)"),
            &[
                "run set_v, set_a, set_l",
                "fetch now_v => double[3]{0, 0.4980777189584868, -1.1801460065244003}",
                "fetch now_v, now_a, now_l => double[3]{-0.14405425160140597, 0.7220869566982826, -1.453200125516029}; double[3]{1, 3, 10}; double[3]{0.682162754804218, -3.473469549666709, 10.894044710862476}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyFtrl",
        inputs: SPARSE,
        attrs: sparse_attrs!["multiply_linear_by_lr: bool = false"],
        kernels: &[cpu(&[("T", FLOATS), ("Tindices", INDEX)], |node| {
            build(node, SPARSE)
        })],
        scripts: &[
            script(
                "two steps, one row twice",
                with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1", l = "0, 0.5, -1, 2, 0.25, 0";
                "grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 lr_power = float[]{-0.5}
                 apply = SparseApplyFtrl(v, a, l, grad, rows, lr, l1, l2, lr_power)"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3,2]{0.11033121, -0.083333336, -3, 4, -0.037069824, 0}",
                    "fetch apply => float[3,2]{-0.10925753, -0.083333336, -3, 4, -0.084750995, 0}",
                    "fetch a, l => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}; float[3,2]{0.9963329, 0.5, -1, 2, 0.69927883, 0.05718863}",
                ],
            ),
            script(
                "linear slot scaled by the learning rate",
                with_refs!("float" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1", l = "0, 0.5, -1, 2, 0.25, 0";
                "grad = float[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int32[3]{2, 0, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 lr_power = float[]{-0.5}
                 apply = SparseApplyFtrl(v, a, l, grad, rows, lr, l1, l2, lr_power) {multiply_linear_by_lr=true}"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3,2]{0.11033121, -0.25, -3, 4, -0.08586835, 0}",
                    "fetch apply => float[3,2]{-0.10925753, -0.25, -3, 4, -0.13354953, 0}",
                    "fetch a, l => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}; float[3,2]{0.49816644, 0.5, -1, 2, 0.47898388, 0.028594315}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyFtrl",
        inputs: handles!["var", "accum", "linear"; "grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "lr_power: T"],
        attrs: sparse_attrs!["multiply_linear_by_lr: bool = false"],
        kernels: &[cpu(&[("T", FLOATS), ("Tindices", INDEX)], |node| {
            build(node, SPARSE)
        })],
        scripts: &[script(
            "two steps, one row twice",
            with_handles!("half" "[3,2]", v = "1, 2, -3, 4, 0.5, -0.25", a = "0.5, 1, 2, 0.25, 4, 1", l = "0, 0.5, -1, 2, 0.25, 0";
                "grad = half[3,2]{0.5, -1, 2, 0, -0.25, 1}
                 rows = int64[3]{2, 0, 2}
                 lr = half[]{0.5}
                 l1 = half[]{0.25}
                 l2 = half[]{0.5}
                 lr_power = half[]{-0.5}
                 apply = ResourceSparseApplyFtrl(v, a, l, grad, rows, lr, l1, l2, lr_power)"),
            &[
                "run set_v, set_a, set_l",
                "fetch now_v => half[3,2]{0.1103, -0.0833, -3, 4, -0.03687, 0}",
                "fetch now_v, now_a, now_l => half[3,2]{-0.1092, -0.0833, -3, 4, -0.08453, 0}; half[3,2]{8.5, 1, 2, 0.25, 4.625, 5}; half[3,2]{0.996, 0.5, -1, 2, 0.698, 0.05664}",
            ],
        )],
        ..BY_HANDLE
    },
];

/// Also that of `ApplyFtrlV2`, which has one scalar more.
#[derive(Clone, Copy)]
pub(super) struct Form {
    multiply_linear_by_lr: bool,
    sparse: bool,
}

impl Form {
    pub(super) fn of(node: &NodeInfo) -> Result<Form> {
        Ok(Form {
            multiply_linear_by_lr: node.attrs.bool("multiply_linear_by_lr")?,
            sparse: node.op.contains("Sparse"),
        })
    }
}

impl<W: RealWide> Optimizer<W, 2, 4> for Form {
    type Rule = Ftrl<W>;

    fn rule(self, [lr, l1, l2, lr_power]: [W; 4]) -> Ftrl<W> {
        self.rule([lr, l1, l2, W::default(), lr_power])
    }

    fn check(self, [lr, l1, l2, lr_power]: [f64; 4]) -> Result<()> {
        Optimizer::<W, 2, 5>::check(self, [lr, l1, l2, 0.0, lr_power])
    }
}

impl<W: RealWide> Optimizer<W, 2, 5> for Form {
    type Rule = Ftrl<W>;

    fn rule(self, [lr, l1, l2, l2_shrinkage, lr_power]: [W; 5]) -> Ftrl<W> {
        Ftrl {
            lr,
            l1,
            l2,
            l2_shrinkage,
            lr_power,
            multiply_linear_by_lr: self.multiply_linear_by_lr,
        }
    }

    fn check(self, [lr, l1, l2, l2_shrinkage, lr_power]: [f64; 5]) -> Result<()> {
        // TensorFlow's dense kernels take any values.
        if !self.sparse {
            return Ok(());
        }
        ensure!(
            lr > 0.0 || (self.multiply_linear_by_lr && lr == 0.0),
            invalid_argument,
            "lr is not a positive scalar (or zero if multiply_linear_by_lr is set): {lr}"
        );
        check_strength("l1", l1)?;
        check_strength("l2", l2)?;
        check_strength("l2 shrinkage", l2_shrinkage)?;
        ensure!(
            lr_power <= 0.0,
            invalid_argument,
            "lr_power is not a non-positive scalar: {lr_power}"
        );
        Ok(())
    }
}

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel::<_, 2, 4>(node, inputs, Form::of(node)?)
}
