//! `SparseConditionalAccumulator` and the ops on it: gradients that come as slices of a larger tensor.
//!
//! TensorFlow: SparseConditionalAccumulator() -> handle: Ref(string), with dtype, shape, reduction_type;
//! SparseAccumulatorApplyGradient(handle, local_step, gradient_indices, gradient_values, gradient_shape), with
//! has_known_shape; SparseAccumulatorTakeGradient(handle, num_required) -> (indices, values, shape). Indices are taken to be
//! in order. The mean of a row counts only the gradients that had it.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::PartialShape;

use super::Accumulator;
use super::gathered::Gathered;
use super::ops::{ACCUMULATOR, ATTRS, T, TYPES, build_take, build_with};
use crate::data_flow::keeper::resource;

const SPARSE: OpDef = OpDef {
    scripts: &[
        script(
            "the mean of rows",
            "acc = SparseConditionalAccumulator() {dtype=float, shape=[4,1]}
             step = int64[]{0}
             two = int32[]{2}
             i = int64[2]{0, 2}
             v = float[2,1]{1, 2}
             j = int64[2]{2, 3}
             w = float[2,1]{6, 8}
             shape = int64[2]{4, 1}
             five = int64[2]{5, 1}
             short = int64[1]{4}
             far = int64[2]{2, 4}
             one = int64[1]{0}
             wide = float[2,2]{1, 2, 3, 4}
             none = float[]{1}
             flat = int64[]{1}
             count = AccumulatorNumAccumulated(acc)
             first = SparseAccumulatorApplyGradient(acc, step, i, v, shape) {dtype=float, has_known_shape=true}
             second = SparseAccumulatorApplyGradient(acc, step, j, w, short) {dtype=float, has_known_shape=false}
             long = SparseAccumulatorApplyGradient(acc, step, i, v, five) {dtype=float, has_known_shape=true}
             flatter = SparseAccumulatorApplyGradient(acc, step, i, v, short) {dtype=float, has_known_shape=true}
             farther = SparseAccumulatorApplyGradient(acc, step, far, v, shape) {dtype=float, has_known_shape=true}
             fewer = SparseAccumulatorApplyGradient(acc, step, one, v, shape) {dtype=float, has_known_shape=true}
             wider = SparseAccumulatorApplyGradient(acc, step, i, wide, shape) {dtype=float, has_known_shape=true}
             scalar = SparseAccumulatorApplyGradient(acc, step, one, none, shape) {dtype=float, has_known_shape=true}
             matrix = SparseAccumulatorApplyGradient(acc, step, flat, v, shape) {dtype=float, has_known_shape=true}
             take = SparseAccumulatorTakeGradient(acc, two) {dtype=float}",
            &[
                "run wider fails INVALID_ARGUMENT Shape mismatch: expected values dim 1 to be 1, got 2",
                "run first",
                "run long fails INVALID_ARGUMENT Shape mismatch: expected shape dim 0 to be 4, got 5",
                "run flatter fails INVALID_ARGUMENT Shape mismatch: expected shape rank at least 2, got 1",
                "run farther fails INVALID_ARGUMENT Shape mismatch: index of slice 1 exceeded limits of shape; index is 4 exceeded 4",
                "run fewer fails INVALID_ARGUMENT Expected 1 non-empty input values, got 2",
                "run wider fails INVALID_ARGUMENT Shape mismatch: expected values dim 1 to be 1, got 2",
                "run scalar fails INVALID_ARGUMENT Values cannot be 0-dimensional.",
                "run matrix fails INVALID_ARGUMENT Input indices should be vector but received shape: []",
                "run second",
                "fetch count => int32[]{2}",
                "fetch take:0, take:1, take:2 => int64[3]{0, 2, 3}; float[3,1]{1, 4, 8}; int64[2]{4, 1}",
                "run first",
                "fetch count => int32[]{0}",
            ],
        ),
        script(
            "the sum of rows of unknown shape",
            "acc = SparseConditionalAccumulator() {dtype=half, shape=?, reduction_type='SUM'}
             step = int64[]{0}
             one = int32[]{1}
             i = int64[2]{1, 2}
             v = half[2,2]{1, 2, 3, 4}
             shape = int64[0]{}
             put = SparseAccumulatorApplyGradient(acc, step, i, v, shape) {dtype=half, has_known_shape=false}
             take = SparseAccumulatorTakeGradient(acc, one) {dtype=half}",
            &[
                "run put",
                "run put",
                "fetch take:0, take:1, take:2 => int64[2]{1, 2}; half[2,2]{2, 4, 6, 8}; int64[2]{-1, 2}",
            ],
        ),
    ],
    ..ACCUMULATOR
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "SparseAccumulatorApplyGradient",
        inputs: &[
            "handle: Ref(string)",
            "local_step: int64",
            "gradient_indices: int64",
            "gradient_values: dtype",
            "gradient_shape: int64",
        ],
        attrs: &[T, "has_known_shape: bool"],
        stateful: false,
        kernels: &[cpu(&[("dtype", TYPES)], build_apply)],
        ..SPARSE
    },
    OpDef {
        name: "SparseAccumulatorTakeGradient",
        inputs: &["handle: Ref(string)", "num_required: int32"],
        outputs: &["indices: int64", "values: dtype", "shape: int64"],
        attrs: &[T],
        stateful: false,
        kernels: &[cpu(&[("dtype", TYPES)], build_take)],
        ..SPARSE
    },
    OpDef {
        name: "SparseConditionalAccumulator",
        outputs: &["handle: Ref(string)"],
        attrs: ATTRS,
        kernels: &[cpu(&[("dtype", TYPES)], build)],
        cost: Cost::Cheap,
        ..SPARSE
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    build_with(node, true)
}

fn build_apply(node: &NodeInfo) -> Result<AnyKernel> {
    let has_known_shape = node.attrs.bool("has_known_shape")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let accumulator = resource::<Accumulator>(ctx)?;
        let step = ctx.scalar::<i64>(1)?;
        let values = ctx.take(3)?;
        let (indices, shape) = (ctx.input(2)?, ctx.ints(4)?);
        accumulator.apply(step, || {
            let gradient = Gathered::slices(indices, values)?;
            if has_known_shape {
                check_shape(&accumulator.shape, &shape)?;
            }
            Ok(gradient)
        })
    })
}

/// The shape a gradient says it has against that of the accumulator.
fn check_shape(wanted: &PartialShape, found: &[i64]) -> Result<()> {
    let wanted = wanted.dims().unwrap_or(&[]);
    ensure!(
        wanted.len() <= found.len(),
        invalid_argument,
        "Shape mismatch: expected shape rank at least {}, got {}",
        wanted.len(),
        found.len()
    );
    for (axis, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        ensure!(
            *wanted < 0 || wanted == found,
            invalid_argument,
            "Shape mismatch: expected shape dim {axis} to be {wanted}, got {found}"
        );
    }
    Ok(())
}
