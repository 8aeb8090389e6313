//! `CombinedNonMaxSuppression`: boxes that do not overlap much, selected class by class, the best of all classes together.
//!
//! TensorFlow: CombinedNonMaxSuppression(boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32,
//! iou_threshold: float, score_threshold: float) -> nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float,
//! valid_detections: int32, with pad_per_class and clip_boxes. Boxes are `[batch, boxes, classes or 1, 4]`.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::poll;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::select_boxes::iou;
use super::suppression::{count, scalar};

const BOXES: Lit = f32s(
    &[1, 3, 1, 4],
    &[
        0.0, 0.0, 1.0, 1.0, 0.0, 0.125, 1.0, 1.125, 0.0, 0.5, 0.25, 0.75,
    ],
);
const SCORES: Lit = f32s(&[1, 3, 2], &[0.875, 0.125, 0.75, 0.5, 0.25, 0.625]);

pub(crate) static OP: OpDef = OpDef {
    name: "CombinedNonMaxSuppression",
    inputs: &[
        "boxes: float",
        "scores: float",
        "max_output_size_per_class: int32",
        "max_total_size: int32",
        "iou_threshold: float",
        "score_threshold: float",
    ],
    outputs: &[
        "nmsed_boxes: float",
        "nmsed_scores: float",
        "nmsed_classes: float",
        "valid_detections: int32",
    ],
    attrs: &["pad_per_class: bool = false", "clip_boxes: bool = true"],
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "two classes",
            &[
                BOXES,
                SCORES,
                i32s(&[], &[2]),
                i32s(&[], &[5]),
                f32s(&[], &[0.5]),
                f32s(&[], &[0.25]),
            ],
            &[
                f32s(
                    &[1, 5, 4],
                    &[
                        0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.25, 0.75, 0.0, 0.125, 1.0, 1.0, 0.0, 0.0,
                        0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
                    ],
                ),
                f32s(&[1, 5], &[0.875, 0.625, 0.5, 0.0, 0.0]),
                f32s(&[1, 5], &[0.0, 1.0, 1.0, 0.0, 0.0]),
                i32s(&[1], &[3]),
            ],
        ),
        ex_attrs(
            "padded by class, not clipped",
            &[("pad_per_class", "true"), ("clip_boxes", "false")],
            &[
                BOXES,
                SCORES,
                i32s(&[], &[1]),
                i32s(&[], &[5]),
                f32s(&[], &[0.5]),
                f32s(&[], &[0.25]),
            ],
            &[
                f32s(&[1, 2, 4], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.25, 0.75]),
                f32s(&[1, 2], &[0.875, 0.625]),
                f32s(&[1, 2], &[0.0, 1.0]),
                i32s(&[1], &[2]),
            ],
        ),
        ex_err(
            "none asked for",
            &[],
            &[
                BOXES,
                SCORES,
                i32s(&[], &[1]),
                i32s(&[], &[0]),
                f32s(&[], &[0.5]),
                f32s(&[], &[0.25]),
            ],
            Code::InvalidArgument,
            "max_total_size must be > 0",
        ),
    ],
    ..OpDef::BLANK
};

/// A selected box.
struct Detection {
    score: f32,
    class: usize,
    corners: [f32; 4],
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let padded = node.attrs.bool("pad_per_class")?;
    let clipped = node.attrs.bool("clip_boxes")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (boxes, scores) = (ctx.input(0)?, ctx.input(1)?);
        let per_class = count(ctx, 2, "max_size_per_class")?;
        ensure!(
            per_class > 0,
            invalid_argument,
            "max_size_per_class must be positive"
        );
        let total = count(ctx, 3, "max_total_size")?;
        ensure!(total > 0, invalid_argument, "max_total_size must be > 0");
        let overlap = scalar(ctx, 4, "iou_threshold")?;
        let least = scalar(ctx, 5, "score_threshold")?;
        ensure!(
            (0.0..=1.0).contains(&overlap),
            invalid_argument,
            "iou_threshold must be in [0, 1]"
        );
        let [batch, number, classes] = sizes(boxes.shape(), scores.shape())?;
        let size = if padded {
            (total as usize).min((per_class as usize).saturating_mul(classes))
        } else {
            total as usize
        };
        let shape = [batch as i64, size as i64];
        let mut out_boxes = Tensor::zeros(DType::F32, Shape::new(&[shape[0], shape[1], 4])?)?;
        let mut out_scores = Tensor::zeros(DType::F32, Shape::new(&shape)?)?;
        let mut out_classes = Tensor::zeros(DType::F32, Shape::new(&shape)?)?;
        let mut valid = Vec::with_capacity(batch);
        let kinds = boxes.shape().dim(2);
        let (corners, _) = boxes.slice::<f32>()?.as_chunks::<4>();
        let scores = scores.slice::<f32>()?;
        for image in 0..batch {
            let corners = &corners[image * number * kinds..(image + 1) * number * kinds];
            let scores = &scores[image * number * classes..(image + 1) * number * classes];
            let mut found = Vec::new();
            for class in 0..classes {
                let corners = |at: usize| &corners[at * kinds + if kinds > 1 { class } else { 0 }];
                let score = |at: usize| scores[at * classes + class];
                let mut order: Vec<usize> = (0..number).filter(|at| score(*at) > least).collect();
                order.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
                let mut selected: Vec<usize> = Vec::new();
                for at in order {
                    poll();
                    if selected.len() >= per_class as usize {
                        break;
                    }
                    let mut others = selected.iter().rev();
                    if others.any(|other| iou(corners(at), corners(*other)) > overlap) {
                        continue;
                    }
                    selected.push(at);
                    found.push(Detection {
                        score: score(at),
                        class,
                        corners: *corners(at),
                    });
                }
            }
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            found.truncate(size);
            valid.push(found.len() as i32);
            for (at, detection) in (image * size..).zip(&found) {
                let corners = detection.corners;
                let corners = if clipped {
                    corners.map(|edge| edge.clamp(0.0, 1.0))
                } else {
                    corners
                };
                out_boxes.slice_mut::<f32>()?[at * 4..at * 4 + 4].copy_from_slice(&corners);
                out_scores.slice_mut::<f32>()?[at] = detection.score;
                out_classes.slice_mut::<f32>()?[at] = detection.class as f32;
            }
        }
        ctx.set(0, out_boxes);
        ctx.set(1, out_scores);
        ctx.set(2, out_classes);
        ctx.set(3, Tensor::vector(&valid));
        Ok(())
    })
}

/// Images, boxes and classes.
fn sizes(boxes: &Shape, scores: &Shape) -> Result<[usize; 3]> {
    ensure!(
        boxes.rank() == 4,
        invalid_argument,
        "boxes must be 4-D{boxes}"
    );
    ensure!(
        scores.rank() == 3,
        invalid_argument,
        "scores must be 3-D{scores}"
    );
    ensure!(
        boxes.dim(0) == scores.dim(0),
        invalid_argument,
        "boxes and scores must have same batch size"
    );
    let (number, classes) = (boxes.dim(1), scores.dim(2));
    ensure!(
        boxes.dim(2) == 1 || boxes.dim(2) == classes,
        invalid_argument,
        "third dimension of boxes must be either 1 or num classes"
    );
    ensure!(
        boxes.dim(3) == 4,
        invalid_argument,
        "boxes must have 4 columns"
    );
    ensure!(
        scores.dim(1) == number,
        invalid_argument,
        "scores has incompatible shape"
    );
    Ok([boxes.dim(0), number, classes])
}
