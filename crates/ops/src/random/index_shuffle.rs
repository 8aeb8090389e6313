//! `RandomIndexShuffle`: where an index goes in a permutation that is never written down.
//!
//! TensorFlow: RandomIndexShuffle(index: dtype, seed: Tseed[3], max_index: dtype) -> output: dtype; index and max_index are
//! scalars or vectors, seed a vector or a matrix of rows.

use tensorfleet_graph::example::{ex_err, ex_ref, i32s, i64s};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::IndexShuffle;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

const INTEGERS: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

/// More rounds than these add nothing but time.
const MOST_ROUNDS: i64 = 1 << 16;

pub(crate) static OP: OpDef = OpDef {
    name: "RandomIndexShuffle",
    inputs: &["index: dtype", "seed: Tseed", "max_index: dtype"],
    outputs: &["output: dtype"],
    attrs: &[
        "rounds: int = 4",
        "dtype: {int32, uint32, int64, uint64}",
        "Tseed: {int32, uint32, int64, uint64}",
    ],
    gradient: Gradient::Stop("indices are integers"),
    kernels: &[cpu(&[("dtype", INTEGERS), ("Tseed", INTEGERS)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_ref(
            "one",
            &[],
            &[i32s(&[], &[3]), i64s(&[3], &[1, 2, 3]), i32s(&[], &[9])],
        ),
        ex_ref(
            "many",
            &[],
            &[
                i64s(&[6], &[0, 1, 2, 3, 4, 5]),
                i32s(&[3], &[-5, 70_000, 9]),
                i64s(&[], &[5]),
            ],
        ),
        ex_ref(
            "limits and seeds of their own, more rounds",
            &[("rounds", "8")],
            &[
                i64s(&[2], &[1, 1_000_000]),
                i64s(&[2, 3], &[5, 7, 11, 6, 8, 12]),
                i64s(&[2], &[1, 5_000_000_000]),
            ],
        ),
        ex_err(
            "index beyond",
            &[],
            &[i32s(&[], &[10]), i32s(&[3], &[1, 2, 3]), i32s(&[], &[9])],
            Code::InvalidArgument,
            "max_index must be >= index, but 9 < 10",
        ),
        ex_err(
            "negative",
            &[],
            &[i32s(&[], &[-1]), i32s(&[3], &[1, 2, 3]), i32s(&[], &[9])],
            Code::InvalidArgument,
            "index must be >= 0 but was -1",
        ),
        ex_err(
            "seed",
            &[],
            &[i32s(&[2], &[1, 2]), i32s(&[2], &[1, 2]), i32s(&[], &[9])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (dtype, rounds) = (node.attrs.dtype("dtype")?, node.attrs.int("rounds")?);
    ensure!(
        (4..=MOST_ROUNDS).contains(&rounds) && rounds % 2 == 0,
        invalid_argument,
        "rounds must be even and from 4 to {MOST_ROUNDS}, got {rounds}"
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let out = shuffle(ctx, rounds as usize, dtype)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn shuffle(ctx: &KernelCtx<'_>, rounds: usize, dtype: DType) -> Result<Tensor> {
    let (index, seed, most) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let is_one = index.rank() == 0 && seed.rank() == 1 && most.rank() == 0;
    let count = index
        .elements()
        .max(most.elements())
        .max(seed.elements() / 3);
    let fits =
        |tensor: &Tensor| tensor.rank() == 0 || (tensor.rank() == 1 && tensor.elements() == count);
    ensure!(
        fits(index),
        invalid_argument,
        "Index bust be a scalar or vector."
    );
    let rows = seed.shape().dims();
    ensure!(
        rows == [3] || rows == [count as i64, 3],
        invalid_argument,
        "Seed must be a vector of size [3] or a matrix of size [{count}, 3] but got {}.",
        seed.shape()
    );
    ensure!(
        fits(most),
        invalid_argument,
        "Maxval must be a scalar or a vector of the same size as index but got {}",
        most.shape()
    );
    let (indices, limits, seeds) = (wide(index)?, wide(most)?, wide(seed)?);
    let at = |values: &[i128], place: usize| values[if values.len() == 1 { 0 } else { place }];
    let mut found = Vec::with_capacity(count);
    for place in 0..count {
        let (index, most) = (at(&indices, place), at(&limits, place));
        ensure!(
            index >= 0,
            invalid_argument,
            "index must be >= 0 but was {index}"
        );
        ensure!(
            most >= 0,
            invalid_argument,
            "max_index must be >= 0 but was {most}"
        );
        ensure!(
            most >= index,
            invalid_argument,
            "max_index must be >= index, but {most} < {index}"
        );
        let row = if seed.rank() == 1 { 0 } else { 3 * place };
        let key = [0, 1, 2].map(|word| seeds[row + word] as u32);
        let shuffle = IndexShuffle::new(key, most as u64, rounds);
        found.push(shuffle.place(index as u64));
    }
    let shape = if is_one {
        Shape::scalar()
    } else {
        Shape::new(&[count as i64])?
    };
    let found = found.into_iter();
    match dtype {
        DType::I32 => Tensor::from_vec(shape, found.map(|x| x as i32).collect()),
        DType::U32 => Tensor::from_vec(shape, found.map(|x| x as u32).collect()),
        DType::I64 => Tensor::from_vec(shape, found.map(|x| x as i64).collect()),
        _ => Tensor::from_vec(shape, found.collect()),
    }
}

/// The elements without loss.
fn wide(tensor: &Tensor) -> Result<Vec<i128>> {
    Ok(match tensor.dtype() {
        DType::I32 => tensor
            .slice::<i32>()?
            .iter()
            .map(|x| i128::from(*x))
            .collect(),
        DType::U32 => tensor
            .slice::<u32>()?
            .iter()
            .map(|x| i128::from(*x))
            .collect(),
        DType::I64 => tensor
            .slice::<i64>()?
            .iter()
            .map(|x| i128::from(*x))
            .collect(),
        DType::U64 => tensor
            .slice::<u64>()?
            .iter()
            .map(|x| i128::from(*x))
            .collect(),
        other => return Err(invalid_argument!("Invalid seed type: {other}")),
    })
}
