//! `RandomShuffle`, `StatelessShuffle`: the rows of a tensor in random order.
//!
//! TensorFlow: RandomShuffle(value: T) -> output: T, with seed, seed2; StatelessShuffle(value: T, key: uint64, counter: uint64,
//! alg: int32) -> output: T. Scalars and single rows stay as they are.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{Philox, shuffle_order, shuffle_samples};
use tensorfleet_status::Result;
use tensorfleet_tensor::{Tensor, Word, by_word};

use super::Stream;
use super::stateless::by_key;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "RandomShuffle",
        inputs: &["value: T"],
        outputs: &["output: T"],
        attrs: &["seed: int = 0", "seed2: int = 0", "T: type"],
        stateful: true,
        infer: infer::same_as_first,
        gradient: Gradient::Stop("TensorFlow marks it so"),
        kernels: &[cpu(&[], build)],
        exactness: Exactness::Bits,
        scripts: &[
            script(
                "rows, two runs",
                "v = float[5,2]{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}\ns = RandomShuffle(v) {seed=3, seed2=9}",
                &["fetch s => ?", "fetch s => ?"],
            ),
            script(
                "strings",
                "v = string[4]{a, b, c, d}\ns = RandomShuffle(v) {seed=1}",
                &["fetch s => ?"],
            ),
            script(
                "scalar and single row",
                "v = int32[]{4}\nw = int32[1,2]{1, 2}\ns = RandomShuffle(v)\nt = RandomShuffle(w)",
                &["fetch s, t => int32[]{4}; int32[1,2]{1, 2}"],
            ),
        ],
        ..OpDef::BLANK
    },
    OpDef {
        name: "StatelessShuffle",
        inputs: &["value: T", "key: uint64", "counter: uint64", "alg: int32"],
        outputs: &["output: T"],
        attrs: &["T: type"],
        infer: infer::same_as_first,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
                let philox = by_key(ctx)?;
                shuffle(ctx, |_| philox)
            })
        })],
        exactness: Exactness::Bits,
        scripts: &[script(
            "rows",
            "v = int32[6,2]{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
         k = uint64[1]{123456789}
         c = uint64[2]{3, 1}
         alg = int32[]{1}
         s = StatelessShuffle(v, k, c, alg)",
            &["fetch s => ?", "fetch s => ?"],
        )],
        ..OpDef::BLANK
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let stream = Stream::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        shuffle(ctx, |rows| stream.reserve_samples(shuffle_samples(rows)))
    })
}

fn shuffle(ctx: &mut KernelCtx<'_>, philox: impl FnOnce(usize) -> Philox) -> Result<()> {
    let value = ctx.take(0)?;
    let rows = value.shape().dim(0);
    if value.rank() == 0 || rows <= 1 || value.is_empty() {
        ctx.set(0, value);
        return Ok(());
    }
    let order = shuffle_order(philox(rows), rows);
    let mut out = ctx.allocate(value.dtype(), value.shape().clone())?;
    by_word!(value.dtype(), W => reorder::<W>(&value, &order, &mut out))?;
    ctx.set(0, out);
    Ok(())
}

fn reorder<W: Word>(value: &Tensor, order: &[usize], out: &mut Tensor) -> Result<()> {
    let row = value.elements() / order.len().max(1);
    let source = value.words::<W>()?;
    for (target, index) in out.words_mut::<W>()?.chunks_exact_mut(row).zip(order) {
        target.clone_from_slice(&source[index * row..(index + 1) * row]);
    }
    Ok(())
}
