//! `ResizeNearestNeighbor`, `ResizeNearestNeighborGrad`: each output pixel is the nearest one of the input.
//!
//! TensorFlow: ResizeNearestNeighbor(images: T, size: int32) -> resized_images: T, with align_corners and half_pixel_centers;
//! ResizeNearestNeighborGrad(grads: T, size: int32) -> output: T, `size` being that of the images.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_math::par::rows_mut;
use tensorfleet_status::{Code, Result, ensure, internal};
use tensorfleet_tensor::{Element, Shape};

use super::resize::{Placement, Sizes, pair, resized};
use crate::by_real;
use crate::math::calculus::first_of;
use crate::nn::conv_attrs::with_attrs;
use crate::types::REAL_NUMBERS;

const ALIGN: (&str, &str) = ("align_corners", "true");
const CENTRES: (&str, &str) = ("half_pixel_centers", "true");
const IMAGE: Lit = ramp(&[2, 4, 5, 3], 60.0, -0.5);
const SIZE: Lit = i32s(&[2], &[7, 3]);

/// Bytes per task.
const GRAIN: usize = 32 * 1024;

const NEAREST: OpDef = OpDef {
    infer: resized,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ResizeNearestNeighbor",
        inputs: &["images: T", "size: int32"],
        outputs: &["resized_images: T"],
        attrs: &[
            "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
            "align_corners: bool = false",
            "half_pixel_centers: bool = false",
        ],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
        examples: &[
            ex_attrs(
                "twice as wide",
                &[],
                &[x(&[1, 1, 2, 1], &[1.0, 3.0]), i32s(&[2], &[1, 4])],
                &[x(&[1, 1, 4, 1], &[1.0, 1.0, 3.0, 3.0])],
            ),
            ex_ref("both ways", &[], &[IMAGE, SIZE]),
            ex_ref("corners", &[ALIGN], &[IMAGE, SIZE]),
            ex_ref("centres", &[CENTRES], &[IMAGE, SIZE]),
            ex_err(
                "no size",
                &[],
                &[f32s(&[1, 1, 2, 1], &[1.0]), i32s(&[2], &[0, 1])],
                Code::InvalidArgument,
                "output dimensions must be positive",
            ),
        ],
        ..NEAREST
    },
    OpDef {
        name: "ResizeNearestNeighborGrad",
        inputs: &["grads: T", "size: int32"],
        outputs: &["output: T"],
        attrs: &[
            "T: {uint8, int8, int32, half, float, double, bfloat16}",
            "align_corners: bool = false",
            "half_pixel_centers: bool = false",
        ],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build_grad)],
        examples: &[
            ex_attrs(
                "twice as wide",
                &[],
                &[x(&[1, 1, 4, 1], &[1.0, 2.0, 3.0, 4.0]), i32s(&[2], &[1, 2])],
                &[x(&[1, 1, 2, 1], &[3.0, 7.0])],
            ),
            ex_ref("centres", &[CENTRES], &[x(&[1, 4, 5, 2], &[1.0]), SIZE]),
            ex_err(
                "no size",
                &[],
                &[f32s(&[1, 1, 2, 1], &[1.0]), i32s(&[2], &[0, 1])],
                Code::InvalidArgument,
                "shape_t's elements must be positive",
            ),
        ],
        ..NEAREST
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (image, grad) = (g.input(0), g.grad(0)?);
    let shape = g.shape(image)?;
    let (begin, size) = (g.ints(&[1])?, g.ints(&[2])?);
    let size = g.apply("Slice", &[shape, begin, size])?;
    let names = ["align_corners", "half_pixel_centers"];
    first_of(
        2,
        with_attrs(g, "ResizeNearestNeighborGrad", &names, &[grad, size])?,
    )
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let placement = Placement::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = Sizes::new(ctx, placement)?;
        let input = ctx.input(0)?;
        ensure!(
            sizes.input.iter().all(|size| *size < 1 << 24),
            invalid_argument,
            "nearest neighbor requires max height & width of 2^24"
        );
        let mut out = ctx.allocate(input.dtype(), sizes.shape(sizes.output)?)?;
        if out.is_empty() {
            ctx.set(0, out);
            return Ok(());
        }
        let rows = placement.nearest(sizes.input[0], sizes.output[0]);
        let columns = placement.nearest(sizes.input[1], sizes.output[1]);
        let pixel = sizes.channels * input.dtype().size().unwrap_or(1);
        let (Some(from), Some(to)) = (input.bytes(), out.bytes_mut()) else {
            return Err(internal!("no bytes in {}", input.dtype()));
        };
        let (in_len, out_len) = (sizes.input[1] * pixel, sizes.output[1] * pixel);
        let grain = GRAIN.div_ceil(out_len);
        rows_mut(ctx.par(), to, out_len, grain, |first, lines| {
            for (line, out) in (first..).zip(lines.chunks_exact_mut(out_len)) {
                let image = line / rows.len() * sizes.input[0];
                let line = &from[(image + rows[line % rows.len()]) * in_len..][..in_len];
                for (out, column) in out.chunks_exact_mut(pixel).zip(&columns) {
                    out.copy_from_slice(&line[column * pixel..(column + 1) * pixel]);
                }
            }
        });
        ctx.set(0, out);
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let (placement, dtype) = (Placement::new(node)?, node.attrs.dtype("T")?);
    by_real!(dtype, T => spread::<T>(placement), else => Err(internal!("no images of {dtype}")))
}

fn spread<T: Element + Num>(placement: Placement) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let grads = ctx.input(0)?;
        let &[batch, height, width, channels] = grads.shape().dims() else {
            return Err(invalid_rank(grads.shape()));
        };
        let size = pair(ctx, 1, "shape_t")?;
        ensure!(
            size[0] > 0 && size[1] > 0,
            invalid_argument,
            "shape_t's elements must be positive"
        );
        let shape = Shape::new(&[batch, size[0], size[1], channels])?;
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        let sums = out.slice_mut::<T>()?;
        sums.fill(T::ZERO);
        if grads.is_empty() || sums.is_empty() {
            ctx.set(0, out);
            return Ok(());
        }
        let size = size.map(|size| size as usize);
        let rows = placement.nearest(size[0], height as usize);
        let columns = placement.nearest(size[1], width as usize);
        let channels = channels as usize;
        for (at, pixel) in grads.slice::<T>()?.chunks_exact(channels).enumerate() {
            let (line, column) = (at / columns.len(), at % columns.len());
            let row = line / rows.len() * size[0] + rows[line % rows.len()];
            let to = (row * size[1] + columns[column]) * channels;
            for (sum, &grad) in sums[to..to + channels].iter_mut().zip(pixel) {
                *sum = sum.add(grad);
            }
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn invalid_rank(shape: &Shape) -> tensorfleet_status::Status {
    tensorfleet_status::invalid_argument!("input must be 4-dimensional{shape}")
}
