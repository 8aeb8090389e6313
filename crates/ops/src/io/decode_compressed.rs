//! `DecodeCompressed`: strings unpacked.
//!
//! TensorFlow: DecodeCompressed(bytes: string) -> output: string, of the same shape, with attr compression_type: string = "",
//! "ZLIB", "GZIP" or "ZSTD". As there, strings that end early give what they have. Where we differ: ZSTD is refused when it
//! is run.

use std::io::{ErrorKind, Read};

use tensorfleet_checkpoint::packed::Packing;
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, strs};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{
    Code, Result, data_loss, invalid_argument, resource_exhausted, unimplemented,
};
use tensorfleet_tensor::{TString, Tensor};

pub(crate) static OP: OpDef = OpDef {
    name: "DecodeCompressed",
    inputs: &["bytes: string"],
    outputs: &["output: string"],
    attrs: &["compression_type: string = ''"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("bytes are not differentiated"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "as they are",
            &[strs(&[2], &["abc", ""])],
            &[strs(&[2], &["abc", ""])],
        ),
        ex_attrs(
            "empty strings",
            &[("compression_type", "GZIP")],
            &[strs(&[0], &[])],
            &[strs(&[0], &[])],
        ),
        ex_err(
            "not packed",
            &[("compression_type", "ZLIB")],
            &[strs(&[1], &["hello world"])],
            Code::DataLoss,
            "inflate() failed with error",
        ),
        ex_err(
            "unknown",
            &[("compression_type", "SNAPPY")],
            &[strs(&[1], &["a"])],
            Code::InvalidArgument,
            "Only ZLIB, ZSTD, GZIP or NONE are supported compressions",
        ),
    ],
    ..OpDef::BLANK
};

/// No string is longer than TensorFlow reads.
const MOST: u64 = i32::MAX as u64;

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let name = node.attrs.str("compression_type")?;
    let packing = match name {
        "" | "ZLIB" | "GZIP" => Packing::named(name),
        "ZSTD" => {
            return Err(unimplemented!(
                "ZSTD is not built in, only ZLIB and GZIP are"
            ));
        }
        _ => {
            return Err(invalid_argument!(
                "Only ZLIB, ZSTD, GZIP or NONE are supported compressions"
            ));
        }
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        if packing == Packing::None {
            let bytes = ctx.take(0)?;
            ctx.set(0, bytes);
            return Ok(());
        }
        let input = ctx.input(0)?;
        let strings = input.slice::<TString>()?.iter();
        let unpacked = strings.map(|bytes| unpack(bytes, packing));
        let unpacked = unpacked.collect::<Result<Vec<TString>>>()?;
        let output = Tensor::from_vec(input.shape().clone(), unpacked)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn unpack(bytes: &TString, packing: Packing) -> Result<TString> {
    let mut out = Vec::new();
    let read = packing
        .unpacked(&bytes[..])
        .take(MOST + 1)
        .read_to_end(&mut out);
    match read {
        Ok(read) if read as u64 > MOST => Err(resource_exhausted!(
            "a string of {} bytes unpacks to more than {MOST}",
            bytes.len()
        )),
        Ok(_) => Ok(out.into()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(out.into()),
        Err(error) => Err(data_loss!("inflate() failed with error -3: {error}")),
    }
}
