//! `NonMaxSuppression` in all versions, and `NonMaxSuppressionWithOverlaps`: of boxes that overlap much, only the one with the
//! best score is kept.
//!
//! TensorFlow: NonMaxSuppressionV3(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold:
//! T_threshold) -> selected_indices: int32. The first version has its threshold as an attribute, the second no score_threshold;
//! the fourth may pad to max_output_size and tells how many indices count; the fifth lowers scores by overlap instead of dropping
//! boxes if its soft_nms_sigma is not zero. Halves are compared in single precision.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, ex_ref, f32s, i32s, of};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::select_boxes::{Rules, iou};
use crate::math::cast::converted;

const HALF_OR_SINGLE: &[DType] = &[DType::F16, DType::F32];

const BOXES: Lit = f32s(
    &[6, 4],
    &[
        0.0, 0.0, 1.0, 1.0, 0.0, 0.125, 1.0, 1.125, 0.0, -0.125, 1.0, 0.875, 0.0, 10.0, 1.0, 11.0,
        0.0, 10.125, 1.0, 11.125, 0.0, 100.0, 1.0, 101.0,
    ],
);
const SCORES: Lit = f32s(&[6], &[0.875, 0.75, 0.625, 0.9375, 0.5, 0.25]);
const THREE: Lit = i32s(&[], &[3]);
const FIVE: Lit = i32s(&[], &[5]);
const HALF: Lit = f32s(&[], &[0.5]);
const QUARTER: Lit = f32s(&[], &[0.25]);
const PADDED: (&str, &str) = ("pad_to_max_output_size", "true");
const TYPES: &[&str] = &[
    "T: {half, float} = DT_FLOAT",
    "T_threshold: {half, float} = DT_FLOAT",
];

const NMS: OpDef = OpDef {
    outputs: &["selected_indices: int32"],
    gradient: Gradient::Stop("indices are not differentiated"),
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "NonMaxSuppression",
        inputs: &["boxes: float", "scores: float", "max_output_size: int32"],
        attrs: &["iou_threshold: float = 0.5"],
        kernels: &[cpu(&[], |node| build(node, 1))],
        examples: &[
            ex(
                "three clusters",
                &[BOXES, SCORES, THREE],
                &[i32s(&[3], &[3, 0, 5])],
            ),
            ex(
                "no boxes",
                &[f32s(&[0, 4], &[]), f32s(&[0], &[]), THREE],
                &[i32s(&[0], &[])],
            ),
            ex_err(
                "threshold",
                &[("iou_threshold", "1.5")],
                &[BOXES, SCORES, THREE],
                Code::InvalidArgument,
                "iou_threshold must be in [0, 1]",
            ),
            ex_err(
                "columns",
                &[],
                &[f32s(&[6, 3], &[0.0]), SCORES, THREE],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NMS
    },
    OpDef {
        name: "NonMaxSuppressionV2",
        inputs: &[
            "boxes: T",
            "scores: T",
            "max_output_size: int32",
            "iou_threshold: T_threshold",
        ],
        attrs: TYPES,
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, 2))],
        examples: &[
            ex(
                "three clusters",
                &[BOXES, SCORES, THREE, HALF],
                &[i32s(&[3], &[3, 0, 5])],
            ),
            ex(
                "halves",
                &[
                    of(
                        DType::F16,
                        &[2, 4],
                        &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0],
                    ),
                    of(DType::F16, &[2], &[0.25, 0.5]),
                    THREE,
                    HALF,
                ],
                &[i32s(&[1], &[1])],
            ),
        ],
        ..NMS
    },
    OpDef {
        name: "NonMaxSuppressionV3",
        inputs: &[
            "boxes: T",
            "scores: T",
            "max_output_size: int32",
            "iou_threshold: T_threshold",
            "score_threshold: T_threshold",
        ],
        attrs: TYPES,
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, 3))],
        examples: &[
            ex(
                "by score",
                &[BOXES, SCORES, THREE, HALF, QUARTER],
                &[i32s(&[2], &[3, 0])],
            ),
            ex_err(
                "negative size",
                &[],
                &[BOXES, SCORES, i32s(&[], &[-1]), HALF, QUARTER],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NMS
    },
    OpDef {
        name: "NonMaxSuppressionV4",
        inputs: &[
            "boxes: T",
            "scores: T",
            "max_output_size: int32",
            "iou_threshold: T_threshold",
            "score_threshold: T_threshold",
        ],
        outputs: &["selected_indices: int32", "valid_outputs: int32"],
        attrs: &[
            "T: {half, float} = DT_FLOAT",
            "T_threshold: {half, float} = DT_FLOAT",
            "pad_to_max_output_size: bool = false",
        ],
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, 4))],
        examples: &[
            ex_attrs(
                "padded",
                &[PADDED],
                &[BOXES, SCORES, FIVE, HALF, f32s(&[], &[0.0])],
                &[i32s(&[5], &[3, 0, 5, 0, 0]), i32s(&[], &[3])],
            ),
            ex(
                "not padded",
                &[BOXES, SCORES, FIVE, HALF, f32s(&[], &[0.375])],
                &[i32s(&[2], &[3, 0]), i32s(&[], &[2])],
            ),
        ],
        ..NMS
    },
    OpDef {
        name: "NonMaxSuppressionV5",
        inputs: &[
            "boxes: T",
            "scores: T",
            "max_output_size: int32",
            "iou_threshold: T",
            "score_threshold: T",
            "soft_nms_sigma: T",
        ],
        outputs: &[
            "selected_indices: int32",
            "selected_scores: T",
            "valid_outputs: int32",
        ],
        attrs: &[
            "T: {half, float} = DT_FLOAT",
            "pad_to_max_output_size: bool = false",
        ],
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], |node| build(node, 5))],
        examples: &[
            ex_attrs(
                "hard",
                &[PADDED],
                &[
                    BOXES,
                    SCORES,
                    FIVE,
                    HALF,
                    f32s(&[], &[0.0]),
                    f32s(&[], &[0.0]),
                ],
                &[
                    i32s(&[5], &[3, 0, 5, 0, 0]),
                    f32s(&[5], &[0.9375, 0.875, 0.25, 0.0, 0.0]),
                    i32s(&[], &[3]),
                ],
            ),
            ex_ref(
                "soft",
                &[],
                &[
                    BOXES,
                    SCORES,
                    i32s(&[], &[6]),
                    HALF,
                    f32s(&[], &[0.0]),
                    HALF,
                ],
            ),
        ],
        ..NMS
    },
    OpDef {
        name: "NonMaxSuppressionWithOverlaps",
        inputs: &[
            "overlaps: float",
            "scores: float",
            "max_output_size: int32",
            "overlap_threshold: float",
            "score_threshold: float",
        ],
        kernels: &[cpu(&[], build_overlaps)],
        examples: &[
            ex(
                "two of three",
                &[
                    f32s(
                        &[3, 3],
                        &[1.0, 0.75, 0.25, 0.75, 1.0, 0.25, 0.25, 0.25, 1.0],
                    ),
                    f32s(&[3], &[0.5, 0.625, 0.25]),
                    THREE,
                    HALF,
                    f32s(&[], &[0.0]),
                ],
                &[i32s(&[2], &[1, 2])],
            ),
            ex_err(
                "not square",
                &[],
                &[
                    f32s(&[3, 2], &[0.0]),
                    f32s(&[3], &[0.0]),
                    THREE,
                    HALF,
                    QUARTER,
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NMS
    },
];

/// The number in a scalar input.
pub(super) fn scalar(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<f32> {
    converted(ctx.par(), rank_zero(ctx, index, name)?, DType::F32)?.to_scalar::<f32>()
}

/// The count in an int32 scalar.
pub(super) fn count(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<i32> {
    rank_zero(ctx, index, name)?.to_scalar::<i32>()
}

fn rank_zero<'a>(ctx: &'a KernelCtx<'_>, index: usize, name: &str) -> Result<&'a Tensor> {
    let tensor = ctx.input(index)?;
    ensure!(
        tensor.rank() == 0,
        invalid_argument,
        "{name} must be 0-D, got shape {} (Shape must be rank 0 but is rank {})",
        tensor.shape(),
        tensor.rank()
    );
    Ok(tensor)
}

fn output_size(ctx: &KernelCtx<'_>) -> Result<usize> {
    let size = count(ctx, 2, "max_output_size")?;
    ensure!(
        size >= 0,
        invalid_argument,
        "output size must be non-negative"
    );
    Ok(size as usize)
}

fn scores(ctx: &KernelCtx<'_>, boxes: usize) -> Result<Tensor> {
    let scores = ctx.input(1)?;
    ensure!(
        scores.rank() == 1,
        invalid_argument,
        "scores must be 1-D{} (Shape must be rank 1 but is rank {})",
        scores.shape(),
        scores.rank()
    );
    ensure!(
        scores.elements() == boxes,
        invalid_argument,
        "scores has incompatible shape (Dimensions must be equal, but are {boxes} and {})",
        scores.elements()
    );
    converted(ctx.par(), scores, DType::F32)
}

fn build(node: &NodeInfo, version: u8) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let threshold = match version {
        1 => Some(attrs.float("iou_threshold")?),
        _ => None,
    };
    let padded = version >= 4 && attrs.bool("pad_to_max_output_size")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let rules = Rules {
            size: output_size(ctx)?,
            overlap: match threshold {
                Some(threshold) => threshold,
                None => scalar(ctx, 3, "iou_threshold")?,
            },
            score: match version {
                1 | 2 => f32::MIN,
                _ => scalar(ctx, 4, "score_threshold")?,
            },
            sigma: match version {
                5 => scalar(ctx, 5, "soft_nms_sigma")?,
                _ => 0.0,
            },
        };
        ensure!(
            (0.0..=1.0).contains(&rules.overlap),
            invalid_argument,
            "iou_threshold must be in [0, 1]"
        );
        ensure!(
            rules.sigma >= 0.0,
            invalid_argument,
            "soft_nms_sigma_val must be >= 0"
        );
        let shape = ctx.input(0)?.shape();
        ensure!(
            shape.rank() == 2,
            invalid_argument,
            "boxes must be 2-D{shape} (Shape must be rank 2 but is rank {})",
            shape.rank()
        );
        ensure!(
            shape.dim(1) == 4,
            invalid_argument,
            "boxes must have 4 columns (Dimension must be 4 but is {})",
            shape.dim(1)
        );
        let scores = scores(ctx, shape.dim(0))?;
        let boxes = converted(ctx.par(), ctx.input(0)?, DType::F32)?;
        let (boxes, _) = boxes.slice::<f32>()?.as_chunks::<4>();
        let overlap = |a: usize, b: usize| iou(&boxes[a], &boxes[b]);
        let (selected, kept) = rules.select(scores.slice::<f32>()?, overlap);
        let valid = Tensor::scalar(selected.len() as i32);
        let size = if padded { rules.size } else { selected.len() };
        let dtype = ctx.input(1)?.dtype();
        ctx.set(0, zeros_behind(&selected, size)?);
        if version == 5 {
            ctx.set(1, converted(ctx.par(), &zeros_behind(&kept, size)?, dtype)?);
        }
        ctx.set(if version == 5 { 2 } else { 1 }, valid);
        Ok(())
    })
}

/// A vector of `size` elements that begins with these.
fn zeros_behind<T: Element>(first: &[T], size: usize) -> Result<Tensor> {
    let mut out = Tensor::zeros(T::DTYPE, Shape::vector(size))?;
    for (slot, value) in out.slice_mut::<T>()?.iter_mut().zip(first) {
        *slot = value.clone();
    }
    Ok(out)
}

fn build_overlaps(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let rules = Rules {
            size: output_size(ctx)?,
            overlap: scalar(ctx, 3, "overlap_threshold")?,
            score: scalar(ctx, 4, "score_threshold")?,
            sigma: 0.0,
        };
        let overlaps = ctx.input(0)?;
        let shape = overlaps.shape();
        ensure!(
            shape.rank() == 2,
            invalid_argument,
            "overlaps must be 2-D{shape}"
        );
        let boxes = shape.dim(0);
        ensure!(
            shape.dim(1) == boxes,
            invalid_argument,
            "overlaps must be square{shape}"
        );
        let (scores, overlaps) = (scores(ctx, boxes)?, overlaps.slice::<f32>()?);
        let overlap = |a: usize, b: usize| overlaps[a * boxes + b];
        let (selected, _) = rules.select(scores.slice::<f32>()?, overlap);
        ctx.set(0, Tensor::vector(&selected));
        Ok(())
    })
}
