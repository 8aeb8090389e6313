//! `ImageSummary`: pictures as PNG.
//!
//! TensorFlow: ImageSummary(tag: string, tensor: T[batch, height, width, channels]) -> summary: string, with max_images and
//! bad_color. uint8 pixels are taken as they are; others are scaled per image, so that the largest value is 255 if none
//! is negative, and zero is 127 otherwise; pixels that are not finite get the bad colour.

use tensorfleet_graph::example::{ex_err, f32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::summary::{Image, value};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor, f16};

use super::encode::{Entry, summary, tag};
use crate::image::png_file::encode;
use crate::math::cast::doubles;
use crate::room::room;

pub(super) const TYPES: &[DType] = &[DType::U8, DType::F32, DType::F16, DType::F64];

/// Images whose largest value is below this are black (or grey).
const ZERO: f32 = 1e-6;

pub(crate) static OP: OpDef = OpDef {
    name: "ImageSummary",
    inputs: &["tag: string", "tensor: T"],
    outputs: &["summary: string"],
    attrs: &[
        "max_images: int >= 1 = 3",
        "T: {uint8, float, half, double} = DT_FLOAT",
        "bad_color: tensor = uint8[4]{255, 0, 0, 255}",
    ],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    kernels: &[cpu(&[("T", TYPES)], build)],
    // PNG leaves the compression to the writer: only the pixels are the same.
    exactness: Exactness::Shape,
    examples: &[
        ex_err(
            "no images",
            &[],
            &[strs(&[], &["i"]), f32s(&[2, 2], &[0.0])],
            Code::InvalidArgument,
            "4-D",
        ),
        ex_err(
            "five channels",
            &[],
            &[strs(&[], &["i"]), f32s(&[1, 1, 1, 5], &[0.0])],
            Code::InvalidArgument,
            "last dim 1, 3, or 4",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let max_images = node.attrs.int("max_images")?.max(1) as usize;
    let bad_color = node.attrs.tensor("bad_color")?.slice::<u8>()?.to_vec();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let entries = values(&tag(ctx, 0)?, ctx.input(1)?, max_images, &bad_color)?;
        ctx.set(0, summary(&entries));
        Ok(())
    })
}

/// A summary value for each of the first images in a batch.
pub(super) fn values(
    tag: &[u8],
    images: &Tensor,
    max_images: usize,
    bad_color: &[u8],
) -> Result<Vec<Entry>> {
    let channels = images.shape().dim(3);
    if images.rank() != 4 || !matches!(channels, 1 | 3 | 4) {
        return Err(invalid_argument!(
            "Tensor must be 4-D with last dim 1, 3, or 4, not {}",
            images.shape()
        ));
    }
    if bad_color.len() < channels {
        return Err(invalid_argument!(
            "expected the bad color to have at least {channels} values, got {}",
            bad_color.len()
        ));
    }
    let count = images.shape().dim(0).min(max_images);
    let mut values = room(count)?;
    for index in 0..count {
        let pixels = pixels(&images.rows(index, 1)?, channels, bad_color)?;
        let end = if max_images == 1 {
            "/image".to_owned()
        } else {
            format!("/image/{index}")
        };
        let label = [tag, end.as_bytes()].concat();
        values.push(entry(label, images, channels, &pixels)?);
    }
    Ok(values)
}

fn entry(label: Vec<u8>, images: &Tensor, channels: usize, pixels: &[u8]) -> Result<Entry> {
    let (height, width) = (images.shape().dim(1), images.shape().dim(2));
    let side = |length: usize| {
        i32::try_from(length)
            .map_err(|_| invalid_argument!("an image side of {length} pixels is too long"))
    };
    let image = Image {
        height: side(height)?,
        width: side(width)?,
        colorspace: channels as i32,
        encoded_image_string: encode([height as u32, width as u32], channels, false, -1, pixels)?
            .into(),
    };
    Ok(Entry::new(label, value::Value::Image(image)))
}

fn pixels(image: &Tensor, channels: usize, bad_color: &[u8]) -> Result<Vec<u8>> {
    if image.dtype() == DType::U8 {
        return Ok(image.slice::<u8>()?.to_vec());
    }
    let values = doubles(image)?;
    let is_good = |pixel: &[f64]| pixel.iter().all(|value| value.is_finite());
    let good = values
        .chunks_exact(channels)
        .filter(|pixel| is_good(pixel))
        .flatten();
    let (low, high) = good.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| {
        (low.min(*value as f32), high.max(*value as f32))
    });
    let scale_to = |range: f32, largest: f32| match largest < ZERO {
        true => 0.0,
        false => range / largest,
    };
    let (scale, offset) = if low < 0.0 {
        (scale_to(127.0, low.abs().max(high.abs())), 128.0)
    } else {
        (scale_to(255.0, high), 0.0)
    };
    // Products and sums are rounded to the type of the image, as they decide which pixel value is just reached.
    let shade: fn(f64, f32, f32) -> u8 = match image.dtype() {
        DType::F16 => |value, scale, offset| {
            (f16::from_f64(value) * f16::from_f32(scale) + f16::from_f32(offset)).to_f32() as u8
        },
        DType::F32 => |value, scale, offset| (value as f32 * scale + offset) as u8,
        _ => |value, scale, offset| (value * f64::from(scale) + f64::from(offset)) as u8,
    };
    let mut out = Vec::with_capacity(values.len());
    for pixel in values.chunks_exact(channels) {
        if is_good(pixel) {
            out.extend(pixel.iter().map(|value| shade(*value, scale, offset)));
        } else {
            out.extend_from_slice(&bad_color[..channels]);
        }
    }
    Ok(out)
}
