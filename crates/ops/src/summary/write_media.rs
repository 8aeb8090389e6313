//! `WriteAudioSummary`, `WriteImageSummary`: sound and pictures through a summary writer.
//!
//! TensorFlow: WriteAudioSummary(writer, step, tag, tensor: float, sample_rate: float), with attr max_outputs: int = 3;
//! WriteImageSummary(writer, step, tag, tensor: T, bad_color: uint8), with attr max_images: int = 3.

use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::NodeInfo;
use tensorfleet_status::ensure;
use tensorfleet_tensor::DType;

use super::encode::tag;
use super::writer::{WRITE, write};
use super::{audio, image};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "WriteAudioSummary",
        inputs: &[
            "writer: resource",
            "step: int64",
            "tag: string",
            "tensor: float",
            "sample_rate: float",
        ],
        attrs: &["max_outputs: int >= 1 = 3"],
        kernels: &[cpu(&[], |node| {
            let most = audio::most(node)?;
            write(move |ctx| {
                let rate = ctx.scalar::<f32>(4)?;
                audio::values(&tag(ctx, 2)?, ctx.input(3)?, most, rate)
            })
        })],
        ..WRITE
    },
    OpDef {
        name: "WriteImageSummary",
        inputs: &[
            "writer: resource",
            "step: int64",
            "tag: string",
            "tensor: T",
            "bad_color: uint8",
        ],
        attrs: &[
            "max_images: int >= 1 = 3",
            "T: {uint8, double, float, half} = DT_FLOAT",
        ],
        kernels: &[cpu(&[("T", image::TYPES)], |node: &NodeInfo| {
            let most = node.attrs.int("max_images")?.max(1) as usize;
            write(move |ctx| {
                let bad_color = ctx.input(4)?;
                ensure!(
                    bad_color.rank() == 1 && bad_color.dtype() == DType::U8,
                    invalid_argument,
                    "bad_color must be a vector, got shape {}",
                    bad_color.shape()
                );
                image::values(&tag(ctx, 2)?, ctx.input(3)?, most, bad_color.slice::<u8>()?)
            })
        })],
        ..WRITE
    },
];
