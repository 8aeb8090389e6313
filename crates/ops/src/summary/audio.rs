//! `AudioSummary`, `AudioSummaryV2`: sound as WAV.
//!
//! TensorFlow: AudioSummaryV2(tag: string, tensor: float[batch, frames, channels] or [batch, frames], sample_rate: float) ->
//! summary: string, with attr max_outputs: int = 3. AudioSummary has the rate as an attribute.

use tensorfleet_graph::example::{ex_err, ex_ref, f32s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::summary::{Audio, value};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::Tensor;

use super::encode::{Entry, summary, tag};
use crate::io::wav;
use crate::room::room;

const AUDIO: OpDef = OpDef {
    outputs: &["summary: string"],
    infer: infer::scalar,
    gradient: Gradient::Stop("summaries are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "AudioSummary",
        inputs: &["tag: string", "tensor: float"],
        attrs: &["sample_rate: float", "max_outputs: int >= 1 = 3"],
        deprecated: 15,
        kernels: &[cpu(&[], build)],
        examples: &[ex_ref(
            "two of three",
            &[("sample_rate", "44100.0"), ("max_outputs", "2")],
            &[strs(&[], &["a"]), f32s(&[3, 2], &[0.5])],
        )],
        ..AUDIO
    },
    OpDef {
        name: "AudioSummaryV2",
        inputs: &["tag: string", "tensor: float", "sample_rate: float"],
        attrs: &["max_outputs: int >= 1 = 3"],
        kernels: &[cpu(&[], build)],
        examples: &[
            ex_ref(
                "two channels",
                &[],
                &[
                    strs(&[], &["a"]),
                    f32s(&[1, 3, 2], &[0.5, -0.5, 1.0, -1.0, 2.0, -2.0]),
                    f32s(&[], &[0.25]),
                ],
            ),
            ex_ref(
                "only one, which has no number",
                &[("max_outputs", "1")],
                &[strs(&[], &["a"]), f32s(&[2, 0], &[]), f32s(&[], &[8000.5])],
            ),
            ex_err(
                "no batch",
                &[],
                &[strs(&[], &["a"]), f32s(&[3], &[0.5]), f32s(&[], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "no rate",
                &[],
                &[strs(&[], &["a"]), f32s(&[1, 3], &[0.5]), f32s(&[], &[0.0])],
                Code::InvalidArgument,
                "sample_rate must be > 0",
            ),
        ],
        ..AUDIO
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let outputs = most(node)?;
    // An attribute of the older op, an input of the other.
    let rate = node.attrs.float("sample_rate").ok();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let rate = match rate {
            Some(rate) => rate,
            None => ctx.scalar::<f32>(2)?,
        };
        let entries = values(&tag(ctx, 0)?, ctx.input(1)?, outputs, rate)?;
        ctx.set(0, summary(&entries));
        Ok(())
    })
}

/// The `max_outputs` attribute.
pub(super) fn most(node: &NodeInfo) -> Result<usize> {
    let most = node.attrs.int("max_outputs")?;
    ensure!(most > 0, invalid_argument, "max_outputs must be > 0");
    Ok(most as usize)
}

/// A summary value for each of the first sounds in a batch.
pub(super) fn values(tag: &[u8], tensor: &Tensor, most: usize, rate: f32) -> Result<Vec<Entry>> {
    ensure!(
        matches!(tensor.rank(), 2 | 3),
        invalid_argument,
        "Tensor must be 3-D or 2-D, got: {}",
        tensor.shape()
    );
    ensure!(rate > 0.0, invalid_argument, "sample_rate must be > 0");
    let frames = tensor.shape().dim(1);
    let channels = match tensor.rank() {
        2 => 1,
        _ => tensor.shape().dim(2),
    };
    let count = tensor.shape().dim(0).min(most);
    let mut values = room(count)?;
    for index in 0..count {
        let sound = tensor.rows(index, 1)?;
        let rounded = (rate.round_ties_even() as i64).max(1);
        let audio = Audio {
            sample_rate: rate,
            num_channels: channels as i64,
            length_frames: frames as i64,
            encoded_audio_string: wav::encode(sound.slice::<f32>()?, rounded, channels)?.into(),
            content_type: "audio/wav".to_owned(),
        };
        let end = match most {
            1 => "/audio".to_owned(),
            _ => format!("/audio/{index}"),
        };
        let tag = [tag, end.as_bytes()].concat();
        values.push(Entry::new(tag, value::Value::Audio(audio)));
    }
    Ok(values)
}
