//! `AdjustContrastv2`, `AdjustHue`, `AdjustSaturation`: colours of images changed.
//!
//! TensorFlow: AdjustContrastv2(images: T, contrast_factor: float) -> output: T moves each channel away from its mean over the
//! image; AdjustHue(images: T, delta: float) turns the hue, AdjustSaturation(images: T, scale: float) scales the saturation.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::par::{chunks_mut, rows_mut};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

use super::color::GRAIN;

const F32: &[DType] = &[DType::F32];

const IMAGE: Lit = f32s(
    &[2, 2, 2, 3],
    &[
        0.5, 0.25, 0.75, 0.125, 0.5, 0.25, 0.75, 0.5, 0.25, 0.25, 0.75, 0.5, 0.5, 0.75, 0.25, 0.25,
        0.5, 0.75, 0.875, 0.25, 0.5, 1.0, 0.0, 0.0625,
    ],
);
const PIXEL: Lit = f32s(&[1, 1, 3], &[0.5, 0.25, 0.75]);

const ADJUST: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &["T: {half, float} = DT_FLOAT"],
    infer: infer::same_as_first,
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Relative(4e-7),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "AdjustContrastv2",
        inputs: &["images: T", "contrast_factor: float"],
        kernels: &[cpu(&[("T", F32)], |_| AnyKernel::sync(contrast))],
        examples: &[
            ex_attrs(
                "twice",
                &[],
                &[f32s(&[1, 2, 1], &[1.0, 3.0]), f32s(&[], &[2.0])],
                &[f32s(&[1, 2, 1], &[0.0, 4.0])],
            ),
            ex_ref("images", &[], &[IMAGE, f32s(&[], &[0.75])]),
            ex_err(
                "no image",
                &[],
                &[f32s(&[2, 3], &[1.0]), f32s(&[], &[2.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..ADJUST
    },
    OpDef {
        name: "AdjustHue",
        inputs: &["images: T", "delta: float"],
        kernels: &[cpu(&[("T", F32)], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| by_pixel(ctx, "delta", hue))
        })],
        examples: &[
            ex_ref("forwards", &[], &[IMAGE, f32s(&[], &[0.25])]),
            ex_ref("backwards", &[], &[IMAGE, f32s(&[], &[-0.875])]),
            ex_err(
                "channels",
                &[],
                &[f32s(&[1, 2, 2], &[1.0]), f32s(&[], &[2.0])],
                Code::InvalidArgument,
                "input must have 3 channels but instead has 2 channels.",
            ),
            ex_err(
                "delta",
                &[],
                &[PIXEL, f32s(&[1], &[2.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..ADJUST
    },
    OpDef {
        name: "AdjustSaturation",
        inputs: &["images: T", "scale: float"],
        kernels: &[cpu(&[("T", F32)], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| by_pixel(ctx, "scale", saturate))
        })],
        examples: &[
            ex_ref("more", &[], &[IMAGE, f32s(&[], &[1.5])]),
            ex_ref("none", &[], &[IMAGE, f32s(&[], &[0.0])]),
        ],
        ..ADJUST
    },
];

/// The images, to be written, and the scalar.
fn inputs(ctx: &mut KernelCtx<'_>, name: &str) -> Result<(Tensor, f32)> {
    let (shape, scalar) = (ctx.input(0)?.shape(), ctx.input(1)?);
    ensure!(
        shape.rank() >= 3,
        invalid_argument,
        "input must be at least 3-D, got shape{shape}"
    );
    ensure!(
        scalar.rank() == 0,
        invalid_argument,
        "{name} must be scalar: {}",
        scalar.shape()
    );
    let scalar = scalar.to_scalar::<f32>()?;
    Ok((ctx.take(0)?, scalar))
}

fn contrast(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (mut images, factor) = inputs(ctx, "contrast_factor")?;
    let shape = images.shape();
    let rank = shape.rank();
    let (channels, image) = (shape.dim(rank - 1), shape.elements_in(rank - 3..rank));
    if !images.is_empty() {
        rows_mut(
            ctx.par(),
            images.slice_mut::<f32>()?,
            image,
            1,
            |_, images| {
                for image in images.chunks_exact_mut(image) {
                    let mut means = vec![0.0f64; channels];
                    for pixel in image.chunks_exact(channels) {
                        for (sum, &x) in means.iter_mut().zip(pixel) {
                            *sum += f64::from(x);
                        }
                    }
                    let count = (image.len() / channels) as f64;
                    for pixel in image.chunks_exact_mut(channels) {
                        for (x, sum) in pixel.iter_mut().zip(&means) {
                            let mean = (sum / count) as f32;
                            *x = mean + factor * (*x - mean);
                        }
                    }
                }
            },
        );
    }
    ctx.set(0, images);
    Ok(())
}

fn by_pixel(
    ctx: &mut KernelCtx<'_>,
    name: &str,
    change: fn([f32; 3], f32) -> [f32; 3],
) -> Result<()> {
    let (mut images, scalar) = inputs(ctx, name)?;
    let channels = images.shape().dim(images.rank() - 1);
    ensure!(
        channels == 3,
        invalid_argument,
        "input must have 3 channels but instead has {channels} channels."
    );
    chunks_mut(ctx.par(), images.slice_mut::<f32>()?, GRAIN, |_, pixels| {
        for pixel in pixels.as_chunks_mut::<3>().0 {
            *pixel = change(*pixel, scalar);
        }
    });
    ctx.set(0, images);
    Ok(())
}

/// A hue has six sectors; in each, one channel is the largest, one the smallest, and the third lies between them.
fn hue([r, g, b]: [f32; 3], delta: f32) -> [f32; 3] {
    let (sector, low, middle, high) = match (r < g, b) {
        (true, b) if b < r => (1, b, r, g),
        (true, b) if b > g => (3, r, g, b),
        (true, b) => (2, r, b, g),
        (false, b) if b < g => (0, b, g, r),
        (false, b) if b > r => (4, g, r, b),
        (false, b) => (5, g, b, r),
    };
    let mut turn = 0.0;
    if high != low {
        let share = (middle - low) / (high - low);
        turn = sector as f32 + if sector % 2 == 0 { share } else { 1.0 - share };
    }
    let turn = (turn + delta * 6.0).rem_euclid(6.0);
    let sector = turn as usize;
    let share = turn - sector as f32;
    let share = if sector.is_multiple_of(2) {
        share
    } else {
        1.0 - share
    };
    let middle = low + share * (high - low);
    match sector {
        0 => [high, middle, low],
        1 => [middle, high, low],
        2 => [low, high, middle],
        3 => [low, middle, high],
        4 => [middle, low, high],
        _ => [high, low, middle],
    }
}

fn saturate([r, g, b]: [f32; 3], scale: f32) -> [f32; 3] {
    let value = r.max(g).max(b);
    let range = value - r.min(g).min(b);
    let saturation = if value > 0.0 { range / value } else { 0.0 };
    let norm = 1.0 / (6.0 * range);
    let hue = if range <= 0.0 {
        0.0
    } else if r == value {
        norm * (g - b)
    } else if g == value {
        norm * (b - r) + 2.0 / 6.0
    } else {
        norm * (r - g) + 4.0 / 6.0
    };
    let turn = if hue < 0.0 { hue + 1.0 } else { hue } * 6.0;
    let chroma = (saturation * scale).clamp(0.0, 1.0) * value;
    let middle = chroma * (1.0 - (turn % 2.0 - 1.0).abs());
    let channels = match turn as usize {
        0 => [chroma, middle, 0.0],
        1 => [middle, chroma, 0.0],
        2 => [0.0, chroma, middle],
        3 => [0.0, middle, chroma],
        4 => [middle, 0.0, chroma],
        5 => [chroma, 0.0, middle],
        _ => [0.0; 3],
    };
    channels.map(|channel| channel + (value - chroma))
}
