//! Special functions of two and three arguments, and the kernel of those of one.
//!
//! TensorFlow: Igamma, Igammac, IgammaGradA(a: T, x: T) -> z: T; Polygamma(a: T, x: T) -> z: T; Zeta(x: T, q: T) -> z: T;
//! Betainc(a: T, b: T, x: T) -> z: T; RandomGammaGrad(alpha: T, sample: T) -> output: T; kernels for float and double. Computed in
//! double precision. `Betainc` wants equal shapes
//! or scalars, the others broadcast.

use tensorfleet_graph::example::{Example, ex_err, ex_ref, f32s, f64s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_math::par::chunks_mut;
use tensorfleet_math::special::{self, pairs};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::calculus::Calculus;
use super::elementwise::{broadcast, expanded, input_dtype, no_function};
use crate::by_float;
use crate::types::SINGLE_AND_DOUBLE;

/// Literals with a dtype where TensorFlow knows the gradient of the last input only: differences would find the others.
const POWERS: &[f64] = &[1.5, 2.0, 3.0, 8.0];
const STARTS: &[f64] = &[0.5, 2.0, 3.5, 5.0];

/// All pairs of what has no place on a curve.
const ENDS: Example = ex_ref("ends", &[], &[x(&[8, 1], EXTREMES), x(&[8], EXTREMES)]);
const EXTREMES: &[f64] = &[
    0.0,
    1.0,
    -1.0,
    2.0,
    3.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "Igamma",
        gradient: Gradient::Rule(|g| igamma_grad(g, false)),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build(node, special::igamma, Some(pairs::igamma))
        })],
        examples: &[
            ex_ref(
                "grid",
                &[],
                &[x(&[4, 1], &[0.5, 1.0, 3.0, 10.0]), ramp(&[5], 0.5, 2.5)],
            ),
            ex_ref(
                "outside",
                &[],
                &[x(&[3], &[0.0, -1.0, 1.0]), x(&[3], &[1.0, 1.0, -1.0])],
            ),
            ENDS,
        ],
        ..GAMMA
    },
    OpDef {
        name: "Igammac",
        gradient: Gradient::Rule(|g| igamma_grad(g, true)),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build(node, special::igammac, Some(pairs::igammac))
        })],
        examples: &[
            ex_ref(
                "grid",
                &[],
                &[x(&[4, 1], &[0.5, 1.0, 3.0, 10.0]), ramp(&[5], 0.5, 2.5)],
            ),
            ENDS,
        ],
        ..GAMMA
    },
    OpDef {
        name: "IgammaGradA",
        attrs: &["T: {float, double}"],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build(node, special::igamma_grad_a, None)
        })],
        exactness: Exactness::Relative(1e-4),
        examples: &[
            ex_ref(
                "grid",
                &[],
                &[x(&[3, 1], &[0.5, 1.0, 3.0]), ramp(&[4], 0.5, 2.5)],
            ),
            ENDS,
        ],
        ..GAMMA
    },
    OpDef {
        name: "RandomGammaGrad",
        inputs: &["alpha: T", "sample: T"],
        outputs: &["output: T"],
        attrs: &["T: {float, double}"],
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build(node, special::gamma_sample_grad, None)
        })],
        exactness: Exactness::Relative(1e-4),
        examples: &[
            ex_ref(
                "grid",
                &[],
                &[x(&[3, 1], &[0.5, 1.0, 3.0]), ramp(&[4], 0.5, 2.5)],
            ),
            ex_ref("at zero", &[], &[x(&[1], &[2.0]), x(&[1], &[0.0])]),
            ENDS,
        ],
        ..GAMMA
    },
    OpDef {
        name: "Polygamma",
        attrs: &["T: {float, double}"],
        gradient: Gradient::Rule(|g| {
            let next = g.plus(g.input(0), 1.0)?;
            let slope = g.apply("Polygamma", &[next, g.input(1)])?;
            second_only(g, slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build(node, special::polygamma, Some(pairs::polygamma))
        })],
        examples: &[
            ex_ref(
                "grid",
                &[],
                &[x(&[4, 1], &[0.0, 1.0, 2.0, 3.0]), ramp(&[4], 0.5, 1.5)],
            ),
            ex_ref(
                "no such derivative",
                &[],
                &[x(&[2], &[0.5, -1.0]), x(&[2], &[1.0, 1.0])],
            ),
            ENDS,
        ],
        ..GAMMA
    },
    OpDef {
        name: "Zeta",
        inputs: &["x: T", "q: T"],
        attrs: &["T: {float, double}"],
        gradient: Gradient::Rule(|g| {
            let (x, q) = (g.input(0), g.input(1));
            let next = g.plus(x, 1.0)?;
            let zeta = g.apply("Zeta", &[next, q])?;
            let minus = g.neg(x)?;
            let slope = g.mul(minus, zeta)?;
            second_only(g, slope)
        }),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], |node| {
            build(node, special::zeta, Some(pairs::zeta))
        })],
        examples: &[
            ex_ref("grid", &[], &[f32s(&[4, 1], POWERS), f32s(&[4], STARTS)]),
            ENDS,
            ex_ref(
                "grid in double",
                &[],
                &[f64s(&[4, 1], POWERS), f64s(&[4], STARTS)],
            ),
            ex_ref(
                "poles and beyond",
                &[],
                &[
                    x(&[4], &[1.0, 0.5, 2.0, 2.0]),
                    x(&[4], &[1.0, 1.0, -1.0, -1.5]),
                ],
            ),
        ],
        ..GAMMA
    },
    OpDef {
        name: "Betainc",
        inputs: &["a: T", "b: T", "x: T"],
        outputs: &["z: T"],
        attrs: &["T: {float, double}"],
        gradient: Gradient::Rule(betainc_grad),
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build_betainc)],
        exactness: Exactness::Relative(1e-5),
        examples: &[
            ex_ref(
                "same shapes",
                &[],
                &[
                    f64s(&[4], &[0.5, 1.0, 2.0, 10.0]),
                    f64s(&[4], &[0.5, 2.0, 3.0, 4.0]),
                    f64s(&[4], &[0.25, 0.5, 0.75, 0.625]),
                ],
            ),
            ex_ref(
                "scalar parameters",
                &[],
                &[
                    f32s(&[], &[2.0]),
                    f32s(&[], &[3.0]),
                    f32s(&[5], &[0.0, 0.25, 0.5, 0.75, 1.0]),
                ],
            ),
            ex_ref(
                "ends",
                &[],
                &[
                    x(
                        &[8],
                        &[1.0, f64::NAN, f64::NAN, 0.0, -1.0, f64::NAN, 1.0, 1.0],
                    ),
                    x(
                        &[8],
                        &[f64::NAN, 1.0, f64::NAN, f64::NAN, 1.0, 1.0, 1.0, 1.0],
                    ),
                    x(&[8], &[0.0, 1.0, 1.0, 1.0, 0.0, 0.5, 1.5, f64::NAN]),
                ],
            ),
            ex_err(
                "shapes differ",
                &[],
                &[x(&[2], &[1.0]), x(&[3], &[1.0]), x(&[], &[0.5])],
                Code::InvalidArgument,
                "Shapes of a and b are inconsistent: [2] vs. [3]",
            ),
        ],
        ..OpDef::BLANK
    },
];

const GAMMA: OpDef = OpDef {
    inputs: &["a: T", "x: T"],
    outputs: &["z: T"],
    attrs: &["T: {bfloat16, half, float, double}"],
    infer: infer::broadcast,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

/// The gradient of the second input only, given its derivative.
fn second_only(g: &mut GradCtx<'_>, slope: Output) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let grad = g.mul(slope, grad)?;
    let mut grads = g.unbroadcast([grad, grad])?;
    grads[0] = None;
    Ok(grads)
}

/// By `x` in logarithms, as the gamma function grows large.
fn igamma_grad(g: &mut GradCtx<'_>, is_upper: bool) -> Result<InputGrads> {
    let (a, x, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let by_a = g.apply("IgammaGradA", &[a, x])?;
    let (minus_x, less) = (g.neg(x)?, g.plus(a, -1.0)?);
    let log = g.f("Log", x)?;
    let log = g.mul(less, log)?;
    let sum = g.add(minus_x, log)?;
    let log_gamma = g.f("Lgamma", a)?;
    let exponent = g.sub(sum, log_gamma)?;
    let by_x = g.f("Exp", exponent)?;
    let grad = if is_upper { g.neg(grad)? } else { grad };
    let (ga, gx) = (g.mul(by_a, grad)?, g.mul(by_x, grad)?);
    g.unbroadcast([ga, gx])
}

/// By `x` only, as in TensorFlow.
fn betainc_grad(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (a, b, x, grad) = (g.input(0), g.input(1), g.input(2), g.grad(0)?);
    let both = g.add(a, b)?;
    let (log_a, log_b, log_both) = (g.f("Lgamma", a)?, g.f("Lgamma", b)?, g.f("Lgamma", both)?);
    let sum = g.add(log_a, log_b)?;
    let log_beta = g.sub(sum, log_both)?;
    let (less_a, less_b, minus) = (g.plus(a, -1.0)?, g.plus(b, -1.0)?, g.neg(x)?);
    let upper = g.apply("Xlog1py", &[less_b, minus])?;
    let lower = g.apply("Xlogy", &[less_a, x])?;
    let sum = g.add(upper, lower)?;
    let exponent = g.sub(sum, log_beta)?;
    let slope = g.f("Exp", exponent)?;
    let part = g.mul(slope, grad)?;
    let (shape_a, shape_x) = (g.shape(a)?, g.shape(x)?);
    let args = g.builder().op("BroadcastGradientArgs");
    let args = args.input(shape_a).input(shape_x).build()?;
    let sum = g.apply("Sum", &[part, args.output(1)])?;
    let sum = g.apply("Reshape", &[sum, shape_x])?;
    Ok(vec![None, None, Some(Grad::Dense(sum))])
}

/// A loop over `f32`, where one is written.
type Pairs = fn(&[f32], &[f32], &mut [f32]);

fn build(node: &NodeInfo, f: fn(f64, f64) -> f64, pairs: Option<Pairs>) -> Result<AnyKernel> {
    match (input_dtype(node), pairs) {
        (DType::F32, Some(run)) => build_loop::<f32>(2048, run),
        (DType::F32, None) => build_of::<f32>(f),
        (DType::F64, _) => build_of::<f64>(f),
        (other, _) => Err(no_function(&node.op, other)),
    }
}

fn build_of<T: Element + Float>(f: fn(f64, f64) -> f64) -> Result<AnyKernel> {
    build_loop(256, move |left: &[T], right: &[T], out: &mut [T]| {
        let pairs = left.iter().zip(right);
        for (out, (x, y)) in out.iter_mut().zip(pairs) {
            *out = T::from_f64(f(x.to_f64(), y.to_f64()));
        }
    })
}

/// The kernel of a loop over equally long inputs, of which `grain` elements are worth a thread.
fn build_loop<T: Element + Float>(
    grain: usize,
    run: impl Fn(&[T], &[T], &mut [T]) + Send + Sync + 'static,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        let (_, shape) = broadcast(x.shape(), y.shape())?;
        let mut z = ctx.allocate(T::DTYPE, shape)?;
        let left = expanded(x.slice::<T>()?, x.shape(), z.shape());
        let right = expanded(y.slice::<T>()?, y.shape(), z.shape());
        chunks_mut(ctx.par(), z.slice_mut::<T>()?, grain, |at, z| {
            run(&left[at..at + z.len()], &right[at..at + z.len()], z);
        });
        ctx.set(0, z);
        Ok(())
    })
}

/// A function of one argument in double precision, with a loop for dtypes that are not wider than `f32`.
pub(crate) fn by_loop(
    node: &NodeInfo,
    f: fn(f64) -> f64,
    run: fn(&[f32], &mut [f32]),
) -> Result<AnyKernel> {
    match input_dtype(node) {
        DType::F64 => one_by_one(f),
        dtype => {
            by_float!(dtype, T => in_blocks::<T>(run), else => Err(no_function(&node.op, dtype)))
        }
    }
}

fn one_by_one(f: fn(f64) -> f64) -> Result<AnyKernel> {
    in_place(256, move |values: &mut [f64]| {
        for value in values {
            *value = f(*value);
        }
    })
}

fn in_blocks<T: Element + Float>(run: fn(&[f32], &mut [f32])) -> Result<AnyKernel> {
    const BLOCK: usize = 256;
    in_place(8 * BLOCK, move |values: &mut [T]| {
        for values in values.chunks_mut(BLOCK) {
            let (mut x, mut out) = ([0.0; BLOCK], [0.0; BLOCK]);
            for (x, value) in x.iter_mut().zip(&*values) {
                *x = value.to_f32();
            }
            run(&x[..values.len()], &mut out);
            for (value, out) in values.iter_mut().zip(out) {
                *value = T::from_f32(out);
            }
        }
    })
}

/// The kernel that overwrites its input, of which `grain` elements are worth a thread.
fn in_place<T: Element>(
    grain: usize,
    run: impl Fn(&mut [T]) + Send + Sync + 'static,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut x = ctx.take(0)?;
        chunks_mut(ctx.par(), x.slice_mut::<T>()?, grain, |_, values| {
            run(values);
        });
        ctx.set(0, x);
        Ok(())
    })
}

fn build_betainc(node: &NodeInfo) -> Result<AnyKernel> {
    match input_dtype(node) {
        DType::F32 => AnyKernel::sync(run_betainc::<f32>),
        DType::F64 => AnyKernel::sync(run_betainc::<f64>),
        other => Err(no_function("Betainc", other)),
    }
}

fn run_betainc<T: Element + Float>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let inputs = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?];
    let shape = common_shape(inputs)?;
    let mut z = ctx.allocate(T::DTYPE, shape)?;
    let mut values = Vec::with_capacity(3);
    for input in inputs {
        values.push(expanded(input.slice::<T>()?, input.shape(), z.shape()));
    }
    for (index, z) in z.slice_mut::<T>()?.iter_mut().enumerate() {
        let [a, b, x] = [0, 1, 2].map(|input: usize| values[input][index].to_f64());
        *z = T::from_f64(special::betainc(a, b, x));
    }
    ctx.set(0, z);
    Ok(())
}

/// The shape of the inputs that are no scalars.
fn common_shape(inputs: [&Tensor; 3]) -> Result<Shape> {
    let mut common: Option<(usize, &Shape)> = None;
    for (index, input) in inputs.into_iter().enumerate() {
        if input.rank() == 0 {
            continue;
        }
        match common {
            Some((first, shape)) if shape != input.shape() => {
                let name = |index: usize| ["a", "b", "x"][index];
                return Err(invalid_argument!(
                    "Shapes of {} and {} are inconsistent: {shape} vs. {}",
                    name(first),
                    name(index),
                    input.shape()
                ));
            }
            Some(_) => {}
            None => common = Some((index, input.shape())),
        }
    }
    Ok(common.map_or_else(Shape::scalar, |(_, shape)| shape.clone()))
}
