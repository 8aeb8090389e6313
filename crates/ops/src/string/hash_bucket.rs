//! `StringToHashBucketFast`, `StringToHashBucketStrong`, `StringToHashBucket`, `_TensorToHashBucketFast`: strings, or integers as
//! decimal text, to numbers below `num_buckets`.
//!
//! TensorFlow: (input: string) -> output: int64, by FarmHash, by SipHash with a key of two numbers, and in old graphs by
//! MurmurHash. Graph optimisation makes the last op of AsString and the first.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, i64s, script, strs, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::farm_hash::fingerprint64;
use super::hashes::{murmur, sip_hash};
use super::map;
use crate::by_integer;
use crate::types::SIGNED;

const BUCKETS: OpDef = OpDef {
    outputs: &["output: int64"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("buckets are integers"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const TEXTS: Lit = strs(&[2, 2], &["", "a", "abcdefgh", "the quick brown fox"]);

pub(crate) static OPS: [OpDef; 4] = [OpDef {
    name: "StringToHashBucketFast",
    inputs: &["input: string"],
    attrs: &["num_buckets: int >= 1"],
    kernels: &[cpu(&[], |node| build(node, fingerprint64))],
    examples: &[ex_attrs("one bucket", &[("num_buckets", "1")], &[strs(&[2], &["a", ""])], &[i64s(&[2], &[0, 0])])],
    scripts: &[script(
        "all lengths",
        "s = string[9]{'', a, abc, abcd, abcdefgh, abcdefghijklmnopq, 'the quick brown fox jumps over the lazy dog', 'the quick brown fox jumps over the lazy dog and then again the other way round', 'the quick brown fox jumps over the lazy dog and then again the other way round, the quick brown fox jumps over the lazy dog and then once more'}
         h = StringToHashBucketFast(s) {num_buckets=1000000007}",
        &["fetch h => ?"],
    )],
    ..BUCKETS
},
OpDef {
    name: "StringToHashBucket",
    inputs: &["string_tensor: string"],
    attrs: &["num_buckets: int >= 1"],
    kernels: &[cpu(&[], |node| build(node, murmur))],
    examples: &[
        ex_attrs("one bucket", &[("num_buckets", "1")], &[strs(&[2], &["a", ""])], &[i64s(&[2], &[0, 0])]),
        ex_ref("several lengths", &[("num_buckets", "1000000007")], &[TEXTS]),
    ],
    ..BUCKETS
},
OpDef {
    name: "StringToHashBucketStrong",
    inputs: &["input: string"],
    attrs: &["num_buckets: int >= 1", "key: list(int)"],
    kernels: &[cpu(&[], build_strong)],
    examples: &[
        ex_attrs("one bucket", &[("num_buckets", "1"), ("key", "[1, 2]")], &[strs(&[2], &["a", ""])], &[i64s(&[2], &[0, 0])]),
        ex_ref("several lengths", &[("num_buckets", "1000000007"), ("key", "[-5, 98765]")], &[TEXTS]),
        ex_err("half a key", &[("num_buckets", "1"), ("key", "[1]")], &[strs(&[1], &["a"])], Code::InvalidArgument, "Key must have 2 elements"),
    ],
    ..BUCKETS
},
OpDef {
    name: "_TensorToHashBucketFast",
    inputs: &["input: T"],
    attrs: &[
        "T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
        "num_buckets: int >= 1",
    ],
    kernels: &[cpu(&[("T", SIGNED)], build_of_integers)],
    examples: &[
        ex_attrs("one bucket", &[("num_buckets", "1")], &[x(&[2], &[3.0, 0.0])], &[i64s(&[2], &[0, 0])]),
        ex_ref("numbers", &[("num_buckets", "1000")], &[x(&[2, 2], &[0.0, 1.0, 7.0, 113.0])]),
        ex_ref("below zero", &[("num_buckets", "1000000007")], &[i64s(&[3], &[-1, i64::MIN, i64::MAX])]),
    ],
    ..BUCKETS
}];

fn build(node: &NodeInfo, hash: fn(&[u8]) -> u64) -> Result<AnyKernel> {
    let buckets = node.attrs.int("num_buckets")?.max(1) as u64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| Ok((hash(value) % buckets) as i64))
    })
}

fn build_strong(node: &NodeInfo) -> Result<AnyKernel> {
    let buckets = node.attrs.int("num_buckets")?.max(1) as u64;
    let [low, high] = node.attrs.ints("key")? else {
        return Err(invalid_argument!("Key must have 2 elements"));
    };
    let key = [*low as u64, *high as u64];
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| Ok((sip_hash(key, value) % buckets) as i64))
    })
}

fn build_of_integers(node: &NodeInfo) -> Result<AnyKernel> {
    let buckets = node.attrs.int("num_buckets")?.max(1) as u64;
    let dtype = node.attrs.dtype("T")?;
    by_integer!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let values = input.slice::<T>()?.iter();
        let values = values.map(|value| (fingerprint64(value.to_string().as_bytes()) % buckets) as i64);
        let out = Tensor::from_vec(input.shape().clone(), values.collect::<Vec<i64>>())?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(internal!("no buckets of {dtype}")))
}
