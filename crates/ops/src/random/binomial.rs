//! `StatelessRandomBinomial`, `StatefulRandomBinomial`: how many of so many trials succeed.
//!
//! TensorFlow: StatelessRandomBinomial(shape: S, seed: Tseed[2], counts: T, probs: T) -> output: dtype; counts and probs are
//! broadcast against each other, and shape must end with the shape that they have then. StatefulRandomBinomial takes the
//! variable and the algorithm of a generator instead of the seed. The variable moves on also where TensorFlow 2.21 moves a copy of it,
//! as it does while somebody else holds the value.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_math::random::{Binomial, Philox, fill_binomial};
use tensorfleet_status::{Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, f16};

use super::generator::advance;
use super::shape_input;
use super::stateless::by_seed;
use crate::by_float;
use crate::math::elementwise::{broadcast, expanded};

const REAL: &[DType] = &[DType::F16, DType::F32, DType::F64];
const COUNTS: &[DType] = &[DType::F16, DType::F32, DType::F64, DType::I32, DType::I64];

const BINOMIAL: OpDef = OpDef {
    outputs: &["output: dtype"],
    gradient: Gradient::Stop("counts are drawn by steps"),
    cost: Cost::Expensive,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "StatelessRandomBinomial",
        inputs: &["shape: S", "seed: Tseed", "counts: T", "probs: T"],
        attrs: &[
            "S: {int32, int64}",
            "Tseed: {int32, int64} = DT_INT64",
            "T: {half, float, double, int32, int64} = DT_DOUBLE",
            "dtype: {half, float, double, int32, int64} = DT_INT64",
        ],
        infer: infer::shape_in::<0>,
        kernels: &[cpu(&[("T", REAL), ("dtype", COUNTS)], |node| {
            build(node, 0, 2, |ctx, _| by_seed(ctx))
        })],
        scripts: &[
            script(
                "few and many, likely and not",
                "s = int32[2]{5, 3}
                 k = int64[2]{5, -7}
                 n = double[]{60}
                 p = double[3]{0.01, 0.4, 0.75}
                 x = StatelessRandomBinomial(s, k, n, p)
                 m = float[3]{3, 500, 20}
                 q = float[3]{0.9, 0.5, 1}
                 y = StatelessRandomBinomial(s, k, m, q) {dtype=float}
                 z = StatelessRandomBinomial(s, k, m, q) {dtype=int32}",
                &["fetch x, y, z => ?"],
            ),
            script(
                "shapes",
                "s = int32[2]{5, 2}
                 k = int64[2]{5, -7}
                 n = double[3]{1, 2, 3}
                 p = double[]{0.5}
                 x = StatelessRandomBinomial(s, k, n, p)
                 two = double[2]{0.5, 0.25}
                 y = StatelessRandomBinomial(s, k, n, two)
                 none = int32[2]{0, 3}
                 z = StatelessRandomBinomial(none, k, n, p)",
                &[
                    "fetch x fails INVALID_ARGUMENT Shape passed in must end with broadcasted shape.",
                    "fetch y fails INVALID_ARGUMENT counts and probs must have compatible batch dimensions",
                    "fetch z => int64[0,3]{}",
                ],
            ),
        ],
        ..BINOMIAL
    },
    OpDef {
        name: "StatefulRandomBinomial",
        inputs: &[
            "resource: resource",
            "algorithm: int64",
            "shape: S",
            "counts: T",
            "probs: T",
        ],
        attrs: &[
            "S: {int32, int64}",
            "T: {half, float, double, int32, int64} = DT_DOUBLE",
            "dtype: {half, float, double, int32, int64} = DT_INT64",
        ],
        stateful: true,
        infer: infer::shape_in::<2>,
        kernels: &[cpu(&[("T", REAL), ("dtype", COUNTS)], |node| {
            build(node, 2, 3, |ctx, rounds| {
                let batches = (rounds.0 as u64).wrapping_mul(200);
                let samples = (rounds.1 as u64).wrapping_add(3);
                advance(ctx, batches.wrapping_mul(samples) / 4)
            })
        })],
        scripts: &[script(
            "one run",
            "v = VarHandleOp() {dtype=int64, shape=[3], shared_name='v'}
             c = int64[3]{5, -1, 99}
             init = AssignVariableOp(v, c)
             alg = int64[]{1}
             s = int32[2]{5, 2}
             n = float[]{60}
             p = float[2]{0.01, 0.4}
             x = StatefulRandomBinomial(v, alg, s, n, p) {dtype=double}",
            &["run init", "fetch x => ?"],
        )],
        ..BINOMIAL
    },
];

/// The stream for so many pairs of parameters and draws of each.
type Place = fn(&KernelCtx<'_>, (usize, usize)) -> Result<Philox>;

fn build(node: &NodeInfo, shape: usize, counts: usize, place: Place) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (trials, odds) = (ctx.input(counts)?, ctx.input(counts + 1)?);
        let (_, both) = broadcast(trials.shape(), odds.shape()).map_err(|_| {
            invalid_argument!(
                "counts and probs must have compatible batch dimensions: {} vs. {}",
                trials.shape(),
                odds.shape()
            )
        })?;
        ensure!(
            ctx.input(shape)?.rank() == 1,
            invalid_argument,
            "Input shape should be a vector, got shape: {}",
            ctx.input(shape)?.shape()
        );
        let mut out = ctx.allocate(dtype, shape_input(ctx, shape)?)?;
        ensure!(
            out.shape().dims().ends_with(both.dims()),
            invalid_argument,
            "Shape passed in must end with broadcasted shape."
        );
        if !out.is_empty() {
            let kinds = kinds(trials, odds, &both)?;
            let rounds = out.elements() / kinds.len().max(1);
            let philox = place(ctx, (kinds.len(), rounds))?;
            fill(ctx, philox, &kinds, &mut out)?;
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn kinds(trials: &Tensor, odds: &Tensor, shape: &Shape) -> Result<Vec<Binomial>> {
    let dtype = trials.dtype();
    by_float!(
        dtype,
        T => kinds_of::<T>(trials, odds, shape),
        else => Err(internal!("no counts of {dtype}"))
    )
}

/// Which way to draw is decided in the precision of the parameters.
fn kinds_of<T: Element + Float>(
    trials: &Tensor,
    odds: &Tensor,
    shape: &Shape,
) -> Result<Vec<Binomial>> {
    let trials = expanded(trials.slice::<T>()?, trials.shape(), shape);
    let odds = expanded(odds.slice::<T>()?, odds.shape(), shape);
    let value = T::from_f64;
    let kind = |(count, odds): (&T, &T)| {
        let (trials, is_failure) = (count.to_f64(), *odds > value(0.5));
        let odds = *odds;
        if trials <= 0.0 || odds <= T::ZERO {
            return Binomial::Constant(0.0);
        }
        if odds >= T::ONE {
            return Binomial::Constant(trials);
        }
        if trials.is_nan() || odds.is_nan() {
            return Binomial::Constant(f64::NAN);
        }
        let rare = if is_failure { T::ONE.sub(odds) } else { odds };
        let probability = rare.to_f64();
        match count.mul(rare) >= value(10.0) {
            true => Binomial::Rejection {
                trials,
                probability,
                is_failure,
            },
            false => Binomial::Waiting {
                trials,
                probability,
                is_failure,
            },
        }
    };
    Ok(trials.iter().zip(odds.iter()).map(kind).collect())
}

fn fill(ctx: &KernelCtx<'_>, philox: Philox, kinds: &[Binomial], out: &mut Tensor) -> Result<()> {
    let par = ctx.par();
    match out.dtype() {
        DType::F16 => fill_binomial(par, philox, kinds, out.slice_mut::<f16>()?),
        DType::F32 => fill_binomial(par, philox, kinds, out.slice_mut::<f32>()?),
        DType::F64 => fill_binomial(par, philox, kinds, out.slice_mut::<f64>()?),
        DType::I32 => fill_binomial(par, philox, kinds, out.slice_mut::<i32>()?),
        DType::I64 => fill_binomial(par, philox, kinds, out.slice_mut::<i64>()?),
        other => return Err(internal!("counts of {other} are not drawn")),
    }
    Ok(())
}
