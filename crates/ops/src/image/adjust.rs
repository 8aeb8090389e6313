//! `AdjustContrastv2`, `AdjustHue`, `AdjustSaturation`: colours of images changed.
//!
//! TensorFlow: AdjustContrastv2(images: T, contrast_factor: float) -> output: T moves each channel away from its mean over the
//! image; AdjustHue(images: T, delta: float) turns the hue, AdjustSaturation(images: T, scale: float) scales the saturation.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::map::map_pixels;
use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Tensor};

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
        let mut out = ctx.allocate(DType::F32, shape.clone())?;
        let from = images.slice::<f32>()?;
        let means = means(ctx.par(), from, image, channels);
        // The means of as many pixels as are a whole number of vectors.
        const PIXELS: usize = 16;
        let run = PIXELS * channels;
        rows_mut(ctx.par(), out.slice_mut()?, image, 1, |first, to| {
            for (i, to) in (first..).zip(to.chunks_exact_mut(image)) {
                let means = means[i * channels..(i + 1) * channels].repeat(PIXELS);
                let from = from[i * image..(i + 1) * image].chunks(run);
                for (to, from) in to.chunks_mut(run).zip(from) {
                    for ((to, x), mean) in to.iter_mut().zip(from).zip(&means) {
                        *to = mean + factor * (x - mean);
                    }
                }
            }
        });
        images = out;
    }
    ctx.set(0, images);
    Ok(())
}

/// The mean of each channel of each image.
fn means(par: &dyn Par, images: &[f32], image: usize, channels: usize) -> Vec<f32> {
    let mut means = vec![0.0; images.len() / image * channels];
    rows_mut(par, &mut means, channels, 1, |first, means| {
        // Sums of pixels apart from each other, so that no addition waits for the last one.
        const PIXELS: usize = 8;
        let mut sums = vec![0.0f64; PIXELS * channels];
        for (i, means) in (first..).zip(means.chunks_exact_mut(channels)) {
            sums.fill(0.0);
            let image = &images[i * image..(i + 1) * image];
            for pixels in image.chunks(sums.len()) {
                for (sum, x) in sums.iter_mut().zip(pixels) {
                    *sum += f64::from(*x);
                }
            }
            let count = (image.len() / channels) as f64;
            for (channel, mean) in means.iter_mut().enumerate() {
                let sum: f64 = sums.iter().skip(channel).step_by(channels).sum();
                *mean = (sum / count) as f32;
            }
        }
    });
    means
}

fn by_pixel(
    ctx: &mut KernelCtx<'_>,
    name: &str,
    change: impl Fn([f32; 3], f32) -> [f32; 3] + Copy + Sync,
) -> Result<()> {
    let (mut images, scalar) = inputs(ctx, name)?;
    let channels = images.shape().dim(images.rank() - 1);
    ensure!(
        channels == 3,
        invalid_argument,
        "input must have 3 channels but instead has {channels} channels."
    );
    map_pixels(ctx.par(), images.slice_mut::<f32>()?, move |pixel| {
        change(pixel, scalar)
    });
    ctx.set(0, images);
    Ok(())
}

/// The hue of a pixel in sixths of a turn, from 0 to 6; 0 for a grey one.
#[inline(always)]
fn turn([r, g, b]: [f32; 3], high: f32, range: f32) -> f32 {
    let from_blue = 4.0 + (r - g) / range;
    let from_green = 2.0 + (b - r) / range;
    let from_red = (g - b) / range;
    let turn = if g == high { from_green } else { from_blue };
    let turn = if r == high { from_red } else { turn };
    let turn = if turn < 0.0 { turn + 6.0 } else { turn };
    if range > 0.0 { turn } else { 0.0 }
}

/// How much each channel has of the range of a hue in sixths of a turn.
#[inline(always)]
fn shares(turn: f32) -> [f32; 3] {
    let inside = |x: f32| {
        let x = if x > 0.0 { x } else { 0.0 };
        if x < 1.0 { x } else { 1.0 }
    };
    [
        inside((turn - 3.0).abs() - 1.0),
        inside(2.0 - (turn - 2.0).abs()),
        inside(2.0 - (turn - 4.0).abs()),
    ]
}

#[inline(always)]
fn extremes([r, g, b]: [f32; 3]) -> (f32, f32) {
    (r.min(g).min(b), r.max(g).max(b))
}

#[inline(always)]
fn hue(pixel: [f32; 3], delta: f32) -> [f32; 3] {
    let (low, high) = extremes(pixel);
    let range = high - low;
    let turn = turn(pixel, high, range) + delta * 6.0;
    let turn = turn - 6.0 * (turn / 6.0).floor();
    shares(turn).map(|share| low + share * range)
}

#[inline(always)]
fn saturate(pixel: [f32; 3], scale: f32) -> [f32; 3] {
    let (low, value) = extremes(pixel);
    let range = value - low;
    let saturation = if value > 0.0 { range / value } else { 0.0 };
    let chroma = (saturation * scale).clamp(0.0, 1.0) * value;
    let least = value - chroma;
    shares(turn(pixel, value, range)).map(|share| share * chroma + least)
}
