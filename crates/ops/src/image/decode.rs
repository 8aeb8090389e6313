//! `DecodePng`, `DecodeJpeg`, `DecodeAndCropJpeg`, `DecodeGif`, `DecodeBmp`, `DecodeImage`, `ExtractJpegShape`: files to pixels.
//!
//! TensorFlow: DecodePng(contents: string) -> image: dtype and its like; all of them look at the file and read what it is, as far
//! as the op can return it. DecodeImage returns uint8, uint16 or float, and all frames of a GIF if expand_animations; channels of
//! 0 are as many as the file has. WebP and JPEG XL are not read here.

use tensorfleet_graph::example::{Example, Script, ex_attrs, ex_err, i32s, of, script, strs};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, PartialShape, TString, Tensor, UNKNOWN_DIM};

use super::jpeg::{self, Reading};
use super::picture::Picture;
use super::{bmp, gif_file, png_file};
use crate::types::INDEX;

const JPEG_ATTRS: &[&str] = &[
    "channels: int = 0",
    "ratio: int = 1",
    "fancy_upscaling: bool = true",
    "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1.0",
    "dct_method: string = ''",
];

const DECODE: OpDef = OpDef {
    inputs: &["contents: string"],
    outputs: &["image: uint8"],
    attrs: &["channels: int = 0"],
    infer: decoded,
    gradient: Gradient::None("TensorFlow has none"),
    cost: Cost::Expensive,
    exactness: Exactness::Bits,
    examples: NO_FILES,
    ..OpDef::BLANK
};

const NO_FILES: &[Example] = &[
    ex_err(
        "empty",
        &[],
        &[strs(&[], &[""])],
        Code::InvalidArgument,
        "Input is empty.",
    ),
    ex_err(
        "no image",
        &[],
        &[strs(&[], &["a text"])],
        Code::InvalidArgument,
        "Unknown image file format.",
    ),
    ex_err(
        "broken off",
        &[],
        &[strs(&[], &["GIF87a"])],
        Code::InvalidArgument,
        "",
    ),
];

/// Two pixels one above the other, blue, green and red.
const BMP: &str = "BM\0\0\0\0\0\0\0\0\x20\0\0\0\x0c\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\x18\0\0\0\x01\x02\x03\0\x04\x05\x06\0";

const PNG_SCRIPTS: &[Script] = &[
    script(
        "there and back",
        "c = uint8[1,2,3]{1, 2, 3, 250, 251, 0}\ne = EncodePng(c)\nd = DecodePng(e)\ng = DecodePng(e) {channels=1}\na = DecodePng(e) {channels=4, dtype=uint16}",
        &[
            "fetch d => uint8[1,2,3]{1, 2, 3, 250, 251, 0}",
            "fetch g, a => ?",
        ],
    ),
    script(
        "wide",
        "c = uint16[1,2,2]{1, 258, 65535, 4}\ne = EncodePng(c)\nd = DecodePng(e) {dtype=uint16}\nn = DecodePng(e)",
        &["fetch d => uint16[1,2,2]{1, 258, 65535, 4}", "fetch n => ?"],
    ),
];

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "DecodeAndCropJpeg",
        inputs: &["contents: string", "crop_window: int32"],
        attrs: JPEG_ATTRS,
        kernels: &[cpu(&[], build)],
        examples: &[ex_err(
            "no image",
            &[],
            &[strs(&[], &["a text"]), i32s(&[4], &[0, 0, 1, 1])],
            Code::InvalidArgument,
            "Unknown image file format.",
        )],
        ..DECODE
    },
    OpDef {
        name: "DecodeBmp",
        kernels: &[cpu(&[], build)],
        examples: &[
            ex_attrs(
                "two pixels",
                &[],
                &[strs(&[], &[BMP])],
                &[of(DType::U8, &[2, 1, 3], &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0])],
            ),
            ex_attrs(
                "opaque",
                &[("channels", "4")],
                &[strs(&[], &[BMP])],
                &[of(
                    DType::U8,
                    &[2, 1, 4],
                    &[6.0, 5.0, 4.0, 255.0, 3.0, 2.0, 1.0, 255.0],
                )],
            ),
            ex_err(
                "too short",
                &[],
                &[strs(&[], &["BM\0\0"])],
                Code::InvalidArgument,
                "Incomplete bmp content, requires at least 32 bytes",
            ),
            ex_err(
                "one channel",
                &[("channels", "1")],
                &[strs(&[], &[BMP])],
                Code::InvalidArgument,
                "`channels` must be 0, 3 or 4 for BMP, but got 1",
            ),
            ex_err(
                "two channels",
                &[("channels", "2")],
                &[strs(&[], &[BMP])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..DECODE
    },
    OpDef {
        name: "DecodeGif",
        attrs: &[],
        kernels: &[cpu(&[], build)],
        scripts: &[script(
            "one frame of another format",
            "c = uint8[1,1,3]{1, 2, 3}\ne = EncodePng(c)\nd = DecodeGif(e)",
            &["fetch d => uint8[1,1,1,3]{1, 2, 3}"],
        )],
        ..DECODE
    },
    OpDef {
        name: "DecodeImage",
        outputs: &["image: dtype"],
        attrs: &[
            "channels: int = 0",
            "dtype: {uint8, uint16, float} = DT_UINT8",
            "expand_animations: bool = true",
        ],
        kernels: &[cpu(&[], build)],
        scripts: &[script(
            "as floats",
            "c = uint8[1,1,3]{0, 51, 255}\ne = EncodePng(c)\nd = DecodeImage(e) {dtype=float}",
            &["fetch d => ?"],
        )],
        ..DECODE
    },
    OpDef {
        name: "DecodeJpeg",
        attrs: JPEG_ATTRS,
        kernels: &[cpu(&[], build)],
        exactness: Exactness::Shape,
        scripts: &[script(
            "one grey",
            "c = uint8[8,8,1]{100}\ne = EncodeJpeg(c)\nd = DecodeJpeg(e)\ns = ExtractJpegShape(e)",
            &[
                "fetch d => uint8[8,8,1]{100}",
                "fetch s => int32[3]{8, 8, 1}",
            ],
        )],
        ..DECODE
    },
    OpDef {
        name: "DecodePng",
        outputs: &["image: dtype"],
        attrs: &["channels: int = 0", "dtype: {uint8, uint16} = DT_UINT8"],
        kernels: &[cpu(&[], build)],
        scripts: PNG_SCRIPTS,
        ..DECODE
    },
    OpDef {
        name: "ExtractJpegShape",
        outputs: &["image_shape: output_type"],
        attrs: &["output_type: {int32, int64} = DT_INT32"],
        infer: |ctx| {
            ctx.set(0, PartialShape::new(&[3]));
            Ok(())
        },
        kernels: &[cpu(&[("output_type", INDEX)], build_shape)],
        examples: &[ex_err(
            "no image",
            &[],
            &[strs(&[], &["a text"])],
            Code::InvalidArgument,
            "Invalid JPEG data, size 6",
        )],
        ..DECODE
    },
];

fn decoded(ctx: &mut InferCtx<'_>) -> Result<()> {
    let op_has_frames = ctx.attrs().get("channels").is_none();
    if op_has_frames {
        let shape = [UNKNOWN_DIM, UNKNOWN_DIM, UNKNOWN_DIM, 3];
        ctx.set(0, PartialShape::new(&shape));
    } else if ctx.attrs().get("expand_animations").is_none() {
        let channels = ctx.attrs().int("channels")?;
        let channels = if channels > 0 { channels } else { UNKNOWN_DIM };
        ctx.set(0, PartialShape::new(&[UNKNOWN_DIM, UNKNOWN_DIM, channels]));
    }
    Ok(())
}

/// What a file is, by its first bytes.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Png,
    Jpeg,
    Gif,
    Bmp,
}

fn format(file: &[u8]) -> Result<Format> {
    Ok(match file {
        [0xff, 0xd8, 0xff, ..] => Format::Jpeg,
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Format::Png,
        [b'G', b'I', b'F', b'8', ..] => Format::Gif,
        [b'B', b'M', ..] => Format::Bmp,
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            _,
            ..,
        ] => {
            return Err(unimplemented!("WebP images are not decoded"));
        }
        _ => {
            return Err(invalid_argument!(
                "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."
            ));
        }
    })
}

/// A node's attributes.
#[derive(Clone)]
struct Decoding {
    op: String,
    channels: usize,
    dtype: DType,
    expand_animations: bool,
    reading: Reading,
}

impl Decoding {
    fn new(node: &NodeInfo) -> Result<Decoding> {
        let attrs = &node.attrs;
        let channels = match attrs.get("channels") {
            Some(_) => attrs.int("channels")?,
            None => 3,
        };
        ensure!(
            [0, 1, 3, 4].contains(&channels),
            invalid_argument,
            "`channels` must be 0, 1, 3 or 4 but got {channels}"
        );
        let mut reading = Reading {
            channels: channels as usize,
            ratio: 1,
            is_fast: true,
            fancy: true,
            recover: false,
            crop: None,
        };
        if attrs.get("ratio").is_some() {
            let ratio = attrs.int("ratio")?;
            ensure!(
                [1, 2, 4, 8].contains(&ratio),
                invalid_argument,
                "ratio must be 1, 2, 4, or 8, got {ratio}"
            );
            ensure!(
                ["", "INTEGER_FAST", "INTEGER_ACCURATE"].contains(&attrs.str("dct_method")?),
                invalid_argument,
                "dct_method must be one of {{'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}}"
            );
            reading.ratio = ratio as usize;
            reading.is_fast = attrs.str("dct_method")? != "INTEGER_ACCURATE";
            reading.fancy = attrs.bool("fancy_upscaling")?;
            reading.recover = attrs.bool("try_recover_truncated")?;
        }
        Ok(Decoding {
            op: node.op.clone(),
            channels: channels as usize,
            dtype: match attrs.get("dtype") {
                Some(_) => attrs.dtype("dtype")?,
                None => DType::U8,
            },
            expand_animations: attrs.get("expand_animations").is_none()
                || attrs.bool("expand_animations")?,
            reading,
        })
    }

    /// Fails if the op does not read such files.
    fn check(&self, format: Format) -> Result<()> {
        let (name, function) = match format {
            Format::Png => ("PNG", "decode_png"),
            Format::Jpeg => ("JPEG", "decode_jpeg"),
            Format::Gif => ("GIF", "decode_gif"),
            Format::Bmp => ("BMP", "decode_bmp"),
        };
        match (self.op.as_str(), format) {
            ("DecodeAndCropJpeg", Format::Png | Format::Gif | Format::Bmp) => {
                Err(invalid_argument!(
                    "DecodeAndCropJpeg operation can run on JPEG only, but detected {name}."
                ))
            }
            ("DecodeBmp" | "DecodeImage", Format::Bmp) => Ok(()),
            (op, Format::Bmp) => Err(invalid_argument!(
                "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: {op}"
            )),
            ("DecodeBmp", _) => Err(invalid_argument!(
                "Trying to decode {name} format using DecodeBmp op. Use `{function}` or `decode_image` instead."
            )),
            _ => Ok(()),
        }
    }

    fn read(&self, file: &[u8], format: Format, crop: Option<[i64; 4]>) -> Result<Picture> {
        match format {
            Format::Png => png_file::decode(file, self.channels, self.dtype != DType::U8),
            Format::Jpeg => jpeg::decode(
                file,
                Reading {
                    crop,
                    ..self.reading
                },
            ),
            Format::Bmp => bmp::decode(file, self.channels),
            Format::Gif => {
                ensure!(
                    self.channels == 0 || self.channels == 3,
                    invalid_argument,
                    "channels must be 0 or 3 for GIF, got {}",
                    self.channels
                );
                let frames = gif_file::decode(file, !self.expand_animations)?;
                let count = frames.frames.unwrap_or(1);
                let single = ["DecodePng", "DecodeJpeg"].contains(&self.op.as_str());
                ensure!(
                    !single || count == 1,
                    invalid_argument,
                    "Got {count} frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image"
                );
                Ok(frames)
            }
        }
    }
}

fn file<'a>(ctx: &'a KernelCtx<'_>) -> Result<&'a TString> {
    let contents = ctx.input(0)?;
    match (contents.rank(), contents.slice::<TString>()?) {
        (0, [file]) => Ok(file),
        _ => Err(invalid_argument!(
            "`contents` must be scalar but got shape{}",
            contents.shape()
        )),
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let decoding = Decoding::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let file = file(ctx)?;
        ensure!(!file.is_empty(), invalid_argument, "Input is empty.");
        let format = format(file)?;
        decoding.check(format)?;
        let crop = match ctx.num_inputs() {
            1 => None,
            _ => {
                let window = ctx.ints(1)?;
                let Ok(window) = <[i64; 4]>::try_from(window.as_slice()) else {
                    return Err(invalid_argument!(
                        "crop_size must have four elements {}",
                        ctx.input(1)?.shape()
                    ));
                };
                Some(window)
            }
        };
        let picture = decoding.read(file, format, crop)?;
        let is_animation = format == Format::Gif && decoding.op == "DecodeImage";
        let with_frames = decoding.op == "DecodeGif" || is_animation && decoding.expand_animations;
        let image = picture.into_tensor(decoding.dtype, with_frames)?;
        ctx.set(0, image);
        Ok(())
    })
}

fn build_shape(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("output_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let file = file(ctx)?;
        let size = jpeg::size(file)
            .map_err(|_| invalid_argument!("Invalid JPEG data, size {}", file.len()))?;
        ctx.set(
            0,
            match dtype {
                DType::I32 => Tensor::vector(&size.map(|size| size as i32)),
                _ => Tensor::vector(&size.map(|size| size as i64)),
            },
        );
        Ok(())
    })
}
