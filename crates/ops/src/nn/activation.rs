//! `Relu`, `Relu6`, `Elu`, `Selu`, `Softplus`, `Softsign` and the ops of their gradients.
//!
//! TensorFlow: Op(features: T) -> activations: T; OpGrad(gradients: T, features or outputs: T) -> backprops: T.

use tensorfleet_graph::example::{ex, f32s, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_math::binary::Binary;
use tensorfleet_math::unary::Unary;
use tensorfleet_status::Result;

use crate::math::elementwise::{Shapes, binary_with, unary};
use crate::types::{FLOATS, REAL_NUMBERS};

const REAL_ATTR: &[&str] = &[
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
];
const RELU_ATTR: &[&str] = &[
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}",
];
const FLOAT_ATTR: &[&str] = &["T: {half, bfloat16, float, double}"];

const ACTIVATION: OpDef = OpDef {
    inputs: &["features: T"],
    outputs: &["activations: T"],
    attrs: FLOAT_ATTR,
    infer: infer::same_as_first,
    exactness: Exactness::Relative(2e-6),
    ..OpDef::BLANK
};

const BY_FEATURES: OpDef = OpDef {
    inputs: &["gradients: T", "features: T"],
    outputs: &["backprops: T"],
    ..ACTIVATION
};

const BY_OUTPUTS: OpDef = OpDef {
    inputs: &["gradients: T", "outputs: T"],
    ..BY_FEATURES
};

macro_rules! kernel {
    ($types:expr, $family:ident :: $op:ident) => {
        &[cpu(&[("T", $types)], $family::$op)]
    };
}

pub(crate) static OPS: [OpDef; 12] = [
    OpDef {
        name: "Relu",
        attrs: RELU_ATTR,
        gradient: Gradient::Rule(|g| by_features(g, "ReluGrad")),
        kernels: kernel!(REAL_NUMBERS, forward::relu),
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "signs",
                &[x(&[4], &[-1.0, 0.5, 2.0, -0.5])],
                &[x(&[4], &[0.0, 0.5, 2.0, 0.0])],
            ),
            ex("positive", &[x(&[2], &[1.0, 2.0])], &[x(&[2], &[1.0, 2.0])]),
            ex("integers", &[i32s(&[2], &[-3, 3])], &[i32s(&[2], &[0, 3])]),
            ex("empty", &[x(&[0, 2], &[])], &[x(&[0, 2], &[])]),
        ],
        ..ACTIVATION
    },
    OpDef {
        name: "ReluGrad",
        attrs: REAL_ATTR,
        gradient: Gradient::Rule(|g| grad_of_grad(g, "ReluGrad")),
        kernels: kernel!(REAL_NUMBERS, backward::relu),
        exactness: Exactness::Bits,
        examples: &[ex(
            "signs",
            &[x(&[3], &[1.0, 2.0, 3.0]), x(&[3], &[-1.0, 0.5, 2.0])],
            &[x(&[3], &[0.0, 2.0, 3.0])],
        )],
        ..BY_FEATURES
    },
    OpDef {
        name: "Relu6",
        attrs: REAL_ATTR,
        gradient: Gradient::Rule(|g| by_outputs(g, "Relu6Grad")),
        kernels: kernel!(REAL_NUMBERS, forward::relu6),
        exactness: Exactness::Bits,
        examples: &[ex(
            "clipped",
            &[x(&[4], &[-1.0, 0.5, 5.0, 7.0])],
            &[x(&[4], &[0.0, 0.5, 5.0, 6.0])],
        )],
        ..ACTIVATION
    },
    OpDef {
        name: "Relu6Grad",
        attrs: REAL_ATTR,
        gradient: Gradient::Rule(|g| grad_of_grad(g, "Relu6Grad")),
        kernels: kernel!(REAL_NUMBERS, backward::relu6),
        exactness: Exactness::Bits,
        examples: &[ex(
            "clipped",
            &[
                x(&[4], &[1.0, 2.0, 3.0, 4.0]),
                x(&[4], &[-1.0, 0.5, 5.0, 7.0]),
            ],
            &[x(&[4], &[0.0, 2.0, 3.0, 0.0])],
        )],
        ..BY_FEATURES
    },
    OpDef {
        name: "Elu",
        gradient: Gradient::Rule(|g| by_outputs(g, "EluGrad")),
        kernels: kernel!(FLOATS, forward::elu),
        examples: &[
            ex(
                "signs",
                &[f32s(&[3], &[-1.0, 0.5, 2.0])],
                &[f32s(&[3], &[-0.632_120_56, 0.5, 2.0])],
            ),
            ex("positive", &[x(&[1], &[1.0])], &[x(&[1], &[1.0])]),
        ],
        ..ACTIVATION
    },
    OpDef {
        name: "EluGrad",
        gradient: Gradient::Rule(|g| outputs_gradient(g, "EluGrad")),
        kernels: kernel!(FLOATS, backward::elu),
        examples: &[ex(
            "signs",
            &[x(&[2], &[1.0, 2.0]), x(&[2], &[-0.5, 2.0])],
            &[x(&[2], &[0.5, 2.0])],
        )],
        ..BY_OUTPUTS
    },
    OpDef {
        name: "Selu",
        gradient: Gradient::Rule(|g| by_outputs(g, "SeluGrad")),
        kernels: kernel!(FLOATS, forward::selu),
        examples: &[ex(
            "signs",
            &[f32s(&[2], &[-1.0, 1.0])],
            &[f32s(&[2], &[-1.111_330_8, 1.050_701])],
        )],
        ..ACTIVATION
    },
    OpDef {
        name: "SeluGrad",
        gradient: Gradient::Rule(|g| outputs_gradient(g, "SeluGrad")),
        kernels: kernel!(FLOATS, backward::selu),
        examples: &[ex(
            "signs",
            &[f32s(&[2], &[1.0, 2.0]), f32s(&[2], &[-0.5, 2.0])],
            &[f32s(&[2], &[1.258_099_3, 2.101_402])],
        )],
        ..BY_OUTPUTS
    },
    OpDef {
        name: "Softplus",
        gradient: Gradient::Rule(|g| by_features(g, "SoftplusGrad")),
        kernels: kernel!(FLOATS, forward::softplus),
        examples: &[ex(
            "curve",
            &[f32s(&[3], &[0.0, 50.0, -50.0])],
            &[f32s(&[3], &[std::f64::consts::LN_2, 50.0, 1.928_749_8e-22])],
        )],
        ..ACTIVATION
    },
    OpDef {
        name: "SoftplusGrad",
        gradient: Gradient::Rule(softplus_grad_gradient),
        kernels: kernel!(FLOATS, backward::softplus),
        examples: &[ex(
            "half at zero",
            &[x(&[1], &[2.0]), x(&[1], &[0.0])],
            &[x(&[1], &[1.0])],
        )],
        ..BY_FEATURES
    },
    OpDef {
        name: "Softsign",
        gradient: Gradient::Rule(|g| by_features(g, "SoftsignGrad")),
        kernels: kernel!(FLOATS, forward::softsign),
        examples: &[ex(
            "curve",
            &[x(&[3], &[1.0, -3.0, 0.0])],
            &[x(&[3], &[0.5, -0.75, 0.0])],
        )],
        ..ACTIVATION
    },
    OpDef {
        name: "SoftsignGrad",
        gradient: Gradient::None("TensorFlow's is rarely asked for"),
        kernels: kernel!(FLOATS, backward::softsign),
        examples: &[ex(
            "curve",
            &[x(&[2], &[1.0, 16.0]), x(&[2], &[1.0, -3.0])],
            &[x(&[2], &[0.25, 1.0])],
        )],
        ..BY_FEATURES
    },
];

/// Kernel builders by activation.
mod forward {
    use super::{AnyKernel, NodeInfo, Result, Unary, unary};

    macro_rules! builders {
        ($($name:ident => $op:ident),*) => {$(
            pub(super) fn $name(node: &NodeInfo) -> Result<AnyKernel> {
                unary(node, Unary::$op)
            }
        )*};
    }
    builders!(relu => Relu, relu6 => Relu6, elu => Elu, selu => Selu, softplus => Softplus, softsign => Softsign);
}

/// Kernel builders of the gradients.
mod backward {
    use super::{AnyKernel, Binary, NodeInfo, Result, Shapes, binary_with};

    macro_rules! builders {
        ($($name:ident => $op:ident),*) => {$(
            pub(super) fn $name(node: &NodeInfo) -> Result<AnyKernel> {
                binary_with(node, Binary::$op, Shapes::SameSize)
            }
        )*};
    }
    builders!(relu => ReluGrad, relu6 => Relu6Grad, elu => EluGrad, selu => SeluGrad, softplus => SoftplusGrad, softsign => SoftsignGrad);
}

fn by_features(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, features) = (g.grad(0)?, g.input(0));
    dense(g.apply(op, &[grad, features])?)
}

/// The gradient of `EluGrad` or `SeluGrad`: below zero the slope grows with the output.
fn outputs_gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (gradients, outputs, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let to_gradients = g.apply(op, &[grad, outputs])?;
    let zeros = g.apply("ZerosLike", &[outputs])?;
    let below = g.apply("Less", &[outputs, zeros])?;
    let both = g.apply("Mul", &[grad, gradients])?;
    let to_outputs = g.apply("SelectV2", &[below, both, zeros])?;
    Ok(vec![
        Some(Grad::Dense(to_gradients)),
        Some(Grad::Dense(to_outputs)),
    ])
}

/// The slope of the sigmoid, σ(x) · (1 - σ(x)), as 1 / (e⁻ˣ + 2 + eˣ).
fn softplus_grad_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (gradients, features, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let to_gradients = g.apply("SoftplusGrad", &[grad, features])?;
    let negated = g.apply("Neg", &[features])?;
    let (falling, rising) = (g.apply("Exp", &[negated])?, g.apply("Exp", &[features])?);
    let two = g.constant(2.0, g.dtype(features))?;
    let sum = g.apply("AddV2", &[falling, two])?;
    let sum = g.apply("AddV2", &[sum, rising])?;
    let both = g.apply("Mul", &[grad, gradients])?;
    let to_features = g.apply("RealDiv", &[both, sum])?;
    Ok(vec![
        Some(Grad::Dense(to_gradients)),
        Some(Grad::Dense(to_features)),
    ])
}

fn by_outputs(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, outputs) = (g.grad(0)?, g.output(0));
    dense(g.apply(op, &[grad, outputs])?)
}

/// A gradient that is linear in its first input and piecewise constant in its second.
fn grad_of_grad(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, features) = (g.grad(0)?, g.input(1));
    let first = g.apply(op, &[grad, features])?;
    let zeros = g.apply("ZerosLike", &[features])?;
    Ok(vec![Some(Grad::Dense(first)), Some(Grad::Dense(zeros))])
}
