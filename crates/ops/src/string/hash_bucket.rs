//! `StringToHashBucketFast`: strings to numbers below `num_buckets`.
//!
//! TensorFlow: (input: string) -> output: int64, by FarmHash.

use tensorfleet_graph::example::{ex_attrs, i64s, script, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;

use super::farm_hash::fingerprint64;
use super::map;

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "StringToHashBucketFast",
    inputs: &["input: string"],
    outputs: &["output: int64"],
    attrs: &["num_buckets: int >= 1"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("buckets are integers"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[ex_attrs("one bucket", &[("num_buckets", "1")], &[strs(&[2], &["a", ""])], &[i64s(&[2], &[0, 0])])],
    scripts: &[script(
        "all lengths",
        "s = string[9]{'', a, abc, abcd, abcdefgh, abcdefghijklmnopq, 'the quick brown fox jumps over the lazy dog', 'the quick brown fox jumps over the lazy dog and then again the other way round', 'the quick brown fox jumps over the lazy dog and then again the other way round, the quick brown fox jumps over the lazy dog and then once more'}
         h = StringToHashBucketFast(s) {num_buckets=1000000007}",
        &["fetch h => ?"],
    )],
    ..OpDef::BLANK
}];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let buckets = node.attrs.int("num_buckets")?.max(1) as u64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        map(ctx, |value| Ok((fingerprint64(value) % buckets) as i64))
    })
}
