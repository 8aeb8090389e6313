//! `BatchNormWithGlobalNormalization`, `BatchNormWithGlobalNormalizationGrad`: channels of NHWC images normalised by given means
//! and variances.
//!
//! TensorFlow: BatchNormWithGlobalNormalization(t: T, m: T, v: T, beta: T, gamma: T) -> result: T, with variance_epsilon and
//! scale_after_normalization; the gradient takes t, m, v, gamma, backprop -> dx, dm, dv, db, dg. Deprecated since graph version 9.
//! Halves are computed in single precision.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, ramp};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_status::{Code, Result, ensure, internal};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, f16};

const TYPES: &[DType] = &[DType::F16, DType::F32, DType::F64];
const ATTRS: &[&str] = &[
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    "variance_epsilon: float",
    "scale_after_normalization: bool",
];

const EPSILON: (&str, &str) = ("variance_epsilon", "0.25");
const SCALED: (&str, &str) = ("scale_after_normalization", "true");
const PLAIN: (&str, &str) = ("scale_after_normalization", "false");
const IMAGE: Lit = ramp(&[2, 1, 2, 3], -1.0, 0.25);
const MEAN: Lit = ramp(&[3], 0.25, 0.5);
const VARIANCE: Lit = ramp(&[3], 0.75, 0.25);
const BACK: Lit = ramp(&[2, 1, 2, 3], 0.5, -0.125);

const NORM: OpDef = OpDef {
    attrs: ATTRS,
    deprecated: 9,
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "BatchNormWithGlobalNormalization",
        inputs: &["t: T", "m: T", "v: T", "beta: T", "gamma: T"],
        outputs: &["result: T"],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, false))],
        examples: &[
            ex_ref(
                "scaled",
                &[EPSILON, SCALED],
                &[IMAGE, MEAN, VARIANCE, MEAN, MEAN],
            ),
            ex_ref(
                "not scaled",
                &[EPSILON, PLAIN],
                &[IMAGE, MEAN, VARIANCE, MEAN, MEAN],
            ),
            ex_err(
                "no image",
                &[EPSILON, SCALED],
                &[
                    f32s(&[2, 3], &[0.0]),
                    f32s(&[3], &[0.0]),
                    f32s(&[3], &[0.0]),
                    f32s(&[3], &[0.0]),
                    f32s(&[3], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..NORM
    },
    OpDef {
        name: "BatchNormWithGlobalNormalizationGrad",
        inputs: &["t: T", "m: T", "v: T", "gamma: T", "backprop: T"],
        outputs: &["dx: T", "dm: T", "dv: T", "db: T", "dg: T"],
        infer: shapes,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, true))],
        examples: &[
            ex_ref(
                "scaled",
                &[EPSILON, SCALED],
                &[IMAGE, MEAN, VARIANCE, MEAN, BACK],
            ),
            ex_ref(
                "not scaled",
                &[EPSILON, PLAIN],
                &[IMAGE, MEAN, VARIANCE, MEAN, BACK],
            ),
        ],
        ..NORM
    },
];

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.input(0).clone());
    for index in 1..5 {
        ctx.set(index, ctx.input(1).clone());
    }
    Ok(())
}

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.input(0), g.input(1), g.input(2), g.input(4), g.grad(0)?];
    let (epsilon, scale) = (
        g.attr("variance_epsilon")?,
        g.attr("scale_after_normalization")?,
    );
    let mut node = g.builder().op("BatchNormWithGlobalNormalizationGrad");
    for input in inputs {
        node = node.input(input);
    }
    let node = node
        .attr("variance_epsilon", epsilon)
        .attr("scale_after_normalization", scale)
        .build()?;
    Ok((0..5)
        .map(|index| Some(Grad::Dense(node.output(index))))
        .collect())
}

fn build(node: &NodeInfo, backward: bool) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let epsilon = f64::from(attrs.float("variance_epsilon")?);
    let scaled = attrs.bool("scale_after_normalization")?;
    macro_rules! of {
        ($t:ty) => {
            AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| match backward {
                false => normalise::<$t>(ctx, epsilon, scaled),
                true => differentiate::<$t>(ctx, epsilon, scaled),
            })
        };
    }
    match attrs.dtype("T")? {
        DType::F16 => of!(f16),
        DType::F32 => of!(f32),
        DType::F64 => of!(f64),
        other => Err(internal!("no normalisation of {other}")),
    }
}

/// The channels, all vectors being as long.
fn channels(ctx: &KernelCtx<'_>, vectors: &[(usize, &str)]) -> Result<usize> {
    let image = ctx.input(0)?.shape();
    ensure!(
        image.rank() == 4,
        invalid_argument,
        "input must be 4-dimensional{image}"
    );
    for (index, name) in vectors {
        let shape = ctx.input(*index)?.shape();
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "{name} must be 1-dimensional{shape}"
        );
        ensure!(
            shape.dim(0) == image.dim(3),
            invalid_argument,
            "{name} must have as many elements as the input has channels: {} vs. {}",
            shape.dim(0),
            image.dim(3)
        );
    }
    Ok(image.dim(3))
}

fn normalise<T: Element + Float>(
    ctx: &mut KernelCtx<'_>,
    epsilon: f64,
    scaled: bool,
) -> Result<()> {
    let names = [(1, "mean"), (2, "var"), (3, "beta"), (4, "gamma")];
    let channels = channels(ctx, &names)?;
    let at = |index: usize| ctx.input(index)?.slice::<T>();
    let (input, mean, beta) = (at(0)?, at(1)?, at(3)?);
    let factors = factors(at(2)?, at(4)?, epsilon, scaled);
    let mut out = ctx.allocate(T::DTYPE, ctx.input(0)?.shape().clone())?;
    let pixels = out.slice_mut::<T>()?.iter_mut().zip(input).enumerate();
    for (place, (out, x)) in pixels {
        let c = place % channels;
        let centred = x.to_f64() - mean[c].to_f64();
        *out = T::from_f64(centred * factors[c] + beta[c].to_f64());
    }
    ctx.set(0, out);
    Ok(())
}

/// What each channel is multiplied by.
fn factors<T: Float>(variance: &[T], gamma: &[T], epsilon: f64, scaled: bool) -> Vec<f64> {
    let factors = variance.iter().zip(gamma).map(|(variance, gamma)| {
        let scale = if scaled { gamma.to_f64() } else { 1.0 };
        scale / (variance.to_f64() + epsilon).sqrt()
    });
    factors.collect()
}

fn differentiate<T: Element + Float>(
    ctx: &mut KernelCtx<'_>,
    epsilon: f64,
    scaled: bool,
) -> Result<()> {
    let channels = channels(ctx, &[(1, "mean"), (2, "var"), (3, "gamma")])?;
    let at = |index: usize| ctx.input(index)?.slice::<T>();
    let shape = ctx.input(0)?.shape().clone();
    ensure!(
        *ctx.input(4)?.shape() == shape,
        invalid_argument,
        "out_backprop must be 4-dimensional{}",
        ctx.input(4)?.shape()
    );
    let (input, mean, variance, grad) = (at(0)?, at(1)?, at(2)?, at(4)?);
    let factors = factors(variance, at(3)?, epsilon, scaled);
    let (mut sums, mut products) = (vec![0.0; channels], vec![0.0; channels]);
    let mut dx = ctx.allocate(T::DTYPE, shape)?;
    let places = dx
        .slice_mut::<T>()?
        .iter_mut()
        .zip(input.iter().zip(grad))
        .enumerate();
    for (place, (dx, (x, grad))) in places {
        let (c, grad) = (place % channels, grad.to_f64());
        sums[c] += grad;
        products[c] += grad * (x.to_f64() - mean[c].to_f64());
        *dx = T::from_f64(grad * factors[c]);
    }
    let vector = |value: &dyn Fn(usize) -> f64| -> Result<Tensor> {
        let values: Vec<T> = (0..channels).map(|c| T::from_f64(value(c))).collect();
        Tensor::from_vec(Shape::vector(channels), values)
    };
    let spread = |c: usize| variance[c].to_f64() + epsilon;
    let outputs = [
        vector(&|c| -sums[c] * factors[c])?,
        vector(&|c| -0.5 * products[c] * factors[c] / spread(c))?,
        vector(&|c| sums[c])?,
        vector(&|c| {
            if scaled {
                products[c] / spread(c).sqrt()
            } else {
                0.0
            }
        })?,
    ];
    ctx.set(0, dx);
    for (index, output) in (1..).zip(outputs) {
        ctx.set(index, output);
    }
    Ok(())
}
