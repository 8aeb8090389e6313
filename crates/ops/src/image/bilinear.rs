//! `ResizeBilinear`, `ResizeBicubic`, `ResizeArea` and the gradients of the first two.
//!
//! TensorFlow: ResizeBilinear(images: T, size: int32) -> resized_images: float and its like, with align_corners and
//! half_pixel_centers; ResizeBilinearGrad(grads: float, original_image: T) -> output: T. Everything is computed in single
//! precision.

use tensorfleet_graph::example::{Example, Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::map::map_in_place;
use tensorfleet_math::resample::{Axis, bilinear, resample};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, Tensor};

use super::resize::{Placement, Sizes, as_original, resized};
use crate::math::calculus::first_of;
use crate::math::cast::converted;
use crate::nn::conv_attrs::with_attrs;
use crate::types::{FLOATS, REAL_NUMBERS, SINGLE_AND_DOUBLE};

const ATTRS: &[&str] = &[
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
];

const ALIGN: (&str, &str) = ("align_corners", "true");
const CENTRES: (&str, &str) = ("half_pixel_centers", "true");
const IMAGE: Lit = ramp(&[2, 4, 5, 3], 60.0, -0.5);
const GRADS: Lit = ramp(&[2, 3, 7, 1], -4.0, 0.25);
const LARGER: Lit = i32s(&[2], &[7, 6]);
const SMALLER: Lit = i32s(&[2], &[2, 3]);

const FORWARD: &[Example] = &[
    ex_attrs(
        "as it is",
        &[],
        &[x(&[1, 1, 2, 1], &[1.0, 3.0]), i32s(&[2], &[1, 2])],
        &[f32s(&[1, 1, 2, 1], &[1.0, 3.0])],
    ),
    ex_ref("larger", &[], &[IMAGE, LARGER]),
    ex_ref("smaller", &[], &[IMAGE, SMALLER]),
    ex_ref("corners", &[ALIGN], &[IMAGE, LARGER]),
    ex_ref("centres", &[CENTRES], &[IMAGE, LARGER]),
    ex_ref("centres, smaller", &[CENTRES], &[IMAGE, SMALLER]),
    ex_attrs(
        "no images",
        &[],
        &[x(&[0, 1, 2, 1], &[]), SMALLER],
        &[f32s(&[0, 2, 3, 1], &[])],
    ),
    ex_err(
        "both",
        &[ALIGN, CENTRES],
        &[f32s(&[1, 1, 2, 1], &[1.0]), SMALLER],
        Code::InvalidArgument,
        "If half_pixel_centers is True, align_corners must be False.",
    ),
    ex_err(
        "no size",
        &[],
        &[f32s(&[1, 1, 2, 1], &[1.0]), i32s(&[2], &[0, 1])],
        Code::InvalidArgument,
        "output dimensions must be positive",
    ),
    ex_err(
        "no pixels",
        &[],
        &[f32s(&[1, 0, 2, 1], &[]), SMALLER],
        Code::InvalidArgument,
        "input image must be of non-zero size",
    ),
    ex_err(
        "no image",
        &[],
        &[f32s(&[2, 2], &[1.0]), SMALLER],
        Code::InvalidArgument,
        "",
    ),
];

const RESIZE: OpDef = OpDef {
    inputs: &["images: T", "size: int32"],
    outputs: &["resized_images: float"],
    attrs: ATTRS,
    infer: resized,
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

const GRAD: OpDef = OpDef {
    inputs: &["grads: float", "original_image: T"],
    outputs: &["output: T"],
    infer: as_original,
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

const BACKWARD: &[Example] = &[
    ex_ref("larger", &[], &[GRADS, x(&[2, 2, 3, 1], &[1.0])]),
    ex_ref("corners", &[ALIGN], &[GRADS, x(&[2, 5, 4, 1], &[1.0])]),
    ex_ref("centres", &[CENTRES], &[GRADS, x(&[2, 2, 9, 1], &[1.0])]),
    ex_err(
        "no image",
        &[],
        &[GRADS, f32s(&[2, 2], &[1.0])],
        Code::InvalidArgument,
        "",
    ),
];

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "ResizeArea",
        attrs: &[
            "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
            "align_corners: bool = false",
        ],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Method::Area)
        })],
        examples: &[
            ex_ref("larger", &[], &[IMAGE, LARGER]),
            ex_ref("smaller", &[], &[IMAGE, SMALLER]),
            ex_ref("corners", &[ALIGN], &[IMAGE, SMALLER]),
        ],
        ..RESIZE
    },
    OpDef {
        name: "ResizeBicubic",
        gradient: Gradient::Rule(|g| gradient(g, "ResizeBicubicGrad", SINGLE_AND_DOUBLE)),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Method::Bicubic)
        })],
        examples: FORWARD,
        ..RESIZE
    },
    OpDef {
        name: "ResizeBicubicGrad",
        attrs: &[
            "T: {float, double}",
            "align_corners: bool = false",
            "half_pixel_centers: bool = false",
        ],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build_grad(node, Method::Bicubic)
        })],
        examples: BACKWARD,
        ..GRAD
    },
    OpDef {
        name: "ResizeBilinear",
        attrs: &[
            "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}",
            "align_corners: bool = false",
            "half_pixel_centers: bool = false",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "ResizeBilinearGrad", FLOATS)),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Method::Bilinear)
        })],
        examples: FORWARD,
        ..RESIZE
    },
    OpDef {
        name: "ResizeBilinearGrad",
        attrs: &[
            "T: {float, bfloat16, half, double}",
            "align_corners: bool = false",
            "half_pixel_centers: bool = false",
        ],
        gradient: Gradient::Stop("as in TensorFlow, which does not differentiate it"),
        kernels: &[cpu(&[("T", FLOATS)], |node| {
            build_grad(node, Method::Bilinear)
        })],
        examples: BACKWARD,
        ..GRAD
    },
];

/// Images of other types than these have no gradient.
fn gradient(g: &mut GradCtx<'_>, op: &str, types: &[DType]) -> Result<InputGrads> {
    let (grad, image) = (g.grad(0)?, g.input(0));
    if !types.contains(&g.dtype(image)) {
        return Ok(vec![None, None]);
    }
    let names = ["align_corners", "half_pixel_centers"];
    first_of(2, with_attrs(g, op, &names, &[grad, image])?)
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Area,
    Bicubic,
    Bilinear,
}

impl Method {
    fn axis(self, placement: Placement, input: usize, output: usize) -> Axis {
        let mut axis = Axis::new(input);
        let scale = placement.scale(input, output);
        match self {
            Method::Area => (0..output).for_each(|at| axis.push(area(at, scale, input))),
            Method::Bicubic => {
                for at in 0..output {
                    let place = placement.place(at, scale);
                    axis.push(cubic(place, input, placement.half_pixel_centers));
                }
            }
            Method::Bilinear => {
                let places = placement.between(input, output);
                places.iter().for_each(|place| axis.push(place.taps()));
            }
        }
        axis
    }
}

/// The pixels that an output pixel covers, and how much of each.
fn area(at: usize, scale: f32, input: usize) -> impl Iterator<Item = (usize, f32)> {
    let (begin, end) = (at as f32 * scale, (at + 1) as f32 * scale);
    (begin.floor() as usize..end.ceil() as usize).map(move |pixel| {
        let (first, last) = (pixel as f32, (pixel + 1) as f32);
        let covered = match (first < begin, last > end) {
            (true, true) => scale,
            (true, false) => last - begin,
            (false, true) => end - first,
            (false, false) => 1.0,
        };
        (pixel.min(input - 1), covered)
    })
}

/// The four pixels around a place, weighted by a cubic curve. With centres of pixels at halves those outside of the image do
/// not count; else the outermost pixel stands for them.
fn cubic(place: f32, input: usize, centres: bool) -> [(usize, f32); 4] {
    let a = if centres { -0.5f64 } else { -0.75 };
    let first = place.floor();
    // As fine as TensorFlow's table.
    let steps = f64::from(((place - first) * 1024.0).round_ties_even());
    let (near, far) = (steps / 1024.0, 1.0 - steps / 1024.0);
    let inner = |x: f64| (((a + 2.0) * x - (a + 3.0)) * x * x + 1.0) as f32;
    let outer = |x: f64| {
        let x = x + 1.0;
        (((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a) as f32
    };
    let weights = [outer(near), inner(near), inner(far), outer(far)];
    let last = input as i64 - 1;
    let mut taps = [(0, 0.0); 4];
    for (offset, (tap, weight)) in (-1..).zip(taps.iter_mut().zip(weights)) {
        let at = first as i64 + offset;
        let pixel = at.clamp(0, last);
        *tap = (
            pixel as usize,
            if centres && at != pixel { 0.0 } else { weight },
        );
    }
    let sum: f32 = taps.iter().map(|tap| tap.1).sum();
    if centres && sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
        let share = 1.0 / sum;
        taps.iter_mut().for_each(|tap| tap.1 *= share);
    }
    taps
}

fn build(node: &NodeInfo, method: Method) -> Result<AnyKernel> {
    let placement = Placement::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = Sizes::new(ctx, placement)?;
        let input = converted(ctx.par(), ctx.input(0)?, DType::F32)?;
        let out = resize(ctx, placement, method, &sizes, input)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn resize(
    ctx: &KernelCtx<'_>,
    placement: Placement,
    method: Method,
    sizes: &Sizes,
    input: Tensor,
) -> Result<Tensor> {
    let (from, to) = (sizes.input, sizes.output);
    if method == Method::Bilinear && from == to {
        return Ok(input);
    }
    let mut out = ctx.allocate(DType::F32, sizes.shape(to)?)?;
    if out.is_empty() {
        return Ok(out);
    }
    let (pixels, made) = (input.slice::<f32>()?, out.slice_mut::<f32>()?);
    if method == Method::Bilinear {
        let rows = placement.between(from[0], to[0]);
        let columns = placement.between(from[1], to[1]);
        let columns: Vec<_> = columns.into_iter().map(Some).collect();
        bilinear(
            ctx.par(),
            (from, pixels),
            &rows,
            &columns,
            sizes.channels,
            made,
        );
        return Ok(out);
    }
    let axis = |direction: usize| method.axis(placement, from[direction], to[direction]);
    let axes = [&axis(0), &axis(1)];
    resample(ctx.par(), axes, sizes.channels, pixels, made);
    if method == Method::Area {
        let scale = |direction: usize| placement.scale(from[direction], to[direction]);
        let share = 1.0 / (scale(0) * scale(1));
        map_in_place(ctx.par(), made, |pixel| pixel * share);
    }
    Ok(out)
}

fn build_grad(node: &NodeInfo, method: Method) -> Result<AnyKernel> {
    let (placement, dtype) = (Placement::new(node)?, node.attrs.dtype("T")?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = Sizes::of_gradient(ctx, placement)?;
        let axis = |direction: usize| {
            let (input, output) = (sizes.input[direction], sizes.output[direction]);
            method.axis(placement, input, output).transposed()
        };
        let mut out = ctx.allocate(DType::F32, sizes.shape(sizes.input)?)?;
        if out.is_empty() {
            ctx.set(0, converted(ctx.par(), &out, dtype)?);
            return Ok(());
        }
        let grads = ctx.input(0)?.slice::<f32>()?;
        let axes = [&axis(0), &axis(1)];
        resample(
            ctx.par(),
            axes,
            sizes.channels,
            grads,
            out.slice_mut::<f32>()?,
        );
        ctx.set(0, converted(ctx.par(), &out, dtype)?);
        Ok(())
    })
}
