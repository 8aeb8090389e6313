//! `RandomGamma`, `RandomPoissonV2` and their stateless forms: samplers with one parameter for each place.
//!
//! TensorFlow: RandomGamma(shape: S, alpha: T) -> output: T, of `shape` followed by that of alpha; RandomPoissonV2 likewise with
//! a rate, whose type is not that of the output. The stateless ones (StatelessRandomGammaV2, StatelessRandomGammaV3,
//! StatelessRandomPoisson) take the whole shape, which must end with that of the parameter.

use tensorfleet_graph::example::script;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{Philox, fill_gamma, fill_poisson};
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{DType, Shape, Tensor, bf16, f16};

use super::stateless::{by_key, by_seed};
use super::{Stream, doubles, shape_input, sum_to};
use crate::math::calculus::Calculus;

const REAL: &[DType] = &[DType::F16, DType::F32, DType::F64];
const COUNTS: &[DType] = &[DType::F16, DType::F32, DType::F64, DType::I32, DType::I64];
const NO_GRADIENT: Gradient = Gradient::Stop("counts are drawn by steps");

const SAMPLER: OpDef = OpDef {
    cost: Cost::Expensive,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "RandomGamma",
        inputs: &["shape: S", "alpha: T"],
        outputs: &["output: T"],
        attrs: &[
            "seed: int = 0",
            "seed2: int = 0",
            "S: {int32, int64}",
            "T: {half, float, double}",
        ],
        stateful: true,
        infer: appended,
        gradient: Gradient::Rule(|g| gamma_gradient(g, 1)),
        kernels: &[cpu(&[("T", REAL)], |node| seeded(node, Kind::Gamma))],
        scripts: &[
            script(
                "seeded, two runs",
                "s = int32[2]{3, 2}
                 a = double[3]{0.25, 1, 7.5}
                 f = float[3]{0.25, 1, 7.5}
                 h = half[1]{2}
                 x = RandomGamma(s, a) {seed=3, seed2=5}
                 y = RandomGamma(s, f) {seed=3, seed2=5}
                 z = RandomGamma(s, h) {seed=3, seed2=5}",
                &["fetch x, y, z => ?", "fetch x, y, z => ?"],
            ),
            script(
                "no samples, and a shape that is none",
                "s = int32[1]{0}
                 bad = int32[]{3}
                 a = float[2]{1, 2}
                 x = RandomGamma(s, a) {seed=3}
                 y = RandomGamma(bad, a) {seed=3}",
                &["fetch x => float[0,2]{}", "fetch y fails INVALID_ARGUMENT "],
            ),
        ],
        ..SAMPLER
    },
    OpDef {
        name: "StatelessRandomGammaV2",
        inputs: &["shape: T", "seed: Tseed", "alpha: dtype"],
        outputs: &["output: dtype"],
        attrs: &[
            "dtype: {half, float, double}",
            "T: {int32, int64}",
            "Tseed: {int32, int64} = DT_INT64",
        ],
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(|g| gamma_gradient(g, 2)),
        kernels: &[cpu(&[("dtype", REAL)], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| whole(ctx, by_seed, 2, Kind::Gamma, None))
        })],
        scripts: &[script(
            "seeded",
            "s = int32[2]{4, 2}
             k = int64[2]{5, -7}
             a = double[2]{0.5, 3}
             x = StatelessRandomGammaV2(s, k, a)
             long = double[3]{1, 2, 3}
             bad = StatelessRandomGammaV2(s, k, long)",
            &[
                "fetch x => ?",
                "fetch bad fails INVALID_ARGUMENT Shape passed in must end with broadcasted shape.",
            ],
        )],
        ..SAMPLER
    },
    OpDef {
        name: "StatelessRandomGammaV3",
        inputs: &[
            "shape: shape_dtype",
            "key: uint64",
            "counter: uint64",
            "alg: int32",
            "alpha: dtype",
        ],
        outputs: &["output: dtype"],
        attrs: &[
            "dtype: {half, float, double}",
            "shape_dtype: {int32, int64} = DT_INT32",
        ],
        infer: infer::shape_in::<0>,
        gradient: Gradient::Rule(|g| gamma_gradient(g, 4)),
        kernels: &[cpu(&[("dtype", REAL)], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| whole(ctx, by_key, 4, Kind::Gamma, None))
        })],
        scripts: &[script(
            "key and counter",
            "s = int32[2]{4, 2}
             k = uint64[1]{123456789}
             c = uint64[2]{3, 1}
             alg = int32[]{1}
             a = float[2]{0.5, 3}
             x = StatelessRandomGammaV3(s, k, c, alg, a)",
            &["fetch x => ?"],
        )],
        ..SAMPLER
    },
    OpDef {
        name: "RandomPoissonV2",
        inputs: &["shape: S", "rate: R"],
        outputs: &["output: dtype"],
        attrs: &[
            "seed: int = 0",
            "seed2: int = 0",
            "S: {int32, int64}",
            "R: {half, float, double, int32, int64} = DT_DOUBLE",
            "dtype: {half, float, double, int32, int64} = DT_INT64",
        ],
        stateful: true,
        infer: appended,
        gradient: NO_GRADIENT,
        kernels: &[cpu(&[("R", COUNTS), ("dtype", COUNTS)], |node| {
            seeded(node, Kind::Poisson)
        })],
        scripts: &[script(
            "seeded, two runs",
            "s = int32[1]{5}
             r = double[3]{0.5, 9.5, 40}
             n = int32[2]{2, 20}
             x = RandomPoissonV2(s, r) {seed=3, seed2=5}
             y = RandomPoissonV2(s, n) {seed=4, dtype=float}",
            &["fetch x, y => ?", "fetch x, y => ?"],
        )],
        ..SAMPLER
    },
    OpDef {
        name: "StatelessRandomPoisson",
        inputs: &["shape: T", "seed: Tseed", "lam: Rtype"],
        outputs: &["output: dtype"],
        attrs: &[
            "Rtype: {half, float, double, int32, int64}",
            "dtype: {half, float, double, int32, int64}",
            "T: {int32, int64}",
            "Tseed: {int32, int64} = DT_INT64",
        ],
        infer: infer::shape_in::<0>,
        gradient: NO_GRADIENT,
        kernels: &[cpu(&[("Rtype", COUNTS), ("dtype", COUNTS)], |node| {
            let dtype = node.attrs.dtype("dtype")?;
            AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
                whole(ctx, by_seed, 2, Kind::Poisson, Some(dtype))
            })
        })],
        scripts: &[script(
            "seeded",
            "s = int32[2]{4, 2}
             k = int32[2]{5, 7}
             r = float[2]{2, 30}
             x = StatelessRandomPoisson(s, k, r) {dtype=int32}
             y = StatelessRandomPoisson(s, k, r) {dtype=double}",
            &["fetch x, y => ?"],
        )],
        ..SAMPLER
    },
];

#[derive(Clone, Copy)]
enum Kind {
    Gamma,
    Poisson,
}

/// The shape in input 0, followed by that of input 1.
fn appended(ctx: &mut InferCtx<'_>) -> Result<()> {
    let samples = ctx.shape_from(0);
    if let (Some(samples), Some(own)) = (samples.dims(), ctx.input(1).dims()) {
        let all: Vec<i64> = samples.iter().chain(own).copied().collect();
        ctx.set(0, tensorfleet_tensor::PartialShape::new(&all));
    }
    Ok(())
}

/// By implicit differentiation: what a sample would change by if the parameter did, with the same probability below it.
fn gamma_gradient(g: &mut GradCtx<'_>, input: usize) -> Result<InputGrads> {
    let (alpha, sample, grad) = (g.input(input), g.output(0), g.grad(0)?);
    let slope = g.apply("RandomGammaGrad", &[alpha, sample])?;
    let part = g.mul(grad, slope)?;
    let mut grads = vec![None; g.num_inputs()];
    grads[input] = Some(Grad::Dense(sum_to(g, part, alpha)?));
    Ok(grads)
}

fn seeded(node: &NodeInfo, kind: Kind) -> Result<AnyKernel> {
    let stream = Stream::new(node)?;
    let dtype = match kind {
        Kind::Gamma => node.attrs.dtype("T")?,
        Kind::Poisson => node.attrs.dtype("dtype")?,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let parameter = ctx.input(1)?;
        ensure!(
            ctx.input(0)?.rank() == 1,
            invalid_argument,
            "shape must be a vector of {{int32,int64}}, got shape: {}",
            ctx.input(0)?.shape()
        );
        let mut dims = ctx.ints(0)?.to_vec();
        dims.extend_from_slice(parameter.shape().dims());
        let mut out = ctx.allocate(dtype, Shape::new(&dims)?)?;
        if !out.is_empty() {
            let philox = stream.reserve(out.elements());
            fill(ctx, kind, philox, parameter, &mut out)?;
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// The output has the shape in input 0, and the parameter's dtype unless another is given.
fn whole(
    ctx: &mut KernelCtx<'_>,
    place: fn(&KernelCtx<'_>) -> Result<Philox>,
    parameter: usize,
    kind: Kind,
    dtype: Option<DType>,
) -> Result<()> {
    let philox = place(ctx)?;
    let parameter = ctx.input(parameter)?;
    let dtype = dtype.unwrap_or(parameter.dtype());
    let mut out = ctx.allocate(dtype, shape_input(ctx, 0)?)?;
    if !out.is_empty() {
        ensure!(
            out.shape().dims().ends_with(parameter.shape().dims()),
            invalid_argument,
            "Shape passed in must end with broadcasted shape."
        );
        fill(ctx, kind, philox, parameter, &mut out)?;
    }
    ctx.set(0, out);
    Ok(())
}

fn fill(
    ctx: &KernelCtx<'_>,
    kind: Kind,
    philox: Philox,
    parameter: &Tensor,
    out: &mut Tensor,
) -> Result<()> {
    let (par, values) = (ctx.par(), doubles(parameter)?);
    match (kind, out.dtype()) {
        (Kind::Gamma, DType::F16) => fill_gamma(par, philox, &values, out.slice_mut::<f16>()?),
        (Kind::Gamma, DType::BF16) => fill_gamma(par, philox, &values, out.slice_mut::<bf16>()?),
        (Kind::Gamma, DType::F32) => fill_gamma(par, philox, &values, out.slice_mut::<f32>()?),
        (Kind::Gamma, DType::F64) => fill_gamma(par, philox, &values, out.slice_mut::<f64>()?),
        (Kind::Poisson, DType::F16) => fill_poisson(par, philox, &values, out.slice_mut::<f16>()?),
        (Kind::Poisson, DType::F32) => fill_poisson(par, philox, &values, out.slice_mut::<f32>()?),
        (Kind::Poisson, DType::F64) => fill_poisson(par, philox, &values, out.slice_mut::<f64>()?),
        (Kind::Poisson, DType::I32) => fill_poisson(par, philox, &values, out.slice_mut::<i32>()?),
        (Kind::Poisson, DType::I64) => fill_poisson(par, philox, &values, out.slice_mut::<i64>()?),
        (_, other) => return Err(internal!("random numbers of {other} are not drawn")),
    }
    Ok(())
}
