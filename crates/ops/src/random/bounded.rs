//! `ParameterizedTruncatedNormal`, `StatelessParameterizedTruncatedNormal`: normal numbers between bounds of their own.
//!
//! TensorFlow: ParameterizedTruncatedNormal(shape: T, means, stdevs, minvals, maxvals: dtype) -> output: dtype, parameters for each
//! row of the output; the stateless one broadcasts them against each other, and shape must end with the shape that they have then.
//! Which numbers come out depends in TensorFlow on how its threads share the rows; ours are those of one thread.

use tensorfleet_graph::example::script;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{BoundedNormal, Bounds, Philox, Refused, Sampler};
use tensorfleet_status::{Result, Status, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, f16};

use super::stateless::by_seed;
use super::{Stream, shape_input, sum_to};
use crate::math::calculus::Calculus;
use crate::math::elementwise::{broadcast, expanded};

const REAL: &[DType] = &[DType::F16, DType::F32, DType::F64];
/// Samples that TensorFlow sets aside for each output.
const RESERVED: u64 = 2000;
/// Outputs of one distribution are drawn in pieces of this size.
const PIECE: usize = 100;

const BOUNDED: OpDef = OpDef {
    outputs: &["output: dtype"],
    infer: infer::shape_in::<0>,
    gradient: Gradient::Stop("random numbers depend on nothing"),
    cost: Cost::Expensive,
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ParameterizedTruncatedNormal",
        inputs: &[
            "shape: T",
            "means: dtype",
            "stdevs: dtype",
            "minvals: dtype",
            "maxvals: dtype",
        ],
        attrs: &[
            "seed: int = 0",
            "seed2: int = 0",
            "dtype: {half, bfloat16, float, double}",
            "T: {int32, int64}",
        ],
        stateful: true,
        kernels: &[cpu(&[("dtype", REAL)], |node| {
            match node.attrs.dtype("dtype")? {
                DType::F16 => by_row::<f16>(node),
                DType::F32 => by_row::<f32>(node),
                _ => by_row::<f64>(node),
            }
        })],
        scripts: &[
            script(
                "each way to draw, two runs",
                "s = int32[2]{3, 5}
                 m = float[]{1}
                 d = float[3]{1, 2, 0.5}
                 lo = float[3]{-2, 1.5, 3}
                 hi = float[3]{4, 2, 90}
                 x = ParameterizedTruncatedNormal(s, m, d, lo, hi) {seed=3, seed2=5}
                 m8 = double[]{0}
                 d8 = double[]{1}
                 lo8 = double[]{-1}
                 hi8 = double[]{3}
                 y = ParameterizedTruncatedNormal(s, m8, d8, lo8, hi8) {seed=3, seed2=5}",
                &["fetch x, y => ?", "fetch x, y => ?"],
            ),
            script(
                "what is refused",
                "s = int32[1]{3}
                 m = float[]{1}
                 d = float[]{-1}
                 lo = float[]{0}
                 hi = float[]{2}
                 x = ParameterizedTruncatedNormal(s, m, d, lo, hi) {seed=3}
                 two = float[2]{1, 2}
                 y = ParameterizedTruncatedNormal(s, two, hi, lo, hi) {seed=3}",
                &[
                    "fetch x fails INVALID_ARGUMENT Invalid parameters",
                    "fetch y fails INVALID_ARGUMENT Input means should have length 1 or shape[0], got shape: [2]",
                ],
            ),
        ],
        ..BOUNDED
    },
    OpDef {
        name: "StatelessParameterizedTruncatedNormal",
        inputs: &[
            "shape: S",
            "seed: Tseed",
            "means: dtype",
            "stddevs: dtype",
            "minvals: dtype",
            "maxvals: dtype",
        ],
        attrs: &[
            "S: {int32, int64}",
            "Tseed: {int32, int64} = DT_INT64",
            "dtype: {half, float, double}",
        ],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("dtype", REAL)], |node| {
            match node.attrs.dtype("dtype")? {
                DType::F16 => AnyKernel::sync(by_place::<f16>),
                DType::F32 => AnyKernel::sync(by_place::<f32>),
                _ => AnyKernel::sync(by_place::<f64>),
            }
        })],
        scripts: &[script(
            "each way to draw",
            "s = int32[2]{5, 3}
             k = int64[2]{5, -7}
             m = float[]{1}
             d = float[3]{1, 2, 0.5}
             lo = float[3]{-2, 1.5, 3}
             hi = float[3]{4, 2, 90}
             x = StatelessParameterizedTruncatedNormal(s, k, m, d, lo, hi)
             far = float[2]{1, 2}
             y = StatelessParameterizedTruncatedNormal(s, k, far, d, lo, hi)",
            &[
                "fetch x => ?",
                "fetch y fails INVALID_ARGUMENT means, stddevs, minvals, maxvals must have compatible batch dimensions",
            ],
        )],
        ..BOUNDED
    },
];

/// By implicit differentiation: what a sample would change by if a parameter did, with the same probability below it.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (sample, grad) = (g.output(0), g.grad(0)?);
    let [mean, deviation, least, most] = [2, 3, 4, 5].map(|input| g.input(input));
    let mut places = Vec::with_capacity(3);
    for place in [sample, least, most] {
        let distance = g.sub(place, mean)?;
        places.push(g.div(distance, deviation)?);
    }
    let [place, of_least, of_most] = [places[0], places[1], places[2]];
    let (below, up_to) = (probability(g, of_least)?, probability(g, of_most)?);
    let here = probability(g, place)?;
    let (part, whole) = (g.sub(here, below)?, g.sub(up_to, below)?);
    let share = g.div(part, whole)?;
    let dtype = g.dtype(sample);
    let (tiny, epsilon) = match dtype {
        DType::F16 => (f16::MIN_POSITIVE.to_f64(), f16::EPSILON.to_f64()),
        DType::F32 => (f64::from(f32::MIN_POSITIVE), f64::from(f32::EPSILON)),
        _ => (f64::MIN_POSITIVE, f64::EPSILON),
    };
    let (tiny, almost) = (g.constant(tiny, dtype)?, g.constant(1.0 - epsilon, dtype)?);
    let share = g.apply("ClipByValue", &[share, tiny, almost])?;
    let log = g.f("Log", share)?;
    let to_most = pushed(g, place, of_most, log)?;
    let minus = g.neg(share)?;
    let log = g.f("Log1p", minus)?;
    let to_least = pushed(g, place, of_least, log)?;
    let mut grads = vec![None, None];
    let slopes = [
        (mean, None),
        (deviation, Some(place)),
        (least, Some(to_least)),
        (most, Some(to_most)),
    ];
    for (parameter, slope) in slopes {
        let part = match slope {
            Some(slope) => g.mul(grad, slope)?,
            None => grad,
        };
        grads.push(Some(Grad::Dense(sum_to(g, part, parameter)?)));
    }
    Ok(grads)
}

/// The probability that a normal number is below `x`.
fn probability(g: &mut GradCtx<'_>, x: Output) -> Result<Output> {
    let scaled = g.scaled(x, -std::f64::consts::FRAC_1_SQRT_2)?;
    let twice = g.f("Erfc", scaled)?;
    g.scaled(twice, 0.5)
}

/// exp((x² - bound²) / 2 + log): how far a bound pushes a sample.
fn pushed(g: &mut GradCtx<'_>, x: Output, bound: Output, log: Output) -> Result<Output> {
    let (x, bound) = (g.f("Square", x)?, g.f("Square", bound)?);
    let difference = g.sub(x, bound)?;
    let half = g.scaled(difference, 0.5)?;
    let exponent = g.add(half, log)?;
    g.f("Exp", exponent)
}

fn refused(why: Refused) -> Status {
    match why {
        Refused::Parameters => invalid_argument!("Invalid parameters"),
        Refused::Attempts(way) => {
            internal!("TruncatedNormal {way} sampler failed to accept a sample.")
        }
    }
}

/// One sampler for each row, or one for all in pieces.
fn by_row<T: Element + BoundedNormal>(node: &NodeInfo) -> Result<AnyKernel> {
    let stream = Stream::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = ctx.input(0)?;
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "Input shape should be a vector, got shape: {}",
            shape.shape()
        );
        ensure!(
            !shape.is_empty(),
            invalid_argument,
            "Shape tensor must not be empty, got {}",
            shape.shape()
        );
        let mut out = ctx.allocate(T::DTYPE, shape_input(ctx, 0)?)?;
        let rows = out.shape().dim(0);
        let mut values = Vec::with_capacity(4);
        let mut is_shared = true;
        for (input, name) in (1..).zip(["means", "stddevs", "minvals", "maxvals"]) {
            let parameter = ctx.input(input)?;
            ensure!(
                parameter.rank() <= 1,
                invalid_argument,
                "Input {name} should be a scalar or vector, got shape: {}",
                parameter.shape()
            );
            ensure!(
                parameter.elements() == 1 || parameter.elements() == rows,
                invalid_argument,
                "Input {name} should have length 1 or shape[0], got shape: {}",
                parameter.shape()
            );
            is_shared &= parameter.rank() == 0 || (input < 3 && parameter.elements() == 1);
            values.push(parameter.slice::<T>()?);
        }
        let piece = match is_shared {
            true => PIECE,
            false => out.elements() / rows.max(1),
        };
        let pieces = out.elements().div_ceil(piece.max(1)) as u64;
        let reserved = pieces.wrapping_mul(RESERVED).wrapping_mul(piece as u64 + 3) / 4;
        let mut philox = stream.reserve_samples(reserved);
        let at = |parameter: usize, row: usize| {
            let values: &[T] = values[parameter];
            values[if values.len() == 1 { 0 } else { row }]
        };
        for (row, out) in out.slice_mut::<T>()?.chunks_mut(piece.max(1)).enumerate() {
            let bounds = Bounds {
                mean: at(0, row),
                deviation: at(1, row),
                least: at(2, row),
                most: at(3, row),
            };
            let sampler = Sampler::new(bounds).map_err(refused)?;
            let drawn = sampler.draw(&mut philox, out.len(), |at, value| out[at] = value);
            drawn.map_err(refused)?;
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// One sampler for each place at the end of the shape.
fn by_place<T: Element + BoundedNormal>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let mut philox: Philox = by_seed(ctx)?;
    let inputs = [ctx.input(2)?, ctx.input(3)?, ctx.input(4)?, ctx.input(5)?];
    let own = common_shape(inputs)?;
    ensure!(
        ctx.input(0)?.rank() == 1,
        invalid_argument,
        "Input shape should be a vector, got shape: {}",
        ctx.input(0)?.shape()
    );
    let mut out = ctx.allocate(T::DTYPE, shape_input(ctx, 0)?)?;
    ensure!(
        out.shape().dims().ends_with(own.dims()),
        invalid_argument,
        "Shape passed in must end with broadcasted shape."
    );
    if !out.is_empty() {
        let mut values = Vec::with_capacity(4);
        for input in inputs {
            values.push(expanded(input.slice::<T>()?, input.shape(), &own));
        }
        let places = own.elements();
        let rounds = out.elements() / places;
        let out = out.slice_mut::<T>()?;
        for place in 0..places {
            let bounds = Bounds {
                mean: values[0][place],
                deviation: values[1][place],
                least: values[2][place],
                most: values[3][place],
            };
            let sampler = Sampler::new(bounds).map_err(refused)?;
            let put = |round: usize, value: T| out[round * places + place] = value;
            sampler.draw(&mut philox, rounds, put).map_err(refused)?;
        }
    }
    ctx.set(0, out);
    Ok(())
}

/// The shape of all parameters broadcast against each other.
fn common_shape(inputs: [&Tensor; 4]) -> Result<Shape> {
    let mut shape = Shape::scalar();
    for input in inputs {
        let (_, both) = broadcast(&shape, input.shape()).map_err(|_| {
            let [means, deviations, least, most] = inputs.map(Tensor::shape);
            invalid_argument!(
                "means, stddevs, minvals, maxvals must have compatible batch dimensions: {means} vs. {deviations} vs. {least} vs. {most}"
            )
        })?;
        shape = both;
    }
    Ok(shape)
}
