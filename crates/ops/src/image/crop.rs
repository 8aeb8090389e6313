//! `CropAndResize`: boxes cut out of images and resized to one size.
//!
//! TensorFlow: CropAndResize(image: T, boxes: float, box_ind: int32, crop_size: int32) -> crops: float, with method and
//! extrapolation_value, which stands for what lies outside of the image. Boxes are `[y1, x1, y2, x2]`, 1 being the far edge.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::rows_mut;
use tensorfleet_math::resample::{Between, lerp};
use tensorfleet_status::{Code, Result, ensure, out_of_range};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use crate::math::cast::converted;
use crate::nn::conv_attrs::with_attrs;
use crate::types::REAL_NUMBERS;

pub(super) const NEAREST: (&str, &str) = ("method", "'nearest'");
pub(super) const BOXES: Lit = f32s(
    &[3, 4],
    &[
        0.0, 0.0, 1.0, 1.0, 0.75, 0.125, 0.25, 1.25, -0.25, 0.5, 0.5, 0.5,
    ],
);
pub(super) const INDICES: Lit = i32s(&[3], &[1, 0, 1]);
const SIZE: Lit = i32s(&[2], &[3, 2]);
pub(super) const IMAGES: Lit = ramp(&[2, 4, 5, 2], 40.0, -0.5);
const ONE: Lit = f32s(&[1, 2, 2, 1], &[1.0]);
pub(super) const GRAD_TYPES: &[DType] = &[DType::F16, DType::F32, DType::F64];

pub(super) const CROP: OpDef = OpDef {
    exactness: Exactness::Relative(4e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "CropAndResize",
    inputs: &[
        "image: T",
        "boxes: float",
        "box_ind: int32",
        "crop_size: int32",
    ],
    outputs: &["crops: float"],
    attrs: &[
        "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
        "method: {'bilinear', 'nearest'} = 'bilinear'",
        "extrapolation_value: float = 0.0",
    ],
    infer: cropped,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
    examples: &[
        ex_attrs(
            "the middle",
            &[],
            &[
                x(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]),
                f32s(&[1, 4], &[0.0, 0.0, 1.0, 1.0]),
                i32s(&[1], &[0]),
                i32s(&[2], &[1, 1]),
            ],
            &[f32s(&[1, 1, 1, 1], &[2.5])],
        ),
        ex_ref("boxes", &[], &[IMAGES, BOXES, INDICES, SIZE]),
        ex_ref(
            "nearest, outside",
            &[NEAREST, ("extrapolation_value", "-1.5")],
            &[IMAGES, BOXES, INDICES, SIZE],
        ),
        ex_attrs(
            "no boxes",
            &[],
            &[ONE, f32s(&[0, 4], &[]), i32s(&[0], &[]), SIZE],
            &[f32s(&[0, 3, 2, 1], &[])],
        ),
        ex_err(
            "no such image",
            &[],
            &[ONE, BOXES, INDICES, SIZE],
            Code::OutOfRange,
            "box_index has values outside [0, batch_size)",
        ),
        ex_err(
            "crops too large",
            &[],
            &[ONE, BOXES, INDICES, i32s(&[2], &[2147483647, 2147483647])],
            Code::InvalidArgument,
            "Encountered overflow when multiplying",
        ),
        ex_err(
            "not finite",
            &[],
            &[
                ONE,
                f32s(&[1, 4], &[0.0, 0.0, f64::INFINITY, 1.0]),
                i32s(&[1], &[0]),
                SIZE,
            ],
            Code::InvalidArgument,
            "Boxes contains at least one element that is not finite",
        ),
        ex_err(
            "crop_size",
            &[],
            &[ONE, BOXES, INDICES, i32s(&[2], &[0, 1])],
            Code::InvalidArgument,
            "crop dimensions must be positive",
        ),
    ],
    ..CROP
}];

fn cropped(ctx: &mut InferCtx<'_>) -> Result<()> {
    let dim = |input: usize, axis| ctx.input(input).dim(axis).unwrap_or(UNKNOWN_DIM);
    let (height, width) = match ctx.constant_ints(3).as_deref() {
        Some(&[height, width]) if height >= 0 && width >= 0 => (height, width),
        _ => (UNKNOWN_DIM, UNKNOWN_DIM),
    };
    ctx.set(0, PartialShape::new(&[dim(1, 0), height, width, dim(0, 3)]));
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, image, boxes, indices) = (g.grad(0)?, g.input(0), g.input(1), g.input(2));
    let to_image = if GRAD_TYPES.contains(&g.dtype(image)) {
        let shape = g.shape(image)?;
        let inputs = [grad, boxes, indices, shape];
        Some(Grad::Dense(with_attrs(
            g,
            "CropAndResizeGradImage",
            &["T", "method"],
            &inputs,
        )?))
    } else {
        None
    };
    let to_boxes = g.apply("CropAndResizeGradBoxes", &[grad, image, boxes, indices])?;
    Ok(vec![to_image, Some(Grad::Dense(to_boxes)), None, None])
}

/// Boxes and which image each is cut out of.
pub(super) struct Boxes<'a> {
    pub(super) corners: Vec<[f32; 4]>,
    pub(super) images: &'a [i32],
}

impl<'a> Boxes<'a> {
    pub(super) fn new(boxes: &Tensor, indices: &'a Tensor, batch: usize) -> Result<Boxes<'a>> {
        let none = boxes.is_empty() && indices.is_empty();
        let shape = boxes.shape();
        ensure!(
            none || shape.rank() == 2,
            invalid_argument,
            "boxes must be 2-D, got: {shape}"
        );
        ensure!(
            none || shape.dim(1) == 4,
            invalid_argument,
            "boxes must have 4 columns"
        );
        ensure!(
            none || indices.rank() == 1,
            invalid_argument,
            "box_index must be 1-D{}",
            indices.shape()
        );
        ensure!(
            none || indices.elements() == shape.dim(0),
            invalid_argument,
            "box_index has incompatible shape"
        );
        let images = indices.slice::<i32>()?;
        if images
            .iter()
            .any(|image| *image < 0 || *image as usize >= batch)
        {
            return Err(out_of_range!(
                "box_index has values outside [0, batch_size)"
            ));
        }
        let (corners, _) = boxes.slice::<f32>()?.as_chunks::<4>();
        Ok(Boxes {
            corners: corners.to_vec(),
            images,
        })
    }
}

/// Where one direction of a crop lies on the image; `None` outside of it.
fn places(begin: f32, end: f32, input: usize, output: usize) -> impl Iterator<Item = Option<f32>> {
    let last = input as f32 - 1.0;
    let step = (end - begin) * last / (output.max(2) - 1) as f32;
    (0..output).map(move |at| {
        let place = if output > 1 {
            begin * last + at as f32 * step
        } else {
            (0.5 * f64::from(begin + end) * f64::from(last)) as f32
        };
        (place >= 0.0 && place <= last).then_some(place)
    })
}

/// The same as neighbours, or as the nearest pixel.
pub(super) fn neighbours(
    begin: f32,
    end: f32,
    sizes: (usize, usize),
    nearest: bool,
) -> Vec<Option<Between>> {
    places(begin, end, sizes.0, sizes.1)
        .map(|place| {
            place.map(|place| {
                let lower = if nearest {
                    place.round()
                } else {
                    place.floor()
                };
                let upper = if nearest { lower } else { place.ceil() };
                Between {
                    lower: lower as usize,
                    upper: upper as usize,
                    share: if nearest { 0.0 } else { place - lower },
                }
            })
        })
        .collect()
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let nearest = node.attrs.str("method")? == "nearest";
    let outside = node.attrs.float("extrapolation_value")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let image = ctx.input(0)?;
        let &[batch, height, width, channels] = image.shape().dims() else {
            return Err(tensorfleet_status::invalid_argument!(
                "input image must be 4-D{}",
                image.shape()
            ));
        };
        positive(height, width)?;
        let size = super::resize::pair(ctx, 3, "crop_size")?;
        ensure!(
            size[0] > 0 && size[1] > 0,
            invalid_argument,
            "crop dimensions must be positive"
        );
        // Crops that are too large are told before images that are not there, as TensorFlow does.
        let count = ctx.input(2)?.elements() as i64;
        let shape = Shape::new(&[count, size[0], size[1], channels])?;
        let boxes = Boxes::new(ctx.input(1)?, ctx.input(2)?, batch as usize)?;
        ensure!(
            boxes.corners.iter().flatten().all(|edge| edge.is_finite()),
            invalid_argument,
            "Boxes contains at least one element that is not finite"
        );
        let mut out = ctx.allocate(DType::F32, shape)?;
        let pixels = converted(ctx.par(), image, DType::F32)?;
        let pixels = pixels.slice::<f32>()?;
        let [rows, columns] = size.map(|size| size as usize);
        let (height, width, channels) = (height as usize, width as usize, channels as usize);
        let crop = rows * columns * channels;
        rows_mut(
            ctx.par(),
            out.slice_mut::<f32>()?,
            crop,
            1,
            |first, crops| {
                for (at, crop) in (first..).zip(crops.chunks_exact_mut(crop)) {
                    let [top, left, bottom, right] = boxes.corners[at];
                    let lines = neighbours(top, bottom, (height, rows), nearest);
                    let places = neighbours(left, right, (width, columns), nearest);
                    let line = |y: usize| {
                        let line = boxes.images[at] as usize * height + y;
                        &pixels[line * width * channels..(line + 1) * width * channels]
                    };
                    for (out, at) in crop.chunks_exact_mut(columns * channels).zip(lines) {
                        match at {
                            Some(at) => {
                                let near = [line(at.lower), line(at.upper)];
                                lerp(near, at.share, &places, outside, channels, out);
                            }
                            None => out.fill(outside),
                        }
                    }
                }
            },
        );
        ctx.set(0, out);
        Ok(())
    })
}

pub(super) fn positive(height: i64, width: i64) -> Result<()> {
    ensure!(
        height > 0 && width > 0,
        invalid_argument,
        "image dimensions must be positive"
    );
    Ok(())
}
