//! `FusedPadConv2D`, `FusedResizeAndPadConv2D`: images resized perhaps, padded by their mirror images, and convolved.
//!
//! TensorFlow: FusedPadConv2D(input: T, paddings: int32, filter: T) -> output: T, with mode, strides and padding;
//! FusedResizeAndPadConv2D takes size: int32 as its second input and resizes bilinearly before, with resize_align_corners.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, i32s, ramp};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Conv2d, Element as ConvElement, Padding, forward};
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_math::resample::bilinear;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::conv_attrs::{four, pair};
use super::conv2d::output_shape;
use super::volume::padding;
use crate::by_float;
use crate::image::resize::{Placement, Sizes};
use crate::math::cast::converted;
use crate::types::FLOATS;

const REFLECT: (&str, &str) = ("mode", "'REFLECT'");
const SYMMETRIC: (&str, &str) = ("mode", "'SYMMETRIC'");
const UNIT: (&str, &str) = ("strides", "[1, 1, 1, 1]");
const TWO: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const SAME: (&str, &str) = ("padding", "'SAME'");
const VALID: (&str, &str) = ("padding", "'VALID'");

const IMAGE: Lit = ramp(&[1, 4, 5, 2], -2.0, 0.125);
const FILTER: Lit = ramp(&[2, 3, 2, 2], 1.0, -0.125);
const PADDINGS: Lit = i32s(&[4, 2], &[0, 0, 1, 2, 2, 0, 0, 0]);

const FUSED: OpDef = OpDef {
    outputs: &["output: T"],
    gradient: Gradient::None("TensorFlow has none"),
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "FusedPadConv2D",
        inputs: &["input: T", "paddings: int32", "filter: T"],
        attrs: &[
            "T: {half, bfloat16, float, double}",
            "mode: {'REFLECT', 'SYMMETRIC'}",
            "strides: list(int)",
            "padding: {'SAME', 'VALID'}",
        ],
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, false))],
        examples: &[
            ex_ref(
                "reflected",
                &[REFLECT, UNIT, VALID],
                &[IMAGE, PADDINGS, FILTER],
            ),
            ex_ref(
                "symmetric",
                &[SYMMETRIC, TWO, SAME],
                &[IMAGE, PADDINGS, FILTER],
            ),
            ex_err(
                "too long",
                &[REFLECT, UNIT, VALID],
                &[
                    f32s(&[1, 2, 2, 1], &[0.0]),
                    i32s(&[4, 2], &[0, 0, 2, 0, 0, 0, 0, 0]),
                    f32s(&[1, 1, 1, 1], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FUSED
    },
    OpDef {
        name: "FusedResizeAndPadConv2D",
        inputs: &["input: T", "size: int32", "paddings: int32", "filter: T"],
        attrs: &[
            "T: {half, float, double}",
            "resize_align_corners: bool = false",
            "mode: {'REFLECT', 'SYMMETRIC'}",
            "strides: list(int)",
            "padding: {'SAME', 'VALID'}",
        ],
        kernels: &[cpu(
            &[("T", &[DType::F16, DType::F32, DType::F64])],
            |node| build(node, true),
        )],
        examples: &[
            ex_ref(
                "larger",
                &[REFLECT, UNIT, VALID],
                &[
                    f32s(&[1, 3, 2, 1], &[1.0, 2.0, 4.0, 8.0, 16.0, 0.5]),
                    i32s(&[2], &[6, 4]),
                    PADDINGS,
                    f32s(&[2, 2, 1, 1], &[1.0, -0.5, 0.25, 2.0]),
                ],
            ),
            ex_ref(
                "corners",
                &[SYMMETRIC, TWO, SAME, ("resize_align_corners", "true")],
                &[
                    f32s(&[1, 3, 2, 1], &[1.0, 2.0, 4.0, 8.0, 16.0, 0.5]),
                    i32s(&[2], &[4, 5]),
                    PADDINGS,
                    f32s(&[2, 2, 1, 1], &[1.0, -0.5, 0.25, 2.0]),
                ],
            ),
        ],
        ..FUSED
    },
];

/// A node's attributes.
#[derive(Clone, Copy)]
struct Fusion {
    /// Pixels at the edge that are not repeated.
    offset: usize,
    stride: [usize; 2],
    padding: Padding,
    /// How images are resized first.
    placement: Option<Placement>,
}

fn build(node: &NodeInfo, resizes: bool) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let fusion = Fusion {
        offset: usize::from(attrs.str("mode")? == "REFLECT"),
        stride: pair(attrs, "strides")?,
        padding: padding(attrs)?,
        placement: match resizes {
            true => Some(Placement::aligned(attrs.bool("resize_align_corners")?)),
            false => None,
        },
    };
    let dtype = attrs.dtype("T")?;
    by_float!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = run::<T>(ctx, fusion)?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(internal!("no convolution of {dtype}")))
}

fn run<T: Element + ConvElement>(ctx: &KernelCtx<'_>, fusion: Fusion) -> Result<Tensor> {
    ensure!(
        !ctx.input(0)?.is_empty(),
        invalid_argument,
        "Input tensor can't be empty"
    );
    let (images, next) = match fusion.placement {
        Some(placement) => (resized(ctx, placement, T::DTYPE)?, 2),
        None => (ctx.input(0)?.clone(), 1),
    };
    let padded = mirrored::<T>(ctx, &images, next, fusion.offset)?;
    let filter = ctx.input(next + 1)?;
    let (found, wanted) = (
        four(padded.shape(), "input")?,
        four(filter.shape(), "filter")?,
    );
    ensure!(
        found[3] == wanted[2],
        invalid_argument,
        "input and filter must have the same depth: {} vs {}",
        found[3],
        wanted[2]
    );
    let conv =
        Conv2d::new(found, wanted, fusion.stride, [1, 1], fusion.padding).ok_or_else(|| {
            invalid_argument!(
                "Computed output size would be negative: input {found:?}, filter {wanted:?}"
            )
        })?;
    let mut out = ctx.allocate(T::DTYPE, output_shape(&conv)?)?;
    let (input, filter) = (padded.slice::<T>()?, filter.slice::<T>()?);
    forward(
        ctx.par(),
        &conv,
        input,
        filter,
        out.slice_mut::<T>()?,
        Epilogue::None,
    );
    Ok(out)
}

fn resized(ctx: &KernelCtx<'_>, placement: Placement, dtype: DType) -> Result<Tensor> {
    let sizes = Sizes::new(ctx, placement)?;
    let input = converted(ctx.par(), ctx.input(0)?, DType::F32)?;
    let mut out = ctx.allocate(DType::F32, sizes.shape(sizes.output)?)?;
    let rows = placement.between(sizes.input[0], sizes.output[0]);
    let columns = placement.between(sizes.input[1], sizes.output[1]);
    let columns: Vec<_> = columns.into_iter().map(Some).collect();
    let pixels = (sizes.input, input.slice::<f32>()?);
    bilinear(
        ctx.par(),
        pixels,
        &rows,
        &columns,
        sizes.channels,
        out.slice_mut::<f32>()?,
    );
    converted(ctx.par(), &out, dtype)
}

/// Images with their mirror images around them.
fn mirrored<T: Element>(
    ctx: &KernelCtx<'_>,
    images: &Tensor,
    index: usize,
    offset: usize,
) -> Result<Tensor> {
    let (shape, paddings) = (images.shape(), ctx.input(index)?);
    let sizes = four(shape, "input")?;
    ensure!(
        paddings.rank() == 2 && paddings.shape().dim(1) == 2,
        invalid_argument,
        "paddings must be a matrix with 2 columns: {}",
        paddings.shape()
    );
    ensure!(
        paddings.shape().dim(0) == 4,
        invalid_argument,
        "The first dimension of paddings must be the rank of inputs: 4 {} {shape}",
        paddings.shape()
    );
    // Where each place of a padded dimension is found.
    let mut places = Vec::with_capacity(4);
    for (&[before, after], &size) in paddings
        .slice::<i32>()?
        .as_chunks::<2>()
        .0
        .iter()
        .zip(&sizes)
    {
        ensure!(
            before >= 0 && after >= 0,
            invalid_argument,
            "paddings must be non-negative: {before} {after}"
        );
        let (before, after) = (before as usize, after as usize);
        ensure!(
            before + offset <= size && after + offset <= size,
            invalid_argument,
            "paddings must be {} the dimension size: {before}, {after}, {size}",
            if offset == 0 {
                "no greater than"
            } else {
                "less than"
            }
        );
        let head = (0..before).rev().map(|at| at + offset);
        let tail = (0..after).map(|at| size - 1 - offset - at);
        places.push(head.chain(0..size).chain(tail).collect::<Vec<usize>>());
    }
    let dims: Vec<i64> = places.iter().map(|places| places.len() as i64).collect();
    let mut out = ctx.allocate(T::DTYPE, Shape::new(&dims)?)?;
    let (pixels, mut to) = (images.slice::<T>()?, out.slice_mut::<T>()?.iter_mut());
    for n in &places[0] {
        for y in &places[1] {
            for x in &places[2] {
                let pixel = ((n * sizes[1] + y) * sizes[2] + x) * sizes[3];
                for (c, to) in places[3].iter().zip(&mut to) {
                    *to = pixels[pixel + c].clone();
                }
            }
        }
    }
    Ok(out)
}
