//! `EncodeBase64`, `DecodeBase64`: bytes as text in the alphabet that is safe in URLs.
//!
//! TensorFlow: (input: string) -> output: string; encoding pads only on request (attr pad), decoding takes padded text or not.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::TString;

use super::{map, map_strings};

const BASE64: OpDef = OpDef {
    inputs: &["input: string"],
    outputs: &["output: string"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("text is not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const UNPADDED: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DecodeBase64",
        kernels: &[cpu(&[], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| map(ctx, |text| decoded(text)))
        })],
        examples: &[
            ex(
                "all lengths",
                &[strs(&[2, 3], &["", "YQ", "YWI", "YWJj", "YR", "YWI="])],
                &[strs(&[2, 3], &["", "a", "ab", "abc", "a", "ab"])],
            ),
            ex(
                "padded",
                &[strs(&[], &["YWJjYQ=="])],
                &[strs(&[], &["abca"])],
            ),
            ex(
                "signs of this alphabet",
                &[strs(&[1], &["w78_Pn4"])],
                &[strs(&[1], &["ÿ?>~"])],
            ),
            ex_err(
                "one too many",
                &[],
                &[strs(&[1], &["YWJjY"])],
                Code::InvalidArgument,
                "Base64 string length cannot be 1 modulo 4.",
            ),
            ex_err(
                "signs of another alphabet",
                &[],
                &[strs(&[1], &["+/+/"])],
                Code::InvalidArgument,
                "Invalid character found in base64.",
            ),
            ex_err(
                "too much padding",
                &[],
                &[strs(&[1], &["YQ==="])],
                Code::InvalidArgument,
                "Invalid character found in base64.",
            ),
            ex_err(
                "too little padding",
                &[],
                &[strs(&[1], &["YQ="])],
                Code::InvalidArgument,
                "Invalid character found in base64.",
            ),
        ],
        ..BASE64
    },
    OpDef {
        name: "EncodeBase64",
        attrs: &["pad: bool = false"],
        kernels: &[cpu(&[], build_encode)],
        examples: &[
            ex(
                "all lengths",
                &[strs(&[4], &["", "a", "ab", "ÿ?>~"])],
                &[strs(&[4], &["", "YQ", "YWI", "w78_Pn4"])],
            ),
            ex_attrs(
                "padded",
                &[("pad", "true")],
                &[strs(&[2, 2], &["", "a", "ab", "abc"])],
                &[strs(&[2, 2], &["", "YQ==", "YWI=", "YWJj"])],
            ),
        ],
        ..BASE64
    },
];

fn build_encode(node: &NodeInfo) -> Result<AnyKernel> {
    let pad = node.attrs.bool("pad")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map_strings(ctx, |bytes, out, text| {
            encode(bytes, pad, text);
            out.assign(text);
            Ok(())
        })
    })
}

/// Appends bytes in groups of six bits, the last one filled up.
fn encode(bytes: &[u8], pad: bool, text: &mut Vec<u8>) {
    let sign = |bits: u32| SIGNS[bits as usize & 63];
    let group = |[a, b, c]: [u8; 3]| {
        let bits = u32::from_be_bytes([0, a, b, c]);
        [
            sign(bits >> 18),
            sign(bits >> 12),
            sign(bits >> 6),
            sign(bits),
        ]
    };
    let (groups, rest) = bytes.as_chunks::<3>();
    text.reserve(4 * groups.len() + 4);
    for bytes in groups {
        text.extend_from_slice(&group(*bytes));
    }
    let (last, count) = match *rest {
        [a] => (group([a, 0, 0]), 2),
        [a, b] => (group([a, b, 0]), 3),
        _ => return,
    };
    text.extend_from_slice(&last[..count]);
    if pad {
        text.extend_from_slice(&b"=="[..4 - count]);
    }
}

const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn decoded(text: &[u8]) -> Result<TString> {
    // Only a whole last group can have padding.
    let bare = match text.len() % 4 {
        0 => text
            .strip_suffix(b"==")
            .or(text.strip_suffix(b"="))
            .unwrap_or(text),
        _ => text,
    };
    if let Ok(bytes) = UNPADDED.decode(bare) {
        return Ok(bytes.into());
    }
    let (groups, rest) = bare.split_at(bare.len() / 4 * 4);
    match rest.len() == 1 && UNPADDED.decode(groups).is_ok() {
        true => Err(invalid_argument!(
            "Base64 string length cannot be 1 modulo 4."
        )),
        false => Err(invalid_argument!("Invalid character found in base64.")),
    }
}
