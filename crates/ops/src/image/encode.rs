//! `EncodePng`, `EncodeJpeg`, `EncodeJpegVariableQuality`: pixels to files.
//!
//! TensorFlow: EncodePng(image: T) -> contents: string, with compression, for each image of a batch; EncodeJpeg(image: uint8) ->
//! contents: string, with format, quality, progressive, optimize_size, chroma_downsampling, density_unit, x_density, y_density,
//! xmp_metadata. The files hold the same pictures as TensorFlow's, but not the same bytes.

use tensorfleet_graph::example::{Lit, ex_err, i32s, of, script};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor};

use super::jpeg::{self, Writing};
use super::png_file;
use crate::room::room;

const MATRIX: Lit = of(DType::U8, &[2, 2], &[1.0]);

const ENCODE: OpDef = OpDef {
    outputs: &["contents: string"],
    infer: infer::scalar,
    gradient: Gradient::None("TensorFlow has none"),
    cost: Cost::Expensive,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "EncodeJpeg",
        inputs: &["image: uint8"],
        attrs: &[
            "format: {'', 'grayscale', 'rgb'} = ''",
            "quality: int = 95",
            "progressive: bool = false",
            "optimize_size: bool = false",
            "chroma_downsampling: bool = true",
            "density_unit: {'in', 'cm'} = 'in'",
            "x_density: int = 300",
            "y_density: int = 300",
            "xmp_metadata: string = ''",
        ],
        kernels: &[cpu(&[], build_jpeg)],
        examples: &[
            ex_err("no image", &[], &[MATRIX], Code::InvalidArgument, ""),
            ex_err(
                "channels",
                &[("format", "'rgb'")],
                &[of(DType::U8, &[2, 2, 1], &[1.0])],
                Code::InvalidArgument,
                "format rgb expects 3 channels",
            ),
            ex_err(
                "quality",
                &[("quality", "101")],
                &[of(DType::U8, &[2, 2, 1], &[1.0])],
                Code::InvalidArgument,
                "quality must be in [0,100], got 101",
            ),
        ],
        scripts: &[script(
            "there and back",
            "c = uint8[8,8,1]{100}\ne = EncodeJpeg(c) {progressive=true, density_unit='cm'}\nd = DecodeJpeg(e)",
            &["fetch d => uint8[8,8,1]{100}"],
        )],
        ..ENCODE
    },
    OpDef {
        name: "EncodeJpegVariableQuality",
        inputs: &["images: uint8", "quality: int32"],
        kernels: &[cpu(&[], build_variable)],
        examples: &[ex_err(
            "no image",
            &[],
            &[MATRIX, i32s(&[], &[90])],
            Code::InvalidArgument,
            "",
        )],
        scripts: &[script(
            "there and back",
            "c = uint8[8,8,1]{100}\nq = int32[]{90}\ne = EncodeJpegVariableQuality(c, q)\ns = ExtractJpegShape(e)",
            &["fetch s => int32[3]{8, 8, 1}"],
        )],
        ..ENCODE
    },
    OpDef {
        name: "EncodePng",
        inputs: &["image: T"],
        attrs: &["compression: int = -1", "T: {uint8, uint16} = DT_UINT8"],
        infer: batch,
        kernels: &[cpu(&[], build_png)],
        examples: &[
            ex_err("no image", &[], &[MATRIX], Code::InvalidArgument, ""),
            ex_err(
                "compression",
                &[("compression", "10")],
                &[of(DType::U8, &[2, 2, 1], &[1.0])],
                Code::InvalidArgument,
                "compression should be in [-1,9], got 10",
            ),
            ex_err(
                "channels",
                &[],
                &[of(DType::U8, &[2, 2, 5], &[1.0])],
                Code::InvalidArgument,
                "image must have 1, 2, 3, or 4 channels, got 5",
            ),
        ],
        scripts: &[script(
            "a batch, one of it read again",
            "c = uint8[2,1,2,1]{1, 2, 3, 4}\ne = EncodePng(c) {compression=9}\ni = int32[]{1}\na = int32[]{0}\nf = GatherV2(e, i, a)\nd = DecodePng(f)",
            &["fetch d => uint8[1,2,1]{3, 4}"],
        )],
        ..ENCODE
    },
];

fn batch(ctx: &mut InferCtx<'_>) -> Result<()> {
    if let Some([batch @ .., _, _, _]) = ctx.input(0).dims() {
        ctx.set(0, PartialShape::new(batch));
    }
    Ok(())
}

fn build_png(node: &NodeInfo) -> Result<AnyKernel> {
    let compression = node.attrs.int("compression")?;
    ensure!(
        (-1..=9).contains(&compression),
        invalid_argument,
        "compression should be in [-1,9], got {compression}"
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let image = ctx.input(0)?;
        let [batch @ .., height, width, channels] = image.shape().dims() else {
            return Err(invalid_argument!(
                "images must be at least rank 3{}",
                image.shape()
            ));
        };
        ensure!(
            (1..=4).contains(channels),
            invalid_argument,
            "image must have 1, 2, 3, or 4 channels, got {channels}"
        );
        ensure!(
            image.elements() < i32::MAX as usize,
            invalid_argument,
            "image cannot have >= int32 max elements"
        );
        let (sides, channels) = ([*height as u32, *width as u32], *channels as usize);
        let wide = image.dtype() == DType::U16;
        let samples: Vec<u8> = if wide {
            let words = image.slice::<u16>()?.iter();
            words.flat_map(|word| word.to_be_bytes()).collect()
        } else {
            image.slice::<u8>()?.to_vec()
        };
        let shape = Shape::new(batch)?;
        let size = samples.len() / shape.elements().max(1);
        let mut files = room(shape.elements())?;
        for at in 0..shape.elements() {
            ctx.poll();
            let samples = &samples[at * size..(at + 1) * size];
            let file = png_file::encode(sides, channels, wide, compression, samples)?;
            files.push(TString::from(file));
        }
        ctx.set(0, Tensor::from_vec(shape, files)?);
        Ok(())
    })
}

/// Height, width and channels of an image of one or three.
fn size(image: &Tensor) -> Result<[usize; 3]> {
    let shape = image.shape();
    ensure!(
        shape.rank() == 3,
        invalid_argument,
        "image must be 3-dimensional{shape}"
    );
    Ok([shape.dim(0), shape.dim(1), shape.dim(2)])
}

fn check_channels(image: &Tensor, channels: usize) -> Result<()> {
    ensure!(
        channels == 1 || channels == 3,
        invalid_argument,
        "image must have 1 or 3 channels, got {}",
        image.shape()
    );
    Ok(())
}

fn check_quality(quality: i64) -> Result<()> {
    ensure!(
        (0..=100).contains(&quality),
        invalid_argument,
        "quality must be in [0,100], got {quality}"
    );
    Ok(())
}

fn build_jpeg(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (quality, format) = (attrs.int("quality")?, attrs.str("format")?.to_owned());
    check_quality(quality)?;
    let density =
        |name: &str| -> Result<u16> { Ok(attrs.int(name)?.clamp(0, i64::from(u16::MAX)) as u16) };
    let inch = attrs.str("density_unit")? == "in";
    let density = Some((inch, [density("x_density")?, density("y_density")?]));
    let (progressive, optimize_size) = (attrs.bool("progressive")?, attrs.bool("optimize_size")?);
    let chroma_downsampling = attrs.bool("chroma_downsampling")?;
    let xmp = attrs.bytes("xmp_metadata")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let image = ctx.input(0)?;
        let size = size(image)?;
        let wanted = match format.as_str() {
            "grayscale" => 1,
            "rgb" => 3,
            _ => {
                check_channels(image, size[2])?;
                size[2]
            }
        };
        ensure!(
            wanted == size[2],
            invalid_argument,
            "format {format} expects {wanted} channels, got {}",
            image.shape()
        );
        let writing = Writing {
            quality,
            progressive,
            optimize_size,
            chroma_downsampling,
            density,
            xmp: &xmp,
        };
        let file = jpeg::encode(image.slice::<u8>()?, size, &writing)?;
        ctx.set(0, Tensor::string(file));
        Ok(())
    })
}

fn build_variable(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let image = ctx.input(0)?;
        let size = size(image)?;
        let quality = ctx.int(1)?;
        check_quality(quality)?;
        check_channels(image, size[2])?;
        let writing = Writing {
            quality,
            progressive: false,
            optimize_size: false,
            chroma_downsampling: true,
            density: None,
            xmp: &[],
        };
        let file = jpeg::encode(image.slice::<u8>()?, size, &writing)?;
        ctx.set(0, Tensor::string(file));
        Ok(())
    })
}
