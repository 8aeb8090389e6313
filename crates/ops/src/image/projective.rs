//! `ImageProjectiveTransformV2`, `ImageProjectiveTransformV3`: images seen through a projection.
//!
//! TensorFlow: ImageProjectiveTransformV2(images: dtype, transforms: float, output_shape: int32) -> transformed_images: dtype,
//! with interpolation and fill_mode; the third version takes fill_value: float. A transform `[a0, a1, a2, b0, b1, b2, c0, c1]` takes
//! the output point `(x, y)` to the input point `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`, `k = c0 x + c1 y + 1`.

use tensorfleet_graph::example::{Data, Example, Lit, ex_err, ex_ref, f32s, i32s};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_math::par::rows_mut;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use super::resize::pair;
use crate::by_float;
use crate::types::{FLOATS, dtypes};

const TYPES: &[DType] = dtypes![FLOATS, &[DType::U8, DType::I32, DType::I64]];
const NEAREST: (&str, &str) = ("interpolation", "'NEAREST'");
const BILINEAR: (&str, &str) = ("interpolation", "'BILINEAR'");
const REFLECT: (&str, &str) = ("fill_mode", "'REFLECT'");
const WRAP: (&str, &str) = ("fill_mode", "'WRAP'");
const CLAMP: (&str, &str) = ("fill_mode", "'NEAREST'");

/// Images of this type. Gradients, which are those of TensorFlow and not quite those of the op, are compared in single precision.
const fn images(dtype: DType) -> Lit {
    Lit {
        dtype: Some(dtype),
        dims: &[2, 4, 5, 2],
        data: Data::Ramp(0.0, 1.0),
    }
}

const IMAGES: Lit = images(DType::F32);
const TURNED: Lit = f32s(&[1, 8], &[0.75, -0.5, 1.25, 0.5, 0.75, -0.75, 0.0, 0.0]);
const PROJECTED: Lit = f32s(
    &[2, 8],
    &[
        1.25, 0.0, -0.5, 0.25, 1.0, 0.5, 0.0625, 0.0, 1.0, 0.25, -2.5, 0.0, 1.5, -3.25, 0.0, 0.0,
    ],
);
const SIZE: Lit = i32s(&[2], &[4, 6]);

const V2_EXAMPLES: &[Example] = &[
    ex_ref("nearest", &[NEAREST], &[IMAGES, TURNED, SIZE]),
    ex_ref("bilinear", &[BILINEAR], &[IMAGES, PROJECTED, SIZE]),
    ex_ref("reflected", &[NEAREST, REFLECT], &[IMAGES, PROJECTED, SIZE]),
    ex_ref("wrapped", &[BILINEAR, WRAP], &[IMAGES, PROJECTED, SIZE]),
    ex_ref("clamped", &[BILINEAR, CLAMP], &[IMAGES, TURNED, SIZE]),
    ex_ref("bytes", &[NEAREST], &[images(DType::U8), TURNED, SIZE]),
    ex_ref("halves", &[NEAREST], &[images(DType::F16), TURNED, SIZE]),
    ex_ref("integers", &[BILINEAR], &[images(DType::I64), TURNED, SIZE]),
    ex_err(
        "transforms",
        &[NEAREST],
        &[f32s(&[2, 2, 2, 1], &[0.0]), f32s(&[2, 7], &[0.0]), SIZE],
        Code::InvalidArgument,
        "Input transform should be num_images x 8 or 1 x 8",
    ),
];

const TRANSFORM: OpDef = OpDef {
    outputs: &["transformed_images: dtype"],
    attrs: &[
        "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
        "interpolation: string",
        "fill_mode: string = 'CONSTANT'",
    ],
    infer: transformed,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("dtype", TYPES)], build)],
    exactness: Exactness::Relative(4e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ImageProjectiveTransformV2",
        inputs: &["images: dtype", "transforms: float", "output_shape: int32"],
        examples: V2_EXAMPLES,
        ..TRANSFORM
    },
    OpDef {
        name: "ImageProjectiveTransformV3",
        inputs: &[
            "images: dtype",
            "transforms: float",
            "output_shape: int32",
            "fill_value: float",
        ],
        examples: &[
            ex_ref(
                "filled",
                &[BILINEAR],
                &[IMAGES, PROJECTED, SIZE, f32s(&[], &[3.0])],
            ),
            ex_ref(
                "filled, nearest",
                &[NEAREST],
                &[IMAGES, TURNED, SIZE, f32s(&[], &[7.0])],
            ),
        ],
        ..TRANSFORM
    },
];

fn transformed(ctx: &mut InferCtx<'_>) -> Result<()> {
    let image = ctx.input(0).merge(&PartialShape::of_rank(4))?;
    let dim = |axis| image.dim(axis).unwrap_or(UNKNOWN_DIM);
    let (height, width) = match ctx.constant_ints(2).as_deref() {
        Some(&[height, width]) if height >= 0 && width >= 0 => (height, width),
        _ => (UNKNOWN_DIM, UNKNOWN_DIM),
    };
    ctx.set(0, PartialShape::new(&[dim(0), height, width, dim(3)]));
    Ok(())
}

/// As in TensorFlow the gradient is the image of the gradient under the inverse projection.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (image, transforms, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let shape = g.shape(image)?;
    let (begin, size) = (g.ints(&[1])?, g.ints(&[2])?);
    let size = g.apply("Slice", &[shape, begin, size])?;
    let first = columns(g, transforms, 0, 1)?;
    let ones = g.apply("OnesLike", &[first])?;
    let axis = g.builder().constant(Tensor::scalar(1i32))?;
    let nine = g
        .builder()
        .op("ConcatV2")
        .list(&[transforms, ones])
        .input(axis)
        .output()?;
    let square = g.ints(&[-1, 3, 3])?;
    let matrices = g.apply("Reshape", &[nine, square])?;
    let inverse = g.apply("MatrixInverse", &[matrices])?;
    let flat = g.ints(&[-1, 9])?;
    let inverse = g.apply("Reshape", &[inverse, flat])?;
    let last = columns(g, inverse, 8, 1)?;
    let scaled = g.apply("RealDiv", &[inverse, last])?;
    let inverse = columns(g, scaled, 0, 8)?;
    let count = g.num_inputs();
    let (interpolation, fill_mode) = (g.attr("interpolation")?, g.attr("fill_mode")?);
    let fill = g.constant(0.0, DType::F32)?;
    let op = if count == 3 {
        "ImageProjectiveTransformV2"
    } else {
        "ImageProjectiveTransformV3"
    };
    let mut node = g.builder().op(op).input(grad).input(inverse).input(size);
    if count > 3 {
        node = node.input(fill);
    }
    let node = node
        .attr("interpolation", interpolation)
        .attr("fill_mode", fill_mode);
    let mut grads = vec![None; count];
    grads[0] = Some(Grad::Dense(node.output()?));
    Ok(grads)
}

/// Some columns of a matrix.
fn columns(g: &mut GradCtx<'_>, matrix: Output, first: i32, count: i32) -> Result<Output> {
    let (begin, size) = (g.ints(&[0, first])?, g.ints(&[-1, count])?);
    g.apply("Slice", &[matrix, begin, size])
}

/// What stands outside of an image.
#[derive(Clone, Copy)]
enum Fill {
    Constant,
    Reflect,
    Wrap,
    Nearest,
}

impl Fill {
    /// Where a coordinate is looked up in an image of this size.
    fn place(self, at: f32, size: usize) -> f32 {
        let (length, last) = (size as f32, size as f32 - 1.0);
        let inside = (0.0..=last).contains(&at);
        let found = match self {
            Fill::Constant => return at,
            Fill::Nearest => at,
            _ if inside || at.is_nan() => at,
            _ if size <= 1 => 0.0,
            Fill::Reflect => {
                let period = 2.0 * length;
                if at < 0.0 {
                    let at = period * (-at / period).trunc() + at;
                    if at < -length { at + period } else { -at - 1.0 }
                } else {
                    let at = at - period * (at / period).trunc();
                    if at >= length { period - at - 1.0 } else { at }
                }
            }
            Fill::Wrap if at < 0.0 => at + length * ((-at / last).trunc() + 1.0),
            Fill::Wrap => at - length * (at / last).trunc(),
        };
        found.max(0.0).min(last)
    }
}

/// The next whole number below. The standard's is a call where the target may lack an instruction for it.
#[inline(always)]
fn floor(x: f32) -> f32 {
    // From here on all are whole.
    const WHOLE: f32 = 8_388_608.0;
    if x.abs() < WHOLE {
        let cut = x as i32 as f32;
        if cut > x { cut - 1.0 } else { cut }
    } else {
        x
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let bilinear = match attrs.str("interpolation")? {
        "BILINEAR" => true,
        "NEAREST" => false,
        other => {
            return Err(invalid_argument!(
                "Invalid interpolation {other}. Supported types: NEAREST, BILINEAR"
            ));
        }
    };
    let fill = match attrs.str("fill_mode")? {
        "REFLECT" => Fill::Reflect,
        "WRAP" => Fill::Wrap,
        "NEAREST" => Fill::Nearest,
        _ => Fill::Constant,
    };
    let dtype = attrs.dtype("dtype")?;
    by_float!(dtype, T => transform::<T>(bilinear, fill), else => match dtype {
        DType::U8 => transform::<u8>(bilinear, fill),
        DType::I32 => transform::<i32>(bilinear, fill),
        DType::I64 => transform::<i64>(bilinear, fill),
        _ => Err(internal!("no images of {dtype}")),
    })
}

fn transform<T: Element + Real>(bilinear: bool, fill: Fill) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (images, transforms) = (ctx.input(0)?, ctx.input(1)?);
        let &[batch, height, width, channels] = images.shape().dims() else {
            return Err(invalid_argument!("Input images must have rank 4"));
        };
        let shape = transforms.shape();
        ensure!(
            shape.rank() == 2
                && (shape.dims()[0] == batch || shape.dim(0) == 1)
                && shape.dim(1) == 8,
            invalid_argument,
            "Input transform should be num_images x 8 or 1 x 8"
        );
        let [rows, columns] = pair(ctx, 2, "output shape")?;
        ensure!(
            rows > 0 && columns > 0,
            invalid_argument,
            "output dimensions must be positive"
        );
        let outside = match ctx.num_inputs() {
            3 => T::ZERO,
            _ => {
                let value = ctx.input(3)?;
                ensure!(
                    value.rank() == 0,
                    invalid_argument,
                    "fill_value must be a scalar{}",
                    value.shape()
                );
                T::from_f64(f64::from(value.to_scalar::<f32>()?))
            }
        };
        let mut out = ctx.allocate(T::DTYPE, Shape::new(&[batch, rows, columns, channels])?)?;
        let ([rows, columns], channels) = ([rows as usize, columns as usize], channels as usize);
        let (height, width) = (height as usize, width as usize);
        let (pixels, (projections, _)) = (
            images.slice::<T>()?,
            transforms.slice::<f32>()?.as_chunks::<8>(),
        );
        let line = columns * channels;
        if out.is_empty() {
            ctx.set(0, out);
            return Ok(());
        }
        rows_mut(ctx.par(), out.slice_mut::<T>()?, line, 8, |first, lines| {
            for (row, out) in (first..).zip(lines.chunks_exact_mut(line)) {
                let (image, y) = (row / rows, (row % rows) as f32);
                let [a0, a1, a2, b0, b1, b2, c0, c1] =
                    projections[image.min(projections.len() - 1)];
                let place = |y: f32, x: f32| {
                    let inside = y >= 0.0 && x >= 0.0 && y < height as f32 && x < width as f32;
                    inside.then(|| ((image * height + y as usize) * width + x as usize) * channels)
                };
                let read = |place: Option<usize>, c: usize| match place {
                    Some(place) => pixels[place + c],
                    None => outside,
                };
                for (x, pixel) in out.chunks_exact_mut(channels).enumerate() {
                    let x = x as f32;
                    let scale = c0 * x + c1 * y + 1.0;
                    if scale == 0.0 {
                        pixel.fill(outside);
                        continue;
                    }
                    let u = fill.place((a0 * x + a1 * y + a2) / scale, width);
                    let v = fill.place((b0 * x + b1 * y + b2) / scale, height);
                    if !bilinear {
                        let place = place(v.round(), u.round());
                        for (c, out) in pixel.iter_mut().enumerate() {
                            *out = read(place, c);
                        }
                        continue;
                    }
                    let (top, left) = (floor(v), floor(u));
                    let (bottom, right) = (top + 1.0, left + 1.0);
                    let [lower, upper] = [bottom - v, v - top];
                    let is_whole =
                        top >= 0.0 && left >= 0.0 && bottom < height as f32 && right < width as f32;
                    if is_whole {
                        let at =
                            ((image * height + top as usize) * width + left as usize) * channels;
                        let above = &pixels[at..][..2 * channels];
                        let below = &pixels[at + width * channels..][..2 * channels];
                        for (c, out) in pixel.iter_mut().enumerate() {
                            let mixed = |line: &[T]| {
                                let read = |at: usize| line[at].to_f64() as f32;
                                (right - u) * read(c) + (u - left) * read(channels + c)
                            };
                            let mixed = lower * mixed(above) + upper * mixed(below);
                            *out = T::from_f64(f64::from(mixed));
                        }
                        continue;
                    }
                    let above = [place(top, left), place(top, right)];
                    let below = [place(bottom, left), place(bottom, right)];
                    for (c, out) in pixel.iter_mut().enumerate() {
                        let mixed = |[at_left, at_right]: [Option<usize>; 2]| {
                            let read = |place| read(place, c).to_f64() as f32;
                            (right - u) * read(at_left) + (u - left) * read(at_right)
                        };
                        let mixed = lower * mixed(above) + upper * mixed(below);
                        *out = T::from_f64(f64::from(mixed));
                    }
                }
            }
        });
        ctx.set(0, out);
        Ok(())
    })
}
