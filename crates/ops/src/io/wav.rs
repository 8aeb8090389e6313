//! `DecodeWav`, `EncodeWav`: sound as 16-bit PCM in a WAV file.
//!
//! TensorFlow: DecodeWav(contents: string) -> (audio: float[samples, channels], sample_rate: int32), with attrs
//! desired_channels, desired_samples: int = -1 (as they are; the last channel is repeated, the end filled with zeros);
//! EncodeWav(audio: float[samples, channels], sample_rate: int32) -> contents: string. One is 2^15.

use tensorfleet_checkpoint::coding::{take_bytes, take_u32};
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, strs};
use tensorfleet_graph::infer::{self, InferCtx};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{PartialShape, Shape, TString, Tensor, UNKNOWN_DIM};

const WAV: OpDef = OpDef {
    gradient: Gradient::Stop("files are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// Two samples of two channels, ten times a second.
const TWO: &str = "RIFF,\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\n\0\0\0(\0\0\0\x04\0\x10\0data\x08\0\0\0\0@\0 \0\0\x01\0";

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DecodeWav",
        inputs: &["contents: string"],
        outputs: &["audio: float", "sample_rate: int32"],
        attrs: &["desired_channels: int = -1", "desired_samples: int = -1"],
        infer: infer_decoded,
        kernels: &[cpu(&[], build_decode)],
        examples: &[
            ex(
                "two channels",
                &[strs(&[], &[TWO])],
                &[
                    f32s(&[2, 2], &[0.5, 0.25, 0.0, 0.000_030_517_578_125]),
                    i32s(&[], &[10]),
                ],
            ),
            ex_attrs(
                "more channels and samples than there are",
                &[("desired_channels", "3"), ("desired_samples", "3")],
                &[strs(&[], &[TWO])],
                &[
                    f32s(
                        &[3, 3],
                        &[
                            0.5,
                            0.25,
                            0.25,
                            0.0,
                            0.000_030_517_578_125,
                            0.000_030_517_578_125,
                            0.0,
                            0.0,
                            0.0,
                        ],
                    ),
                    i32s(&[], &[10]),
                ],
            ),
            ex_err(
                "no WAV",
                &[],
                &[strs(&[], &["RIFX and more"])],
                Code::InvalidArgument,
                "Header mismatch: Expected RIFF but found RIFX",
            ),
            ex_err(
                "too short",
                &[],
                &[strs(&[], &["RIFF,\0\0\0WAVEfmt "])],
                Code::InvalidArgument,
                "Data too short when trying to read",
            ),
            ex_err(
                "two files",
                &[],
                &[strs(&[2], &["a", "b"])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..WAV
    },
    OpDef {
        name: "EncodeWav",
        inputs: &["audio: float", "sample_rate: int32"],
        outputs: &["contents: string"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_encode)],
        examples: &[
            ex(
                "two channels",
                &[f32s(&[2, 2], &[0.5, 0.25, 0.0, 0.00003]), i32s(&[], &[10])],
                &[strs(&[], &[TWO])],
            ),
            ex_err(
                "no rate",
                &[],
                &[f32s(&[1, 1], &[0.0]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "sample_rate must be in (0, 2^32), got: 0",
            ),
            ex_err(
                "no channels",
                &[],
                &[f32s(&[1, 0], &[]), i32s(&[], &[10])],
                Code::InvalidArgument,
                "num_channels must be in (0, 2^16), got: 0",
            ),
            ex_err(
                "a vector",
                &[],
                &[f32s(&[2], &[0.0]), i32s(&[], &[10])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..WAV
    },
];

fn infer_decoded(ctx: &mut InferCtx<'_>) -> Result<()> {
    let dim = |name: &str| ctx.attrs().int(name).map(|dim| dim.max(UNKNOWN_DIM));
    let dims = [dim("desired_samples")?, dim("desired_channels")?];
    ctx.set(0, PartialShape::new(&dims));
    ctx.set(1, PartialShape::scalar());
    Ok(())
}

fn build_encode(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (audio, rate) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            audio.rank() == 2,
            invalid_argument,
            "audio must be 2-dimensional{}",
            audio.shape()
        );
        ensure!(
            rate.rank() == 0,
            invalid_argument,
            "Input sample_rate should be a scalar tensor, got {} instead.",
            rate.shape()
        );
        let channels = audio.shape().dim(1);
        let contents = encode(audio.slice::<f32>()?, ctx.int(1)?, channels)?;
        ctx.set(0, Tensor::string(contents));
        Ok(())
    })
}

/// A WAV file of these samples, those of one moment beside each other.
pub(crate) fn encode(audio: &[f32], sample_rate: i64, channels: usize) -> Result<Vec<u8>> {
    let rate = u32::try_from(sample_rate).ok().filter(|rate| *rate > 0);
    let Some(rate) = rate else {
        return Err(invalid_argument!(
            "sample_rate must be in (0, 2^32), got: {sample_rate}"
        ));
    };
    let Some(channels) = u16::try_from(channels).ok().filter(|count| *count > 0) else {
        return Err(invalid_argument!(
            "num_channels must be in (0, 2^16), got: {channels}"
        ));
    };
    let Some(data_size) = u32::try_from(audio.len())
        .ok()
        .and_then(|samples| samples.checked_mul(2))
        .filter(|size| *size <= u32::MAX - 44)
    else {
        return Err(invalid_argument!(
            "Provided channels and frames cannot be encoded as a WAV."
        ));
    };
    let frame = channels.wrapping_mul(2);
    let mut out = Vec::with_capacity(44 + data_size as usize);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&(data_size + 36).to_le_bytes());
    out.extend_from_slice(b"WAVEfmt ");
    out.extend_from_slice(&16u32.to_le_bytes());
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&channels.to_le_bytes());
    out.extend_from_slice(&rate.to_le_bytes());
    let per_second = rate.wrapping_mul(2).wrapping_mul(u32::from(channels));
    out.extend_from_slice(&per_second.to_le_bytes());
    out.extend_from_slice(&frame.to_le_bytes());
    out.extend_from_slice(&16u16.to_le_bytes());
    out.extend_from_slice(b"data");
    out.extend_from_slice(&data_size.to_le_bytes());
    for sample in audio {
        // The cast keeps what is too large at the ends.
        let sample = (sample * 32768.0).round() as i16;
        out.extend_from_slice(&sample.to_le_bytes());
    }
    Ok(out)
}

fn build_decode(node: &NodeInfo) -> Result<AnyKernel> {
    let [channels, samples] = ["desired_channels", "desired_samples"].map(|name| {
        let wanted = node.attrs.int(name)?;
        ensure!(
            wanted >= -1,
            invalid_argument,
            "{name} must be >= -1, got {wanted}"
        );
        Ok(usize::try_from(wanted).ok())
    });
    let (channels, samples) = (channels?, samples?);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let contents = ctx.input(0)?;
        ensure!(
            contents.rank() == 0,
            invalid_argument,
            "contents must be scalar, got shape {}",
            contents.shape()
        );
        let contents = contents.to_scalar::<TString>()?;
        let sound = Sound::decode(&contents)?;
        let found = sound.data.len() / sound.frame();
        let shape = Shape::matrix(
            samples.unwrap_or(found),
            channels.unwrap_or(usize::from(sound.channels)),
        )?;
        let wanted = shape.dim(1);
        let mut audio = Tensor::zeros(tensorfleet_tensor::DType::F32, shape)?;
        if wanted > 0 {
            let rows = audio.slice_mut::<f32>()?.chunks_exact_mut(wanted);
            for (row, frame) in rows.zip(sound.data.chunks_exact(sound.frame())) {
                let last = sound.channels as usize - 1;
                for (channel, target) in row.iter_mut().enumerate() {
                    let at = channel.min(last) * 2;
                    let bytes = frame.get(at..).and_then(<[u8]>::first_chunk::<2>);
                    let sample = i16::from_le_bytes(bytes.copied().unwrap_or_default());
                    *target = f32::from(sample) / 32768.0;
                }
            }
        }
        ctx.set(0, audio);
        ctx.set(1, Tensor::scalar(sound.rate as i32));
        Ok(())
    })
}

/// What a WAV file holds.
struct Sound<'a> {
    rate: u32,
    /// At least one.
    channels: u16,
    data: &'a [u8],
}

impl<'a> Sound<'a> {
    /// The bytes of one moment.
    fn frame(&self) -> usize {
        usize::from(self.channels) * 2
    }

    fn decode(contents: &'a [u8]) -> Result<Sound<'a>> {
        let mut rest = contents;
        expect(&mut rest, b"RIFF")?;
        number(&mut rest)?;
        expect(&mut rest, b"WAVE")?;
        // Other chunks may come before the format.
        loop {
            let name = bytes(&mut rest, 4)?;
            match name {
                b"fmt " => break,
                b"JUNK" | b"bext" | b"iXML" | b"qlty" | b"mext" | b"levl" | b"link" | b"axml" => {
                    let size = number(&mut rest)?;
                    bytes(&mut rest, size as usize)?;
                }
                _ => {
                    return Err(invalid_argument!(
                        "Unexpected field {}",
                        String::from_utf8_lossy(name)
                    ));
                }
            }
        }
        let (rate, channels) = format(&mut rest)?;
        let mut data = None;
        while !rest.is_empty() {
            let name = bytes(&mut rest, 4)?;
            let size = number(&mut rest)?;
            ensure!(
                size <= i32::MAX as u32,
                invalid_argument,
                "WAV data chunk '{}' is too large: {size} bytes, but the limit is {}",
                String::from_utf8_lossy(name),
                i32::MAX
            );
            let size = size as usize;
            if name == b"data" {
                ensure!(
                    data.is_none(),
                    invalid_argument,
                    "More than one data chunk found in WAV"
                );
                let frame = usize::from(channels) * 2;
                data = Some(bytes(&mut rest, size / frame * frame)?);
            } else {
                // The last chunk may be cut short.
                rest = rest.get(size..).unwrap_or_default();
            }
        }
        match data {
            Some(data) => Ok(Sound {
                rate,
                channels,
                data,
            }),
            None => Err(invalid_argument!("No data chunk found in WAV")),
        }
    }
}

/// The rate and the number of channels.
fn format(rest: &mut &[u8]) -> Result<(u32, u16)> {
    let size = number(rest)?;
    ensure!(
        matches!(size, 16 | 18),
        invalid_argument,
        "Bad format chunk size for WAV: Expected 16 or 18, but got{size}"
    );
    let code = short(rest)?;
    ensure!(
        code == 1,
        invalid_argument,
        "Bad audio format for WAV: Expected 1 (PCM), but got{code}"
    );
    let channels = short(rest)?;
    ensure!(
        channels >= 1,
        invalid_argument,
        "Bad number of channels for WAV: Expected at least 1, but got {channels}"
    );
    let (rate, per_second) = (number(rest)?, number(rest)?);
    let (per_sample, bits) = (short(rest)?, short(rest)?);
    ensure!(
        bits == 16,
        invalid_argument,
        "Can only read 16-bit WAV files, but received {bits}"
    );
    let expected = u32::from(channels) * 2;
    ensure!(
        u32::from(per_sample) == expected,
        invalid_argument,
        "Bad bytes per sample in WAV header: Expected {expected} but got {per_sample}"
    );
    let expected = u64::from(per_sample) * u64::from(rate);
    ensure!(
        u64::from(per_second) == expected,
        invalid_argument,
        "Bad bytes per second in WAV header: Expected {expected} but got {per_second} (sample_rate={rate}, bytes_per_sample={per_sample})"
    );
    if size == 18 {
        short(rest)?;
    }
    Ok((rate, channels))
}

fn expect(rest: &mut &[u8], text: &[u8]) -> Result<()> {
    let found = bytes(rest, text.len())?;
    ensure!(
        found == text,
        invalid_argument,
        "Header mismatch: Expected {} but found {}",
        String::from_utf8_lossy(text),
        String::from_utf8_lossy(found)
    );
    Ok(())
}

fn bytes<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    take_bytes(rest, len)
        .ok_or_else(|| invalid_argument!("Data too short when trying to read string"))
}

fn number(rest: &mut &[u8]) -> Result<u32> {
    take_u32(rest).ok_or_else(|| invalid_argument!("Data too short when trying to read value"))
}

fn short(rest: &mut &[u8]) -> Result<u16> {
    let bytes = bytes(rest, 2)?.first_chunk::<2>();
    Ok(u16::from_le_bytes(bytes.copied().unwrap_or_default()))
}
