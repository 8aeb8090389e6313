//! `Fingerprint`: a number of eight bytes for each row of a tensor.
//!
//! TensorFlow: Fingerprint(data: T, method: string) -> fingerprint: uint8, by `farmhash64`, the only method there is. A row
//! of several strings has the fingerprint of the fingerprints of its strings.

use tensorfleet_graph::example::{bools, ex_err, ex_ref, f32s, i64s, strs};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, internal};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor, UNKNOWN_DIM};

use crate::room::room;
use crate::string::farm_hash::fingerprint64;

pub(crate) static OP: OpDef = OpDef {
    name: "Fingerprint",
    inputs: &["data: T", "method: string"],
    outputs: &["fingerprint: uint8"],
    attrs: &["T: type"],
    infer,
    gradient: Gradient::Stop("fingerprints are bits"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_ref(
            "numbers",
            &[],
            &[
                f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                strs(&[], &["farmhash64"]),
            ],
        ),
        ex_ref(
            "bools",
            &[],
            &[bools(&[2], &[true, false]), strs(&[], &["farmhash64"])],
        ),
        ex_ref(
            "strings",
            &[],
            &[strs(&[2], &["a", ""]), strs(&[], &["farmhash64"])],
        ),
        ex_ref(
            "several strings in a row",
            &[],
            &[
                strs(&[2, 2], &["a", "b", "", "the quick brown fox"]),
                strs(&[], &["farmhash64"]),
            ],
        ),
        ex_ref(
            "no rows",
            &[],
            &[i64s(&[0, 2], &[]), strs(&[], &["farmhash64"])],
        ),
        ex_err(
            "scalar",
            &[],
            &[i64s(&[], &[1]), strs(&[], &["farmhash64"])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "another method",
            &[],
            &[i64s(&[1], &[1]), strs(&[], &["md5"])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "two methods",
            &[],
            &[i64s(&[1], &[1]), strs(&[2], &["farmhash64"])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let rows = ctx.input(0).dim(0).unwrap_or(UNKNOWN_DIM);
    ctx.set(0, PartialShape::new(&[rows, 8]));
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    ensure!(
        dtype == DType::String || dtype.is_plain(),
        invalid_argument,
        "Data type not supported: {dtype}"
    );
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (data, method) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            method.rank() == 0,
            invalid_argument,
            "`method` should be a scalar string: {}",
            method.shape()
        );
        let method = method.to_scalar::<TString>()?;
        ensure!(
            *method == *b"farmhash64",
            invalid_argument,
            "Unsupported fingerprint method: {}",
            String::from_utf8_lossy(&method)
        );
        ensure!(
            data.rank() > 0,
            invalid_argument,
            "`data` should have at least one dimension: {}",
            data.shape()
        );
        let rows = data.shape().dim(0);
        let row_len = data.elements().checked_div(rows).unwrap_or(0);
        let mut out = room(rows.saturating_mul(8))?;
        match data.dtype() {
            DType::String => {
                let texts = data.slice::<TString>()?;
                for row in 0..rows {
                    let row = &texts[row * row_len..(row + 1) * row_len];
                    out.extend(of_texts(row).to_le_bytes());
                }
            }
            dtype => {
                let bytes = data
                    .bytes()
                    .ok_or_else(|| internal!("elements of {dtype} are not bytes"))?;
                let size = row_len * dtype.size().unwrap_or(1);
                for row in 0..rows {
                    let row = &bytes[row * size..(row + 1) * size];
                    out.extend(fingerprint64(row).to_le_bytes());
                }
            }
        }
        ctx.set(0, Tensor::from_vec(Shape::matrix(rows, 8)?, out)?);
        Ok(())
    })
}

fn of_texts(texts: &[TString]) -> u64 {
    match texts {
        [text] => fingerprint64(text),
        texts => {
            let prints = texts.iter().map(|text| fingerprint64(text).to_le_bytes());
            fingerprint64(&prints.collect::<Vec<_>>().concat())
        }
    }
}
