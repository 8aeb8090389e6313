//! `ExtractGlimpse`, `ExtractGlimpseV2`: a window of each image, noise where it reaches beyond.
//!
//! TensorFlow: ExtractGlimpse(input: float, size: int32, offsets: float) -> glimpse: float, with centered, normalized,
//! uniform_noise and noise. The second version centers windows only where offsets are normalized, and does not where they are pixels.

use tensorfleet_graph::example::{Example, Lit, ex_err, ex_ref, f32s, i32s, ramp};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{Philox, fill_normal, fill_uniform};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape};

use super::resize::resized;
use crate::random::entropy;

const ZERO: (&str, &str) = ("noise", "'zero'");
const NOT_UNIFORM: (&str, &str) = ("uniform_noise", "false");
const IMAGES: Lit = ramp(&[2, 5, 4, 2], 1.0, 1.0);
const SIZE: Lit = i32s(&[2], &[3, 2]);
const OFFSETS: Lit = f32s(&[2, 2], &[0.25, -0.5, -1.0, 0.75]);
const PIXELS: Lit = f32s(&[2, 2], &[1.0, -1.0, -2.0, 1.0]);

const EXAMPLES: &[Example] = &[
    ex_ref("centered", &[ZERO, NOT_UNIFORM], &[IMAGES, SIZE, OFFSETS]),
    ex_ref(
        "from the corner",
        &[ZERO, NOT_UNIFORM, ("centered", "false")],
        &[IMAGES, SIZE, OFFSETS],
    ),
    ex_ref(
        "pixels",
        &[ZERO, NOT_UNIFORM, ("normalized", "false")],
        &[IMAGES, SIZE, PIXELS],
    ),
    ex_err(
        "two kinds of noise",
        &[ZERO],
        &[IMAGES, SIZE, OFFSETS],
        Code::InvalidArgument,
        "The uniform_noise and noise could not be specified at the same time",
    ),
    ex_err(
        "offsets",
        &[],
        &[IMAGES, SIZE, f32s(&[1, 2], &[0.0])],
        Code::InvalidArgument,
        "",
    ),
];

const GLIMPSE: OpDef = OpDef {
    inputs: &["input: float", "size: int32", "offsets: float"],
    outputs: &["glimpse: float"],
    attrs: &[
        "centered: bool = true",
        "normalized: bool = true",
        "uniform_noise: bool = true",
        "noise: string = 'uniform'",
    ],
    infer: resized,
    exactness: Exactness::Bits,
    examples: EXAMPLES,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ExtractGlimpse",
        gradient: Gradient::Stop("as in TensorFlow, which does not differentiate it"),
        kernels: &[cpu(&[], |node| build(node, true))],
        ..GLIMPSE
    },
    OpDef {
        name: "ExtractGlimpseV2",
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[], |node| build(node, false))],
        ..GLIMPSE
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Noise {
    Uniform,
    Gaussian,
    Zero,
}

/// A node's attributes.
#[derive(Clone, Copy)]
struct Looking {
    first_version: bool,
    centered: bool,
    normalized: bool,
    noise: Noise,
}

impl Looking {
    /// Where a window of `window` pixels begins in an image of `size`.
    fn begin(self, offset: f32, size: usize, window: usize) -> i64 {
        let (size, half) = (size as f32, window as f32 / 2.0);
        let mut at = offset;
        if self.first_version {
            if self.normalized {
                at *= size;
            }
            if self.centered {
                at = at / 2.0 + size / 2.0;
            }
            at -= half;
        } else if self.normalized {
            at *= size;
            if self.centered {
                at = at / 2.0 + size / 2.0 - half;
            }
        } else if self.centered {
            at += size / 2.0;
        }
        at as i64
    }
}

fn build(node: &NodeInfo, first_version: bool) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (uniform, noise) = (attrs.bool("uniform_noise")?, attrs.str("noise")?);
    ensure!(
        !(uniform && !noise.is_empty() && noise != "uniform"),
        invalid_argument,
        "The uniform_noise and noise could not be specified at the same time"
    );
    let looking = Looking {
        first_version,
        centered: attrs.bool("centered")?,
        normalized: attrs.bool("normalized")?,
        noise: match noise {
            "" if uniform => Noise::Uniform,
            "" | "gaussian" => Noise::Gaussian,
            "uniform" => Noise::Uniform,
            "zero" => Noise::Zero,
            _ => {
                return Err(invalid_argument!(
                    "The noise could only be uniform, gaussian, or zero, got{noise}"
                ));
            }
        },
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| glimpse(ctx, looking))
}

fn glimpse(ctx: &mut KernelCtx<'_>, looking: Looking) -> Result<()> {
    let (input, size, offsets) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let &[batch, height, width, channels] = input.shape().dims() else {
        return Err(invalid_argument!(
            "input must be 4-dimensional (batch_size, height, width, depth){}",
            input.shape()
        ));
    };
    ensure!(
        size.rank() == 1 && size.elements() == 2,
        invalid_argument,
        "input must be a vector of size 2 (height, width){}",
        size.shape()
    );
    let shape = offsets.shape();
    ensure!(
        shape.rank() == 2,
        invalid_argument,
        "input must be a matrix{shape}"
    );
    ensure!(
        shape.dims()[0] == batch,
        invalid_argument,
        "first dimension should be batch{shape}"
    );
    ensure!(
        shape.dim(1) == 2,
        invalid_argument,
        "second dimension should be of size 2 (y,x){shape}"
    );
    let sizes = ctx.ints(1)?;
    let out_shape = Shape::new(&[batch, sizes[0], sizes[1], channels])?;
    let mut out = ctx.allocate(DType::F32, out_shape)?;
    if out.is_empty() {
        ctx.set(0, out);
        return Ok(());
    }
    let (rows, columns) = (sizes[0] as usize, sizes[1] as usize);
    let (height, width, channels) = (height as usize, width as usize, channels as usize);
    let pixels = input.slice::<f32>()?;
    let image_len = height * width * channels;
    let windows = out
        .slice_mut::<f32>()?
        .chunks_exact_mut(rows * columns * channels);
    for (at, window) in windows.enumerate() {
        let image = &pixels[at * image_len..(at + 1) * image_len];
        let offsets = &offsets.slice::<f32>()?[at * 2..at * 2 + 2];
        let top = looking.begin(offsets[0], height, rows);
        let left = looking.begin(offsets[1], width, columns);
        fill(ctx, looking.noise, image, channels, window);
        for (row, line) in window.chunks_exact_mut(columns * channels).enumerate() {
            let y = top.saturating_add(row as i64);
            if !(0..height as i64).contains(&y) {
                continue;
            }
            for (column, pixel) in line.chunks_exact_mut(channels).enumerate() {
                let x = left.saturating_add(column as i64);
                if (0..width as i64).contains(&x) {
                    let from = (y as usize * width + x as usize) * channels;
                    pixel.copy_from_slice(&image[from..from + channels]);
                }
            }
        }
    }
    ctx.set(0, out);
    Ok(())
}

/// Fills a window with noise as bright as the image.
fn fill(ctx: &KernelCtx<'_>, noise: Noise, image: &[f32], channels: usize, window: &mut [f32]) {
    let range = |values: &mut dyn Iterator<Item = f32>| {
        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| {
            (low.min(x), high.max(x))
        })
    };
    let random = Philox::new(entropy(), entropy());
    match noise {
        Noise::Zero => window.fill(0.0),
        Noise::Uniform => {
            let (low, high) = range(&mut image.iter().copied());
            fill_uniform(ctx.par(), random, window);
            window.iter_mut().for_each(|x| *x = low + *x * (high - low));
        }
        Noise::Gaussian => {
            fill_normal(ctx.par(), random, window);
            for c in 0..channels {
                let channel = || image.iter().skip(c).step_by(channels).copied();
                let (low, high) = range(&mut channel());
                let count = (image.len() / channels).max(1) as f32;
                let mean = channel().sum::<f32>() / count;
                let spread =
                    (channel().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count).sqrt();
                for x in window.iter_mut().skip(c).step_by(channels) {
                    *x = (mean + *x * spread).min(high).max(low);
                }
            }
        }
    }
}
