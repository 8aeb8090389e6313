//! `CropAndResizeGradImage`, `CropAndResizeGradBoxes`: the gradients of `CropAndResize`.
//!
//! TensorFlow: CropAndResizeGradImage(grads: float, boxes: float, box_ind: int32, image_size: int32) -> output: T;
//! CropAndResizeGradBoxes(grads: float, image: T, boxes: float, box_ind: int32) -> output: float, by bilinear sampling whatever the
//! crops were made by.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, i32s, ramp};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use super::crop::{BOXES, Boxes, CROP, GRAD_TYPES, IMAGES, INDICES, NEAREST, neighbours, positive};
use crate::math::cast::converted;
use crate::types::REAL_NUMBERS;

const GRADS: Lit = ramp(&[3, 3, 2, 2], -4.0, 0.25);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "CropAndResizeGradBoxes",
        inputs: &["grads: float", "image: T", "boxes: float", "box_ind: int32"],
        outputs: &["output: float"],
        attrs: &[
            "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
            "method: {'bilinear'} = 'bilinear'",
        ],
        infer: like_boxes,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build_grad_boxes)],
        examples: &[
            ex_ref("boxes", &[], &[GRADS, IMAGES, BOXES, INDICES]),
            ex_ref(
                "one pixel each",
                &[],
                &[f32s(&[3, 1, 1, 2], &[0.5]), IMAGES, BOXES, INDICES],
            ),
        ],
        ..CROP
    },
    OpDef {
        name: "CropAndResizeGradImage",
        inputs: &[
            "grads: float",
            "boxes: float",
            "box_ind: int32",
            "image_size: int32",
        ],
        outputs: &["output: T"],
        attrs: &[
            "T: {float, half, double}",
            "method: {'bilinear', 'nearest'} = 'bilinear'",
        ],
        infer: infer::shape_in::<3>,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", GRAD_TYPES)], build_grad_image)],
        examples: &[
            ex_ref(
                "boxes",
                &[("T", "float")],
                &[GRADS, BOXES, INDICES, i32s(&[4], &[2, 4, 5, 2])],
            ),
            ex_ref(
                "nearest",
                &[("T", "double"), NEAREST],
                &[GRADS, BOXES, INDICES, i32s(&[4], &[2, 4, 5, 2])],
            ),
            ex_err(
                "channels",
                &[("T", "float")],
                &[GRADS, BOXES, INDICES, i32s(&[4], &[2, 4, 5, 1])],
                Code::InvalidArgument,
                "image_size and grads are incompatible",
            ),
        ],
        ..CROP
    },
];

fn like_boxes(ctx: &mut InferCtx<'_>) -> Result<()> {
    let boxes = ctx.input(2).dim(0).unwrap_or(UNKNOWN_DIM);
    ctx.set(0, PartialShape::new(&[boxes, 4]));
    Ok(())
}

/// The gradients of crops, checked: boxes, height, width, channels.
fn gradients(ctx: &KernelCtx<'_>) -> Result<[usize; 4]> {
    let grads = ctx.input(0)?.shape();
    ensure!(
        grads.rank() == 4,
        invalid_argument,
        "grads image must be 4-D{grads}"
    );
    ensure!(
        grads.dim(1) > 0 && grads.dim(2) > 0,
        invalid_argument,
        "grads dimensions must be positive"
    );
    Ok([grads.dim(0), grads.dim(1), grads.dim(2), grads.dim(3)])
}

fn build_grad_image(node: &NodeInfo) -> Result<AnyKernel> {
    let (dtype, nearest) = (
        node.attrs.dtype("T")?,
        node.attrs.str("method")? == "nearest",
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let [count, rows, columns, channels] = gradients(ctx)?;
        let sizes = ctx.ints(3)?;
        ensure!(
            sizes.len() == 4,
            invalid_argument,
            "image_size must have 4 elements{}",
            ctx.input(3)?.shape()
        );
        positive(sizes[1], sizes[2])?;
        ensure!(
            sizes[3] == channels as i64,
            invalid_argument,
            "image_size and grads are incompatible"
        );
        let shape = Shape::new(&sizes)?;
        let boxes = Boxes::new(ctx.input(1)?, ctx.input(2)?, shape.dim(0))?;
        ensure!(
            boxes.corners.len() == count,
            invalid_argument,
            "boxes and grads have incompatible shape"
        );
        let (height, width) = (shape.dim(1), shape.dim(2));
        let mut out = Tensor::zeros(DType::F32, shape)?;
        let (grads, sums) = (ctx.input(0)?.slice::<f32>()?, out.slice_mut::<f32>()?);
        for (at, &[top, left, bottom, right]) in boxes.corners.iter().enumerate() {
            let lines = neighbours(top, bottom, (height, rows), nearest);
            let places = neighbours(left, right, (width, columns), nearest);
            let image = boxes.images[at] as usize * height;
            for (y, line) in lines.iter().enumerate() {
                for (x, place) in places.iter().enumerate() {
                    let (Some(line), Some(place)) = (line, place) else {
                        continue;
                    };
                    let from = ((at * rows + y) * columns + x) * channels;
                    for (row, down) in line.taps() {
                        for (column, across) in place.taps() {
                            let to = ((image + row) * width + column) * channels;
                            for c in 0..channels {
                                sums[to + c] += across * (down * grads[from + c]);
                            }
                        }
                    }
                }
            }
        }
        ctx.set(0, converted(ctx.par(), &out, dtype)?);
        Ok(())
    })
}

fn build_grad_boxes(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let [count, rows, columns, channels] = gradients(ctx)?;
        let image = ctx.input(1)?;
        let shape = image.shape();
        ensure!(
            shape.rank() == 4,
            invalid_argument,
            "input image must be 4-D{shape}"
        );
        positive(shape.dims()[1], shape.dims()[2])?;
        ensure!(
            shape.dim(3) == channels,
            invalid_argument,
            "image, grads depth differ"
        );
        let boxes = Boxes::new(ctx.input(2)?, ctx.input(3)?, shape.dim(0))?;
        ensure!(
            boxes.corners.len() == count,
            invalid_argument,
            "boxes and grads have incompatible shape"
        );
        let (height, width) = (shape.dim(1), shape.dim(2));
        let pixels = converted(ctx.par(), image, DType::F32)?;
        let (pixels, grads) = (pixels.slice::<f32>()?, ctx.input(0)?.slice::<f32>()?);
        let mut slopes = Vec::with_capacity(count * 4);
        for (at, &[top, left, bottom, right]) in boxes.corners.iter().enumerate() {
            let lines = neighbours(top, bottom, (height, rows), false);
            let places = neighbours(left, right, (width, columns), false);
            let image = boxes.images[at] as usize * height;
            let mut sums = [0.0; 4];
            for (y, line) in lines.iter().enumerate() {
                for (x, place) in places.iter().enumerate() {
                    let (Some(line), Some(place)) = (line, place) else {
                        continue;
                    };
                    let pixel = |row: usize, column: usize| {
                        &pixels[((image + row) * width + column) * channels..][..channels]
                    };
                    let (tl, tr) = (
                        pixel(line.lower, place.lower),
                        pixel(line.lower, place.upper),
                    );
                    let (bl, br) = (
                        pixel(line.upper, place.lower),
                        pixel(line.upper, place.upper),
                    );
                    let grads = &grads[((at * rows + y) * columns + x) * channels..][..channels];
                    let (mut down, mut across) = (0.0, 0.0);
                    for (c, grad) in grads.iter().enumerate() {
                        let (l, r) = (bl[c] - tl[c], br[c] - tr[c]);
                        down += grad * ((1.0 - place.share) * l + place.share * r);
                        let (t, b) = (tr[c] - tl[c], br[c] - bl[c]);
                        across += grad * ((1.0 - line.share) * t + line.share * b);
                    }
                    let [first, last] = shares(y, rows, height);
                    sums[0] += down * first;
                    sums[2] += down * last;
                    let [first, last] = shares(x, columns, width);
                    sums[1] += across * first;
                    sums[3] += across * last;
                }
            }
            slopes.extend(sums);
        }
        ctx.set(0, Tensor::from_vec(Shape::matrix(count, 4)?, slopes)?);
        Ok(())
    })
}

/// How far a place moves with the first and the last edge of its box.
fn shares(at: usize, output: usize, input: usize) -> [f32; 2] {
    let length = input as f32 - 1.0;
    if output < 2 {
        return [0.5 * length; 2];
    }
    let moved = at as f32 * (length / (output - 1) as f32);
    [length - moved, moved]
}
