//! `ApplyFtrlV2` and its sparse and resource forms: follow the regularised leader, with l2 shrinkage.
//!
//! TensorFlow: ApplyFtrlV2(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T,
//! l2_shrinkage: T, lr_power: T) -> out: Ref(T), with attrs use_locking: bool = false,
//! multiply_linear_by_lr: bool = false; sparse forms take `indices: Tindices` after the gradient.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::Result;

use super::apply::kernel;
use super::ftrl::Form;
use super::signature::{
    BY_HANDLE, BY_REFERENCE, dense_attrs, handles, refs, sparse_attrs, with_handles, with_refs,
};
use crate::types::{FLOATS, INDEX};

const DENSE: &[&str] = refs!["var", "accum", "linear"; "grad: T", "lr: T", "l1: T", "l2: T", "l2_shrinkage: T", "lr_power: T"];
const SPARSE: &[&str] = refs!["var", "accum", "linear"; "grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "l2_shrinkage: T", "lr_power: T"];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "ApplyFtrlV2",
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
                 l2_shrinkage = float[]{0.125}
                 lr_power = float[]{-0.5}
                 apply = ApplyFtrlV2(v, a, l, grad, lr, l1, l2, l2_shrinkage, lr_power)"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3]{-0.0666762, 0.36747575, -1.0530055}",
                    "fetch apply => float[3]{-0.22778653, 0.5709055, -1.2901186}",
                    "fetch a, l => float[3]{1, 3, 10}; float[3]{0.93335956, -2.7985802, 9.699545}",
                ],
            ),
            script(
                "linear slot scaled by the learning rate",
                with_refs!("float" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", l = "0, 0.5, -1";
                "grad = float[3]{0.5, -1, 2}
                 lr = float[]{0.5}
                 l1 = float[]{0.25}
                 l2 = float[]{0.5}
                 l2_shrinkage = float[]{0.125}
                 lr_power = float[]{-0.5}
                 apply = ApplyFtrlV2(v, a, l, grad, lr, l1, l2, l2_shrinkage, lr_power) {multiply_linear_by_lr=true}"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3]{-0.0666762, 0.23687382, -0.88348454}",
                    "fetch apply => float[3]{-0.22778653, 0.4476176, -1.1263838}",
                    "fetch a, l => float[3]{1, 3, 10}; float[3]{0.46667978, -1.1241052, 4.25013}",
                ],
            ),
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceApplyFtrlV2",
        inputs: handles!["var", "accum", "linear"; "grad: T", "lr: T", "l1: T", "l2: T", "l2_shrinkage: T", "lr_power: T"],
        attrs: dense_attrs!["multiply_linear_by_lr: bool = false"],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, DENSE))],
        scripts: &[script(
            "two steps",
            with_handles!("double" "[3]", v = "1, 2, -3", a = "0.5, 1, 2", l = "0, 0.5, -1";
                "grad = double[3]{0.5, -1, 2}
                 lr = double[]{0.5}
                 l1 = double[]{0.25}
                 l2 = double[]{0.5}
                 l2_shrinkage = double[]{0.125}
                 lr_power = double[]{-0.5}
                 apply = ResourceApplyFtrlV2(v, a, l, grad, lr, l1, l2, l2_shrinkage, lr_power)"),
            &[
                "run set_v, set_a, set_l",
                "fetch now_v => double[3]{-0.06667619588169957, 0.3674757814766161, -1.0530053711254974}",
                "fetch now_v, now_a, now_l => double[3]{-0.22778651289155794, 0.5709055267923088, -1.2901185583788601}; double[3]{1, 3, 10}; double[3]{0.9333595386746738, -2.798580284244616, 9.69954475063907}",
            ],
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "SparseApplyFtrlV2",
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
                 l2_shrinkage = float[]{0.125}
                 lr_power = float[]{-0.5}
                 apply = SparseApplyFtrlV2(v, a, l, grad, rows, lr, l1, l2, l2_shrinkage, lr_power)"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3,2]{0.06264531, -0.25, -3, 4, -0.056133606, 0}",
                    "fetch apply => float[3,2]{-0.1592361, -0.22916667, -3, 4, -0.094158575, 0}",
                    "fetch a, l => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}; float[3,2]{1.3377341, 0.9375, -1, 2, 0.7491499, 0.054014206}",
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
                 l2_shrinkage = float[]{0.125}
                 lr_power = float[]{-0.5}
                 apply = SparseApplyFtrlV2(v, a, l, grad, rows, lr, l1, l2, l2_shrinkage, lr_power) {multiply_linear_by_lr=true}"),
                &[
                    "run set_v, set_a, set_l",
                    "fetch apply => float[3,2]{0.06264531, -0.41666666, -3, 4, -0.1025648, 0}",
                    "fetch apply => float[3,2]{-0.1592361, -0.38194445, -3, 4, -0.13630214, 0}",
                    "fetch a, l => float[3,2]{8.5, 1, 2, 0.25, 4.625, 5}; float[3,2]{0.66886705, 0.6979167, -1, 2, 0.4862799, 0.027007103}",
                ],
            ),
            BAD_SCALARS,
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceSparseApplyFtrlV2",
        inputs: handles!["var", "accum", "linear"; "grad: T", "indices: Tindices", "lr: T", "l1: T", "l2: T", "l2_shrinkage: T", "lr_power: T"],
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
                 l2_shrinkage = half[]{0.125}
                 lr_power = half[]{-0.5}
                 apply = ResourceSparseApplyFtrlV2(v, a, l, grad, rows, lr, l1, l2, l2_shrinkage, lr_power)"),
            &[
                "run set_v, set_a, set_l",
                "fetch now_v => half[3,2]{0.0626, -0.25, -3, 4, -0.0559, 0}",
                "fetch now_v, now_a, now_l => half[3,2]{-0.1592, -0.2291, -3, 4, -0.09393, 0}; half[3,2]{8.5, 1, 2, 0.25, 4.625, 5}; half[3,2]{1.338, 0.9375, -1, 2, 0.748, 0.05322}",
            ],
        )],
        ..BY_HANDLE
    },
];

const BAD_SCALARS: Script = script(
    "scalars out of range",
    with_refs!("float" "[2]", v = "1, 2", a = "1, 1", l = "0";
        "zero = float[]{0}
         half = float[]{0.5}
         less = float[]{-0.5}
         grad = float[2]{1, 1}
         rows = int32[2]{0, 1}
         bad_lr = SparseApplyFtrlV2(v, a, l, grad, rows, zero, half, half, half, less)
         good_lr = SparseApplyFtrlV2(v, a, l, grad, rows, zero, half, half, half, less) {multiply_linear_by_lr=true}
         bad_l1 = SparseApplyFtrlV2(v, a, l, grad, rows, half, less, half, half, less)
         bad_l2 = SparseApplyFtrlV2(v, a, l, grad, rows, half, half, less, half, less)
         bad_shrinkage = SparseApplyFtrlV2(v, a, l, grad, rows, half, half, half, less, less)
         bad_power = SparseApplyFtrlV2(v, a, l, grad, rows, half, half, half, half, half)
         dense = ApplyFtrlV2(v, a, l, grad, half, half, half, half, half)"),
    &[
        "run set_v, set_a, set_l",
        "run bad_lr fails INVALID_ARGUMENT lr is not a positive scalar (or zero if multiply_linear_by_lr is set)",
        "run bad_l1 fails INVALID_ARGUMENT l1 regularization strength is not a non-negative scalar",
        "run bad_l2 fails INVALID_ARGUMENT l2 regularization strength is not a non-negative scalar",
        "run bad_shrinkage fails INVALID_ARGUMENT l2 shrinkage regularization strength is not a non-negative scalar",
        "run bad_power fails INVALID_ARGUMENT lr_power is not a non-positive scalar",
        "fetch dense => ?",
        "fetch good_lr => ?",
    ],
);

fn build(node: &NodeInfo, inputs: &'static [&'static str]) -> Result<AnyKernel> {
    kernel::<_, 2, 5>(node, inputs, Form::of(node)?)
}
