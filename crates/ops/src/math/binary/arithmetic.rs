//! Sums, differences, products, the larger and the smaller of two.
//!
//! TensorFlow: Op(x: T, y: T) -> z: T, broadcasting.

use tensorfleet_graph::example::{ex, ex_err, f32s, of, strs, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::Binary;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, TString, Tensor};

use super::{BINARY, NUMBER};
use crate::math::calculus::Calculus;
use crate::math::elementwise::{binary, broadcast, expanded};
use crate::math::unary::complex;
use crate::types::{
    COMPLEX, FLOATS, FLOATS_AND_COMPLEX, INDEX, NUMBERS, REAL_NUMBERS, SIGNED_NUMBERS, dtypes,
};

const REAL: &[&str] = &[
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
];
const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

pub(crate) static OPS: [OpDef; 8] = [
    OpDef {
        name: "Add",
        attrs: &[
            "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
        ],
        gradient: Gradient::Rule(add_grad),
        kernels: &[
            cpu(&[("T", dtypes![SIGNED_NUMBERS, &[DType::U8]])], |node| {
                binary(node, Binary::Add)
            }),
            cpu(&[("T", &[DType::String])], build_strings),
        ],
        examples: &[
            ex(
                "same shape",
                &[x(&[2], &[1.0, 2.0]), x(&[2], &[10.0, 20.0])],
                &[x(&[2], &[11.0, 22.0])],
            ),
            ex(
                "strings are joined",
                &[strs(&[2, 1], &["a", ""]), strs(&[2], &["x", "yz"])],
                &[strs(&[2, 2], &["ax", "ayz", "x", "yz"])],
            ),
            ex(
                "string scalars",
                &[strs(&[], &["ab"]), strs(&[], &["c"])],
                &[strs(&[], &["abc"])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "AddV2",
        attrs: &[
            "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}",
        ],
        commutative: true,
        aggregate: true,
        gradient: Gradient::Rule(add_grad),
        kernels: &[cpu(&[("T", NUMBERS)], |node| binary(node, Binary::Add))],
        examples: &[
            ex(
                "same shape",
                &[
                    x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    x(&[2, 2], &[10.0, 20.0, 30.0, 40.0]),
                ],
                &[x(&[2, 2], &[11.0, 22.0, 33.0, 44.0])],
            ),
            ex(
                "scalars",
                &[x(&[], &[1.0]), x(&[], &[2.0])],
                &[x(&[], &[3.0])],
            ),
            ex(
                "scalar on the right",
                &[x(&[3], &[1.0, 2.0, 3.0]), x(&[], &[10.0])],
                &[x(&[3], &[11.0, 12.0, 13.0])],
            ),
            ex(
                "row",
                &[
                    x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                    x(&[3], &[10.0, 20.0, 30.0]),
                ],
                &[x(&[2, 3], &[11.0, 22.0, 33.0, 14.0, 25.0, 36.0])],
            ),
            ex(
                "column and row",
                &[x(&[2, 1], &[1.0, 2.0]), x(&[3], &[10.0, 20.0, 30.0])],
                &[x(&[2, 3], &[11.0, 21.0, 31.0, 12.0, 22.0, 32.0])],
            ),
            ex(
                "leading ones",
                &[x(&[2], &[1.0, 2.0]), x(&[1, 1, 2], &[3.0, 4.0])],
                &[x(&[1, 1, 2], &[4.0, 6.0])],
            ),
            ex(
                "empty",
                &[x(&[0, 2], &[]), x(&[1, 2], &[1.0, 2.0])],
                &[x(&[0, 2], &[])],
            ),
            ex(
                "integers wrap",
                &[of(DType::I8, &[1], &[127.0]), of(DType::I8, &[1], &[1.0])],
                &[of(DType::I8, &[1], &[-128.0])],
            ),
            ex_err(
                "shapes that do not fit",
                &[],
                &[x(&[2], &[1.0, 2.0]), x(&[3], &[1.0, 2.0, 3.0])],
                Code::InvalidArgument,
                "Incompatible shapes: [2] vs. [3]",
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Sub",
        attrs: &[
            "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}",
        ],
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let minus = g.neg(grad)?;
            g.unbroadcast([grad, minus])
        }),
        kernels: &[cpu(&[("T", NUMBERS)], |node| binary(node, Binary::Sub))],
        examples: &[
            ex(
                "same shape",
                &[x(&[2], &[10.0, 20.0]), x(&[2], &[1.0, 2.0])],
                &[x(&[2], &[9.0, 18.0])],
            ),
            ex(
                "scalar on the left",
                &[x(&[], &[10.0]), x(&[3], &[1.0, 2.0, 3.0])],
                &[x(&[3], &[9.0, 8.0, 7.0])],
            ),
            ex(
                "row on the left",
                &[x(&[2], &[10.0, 20.0]), x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
                &[x(&[2, 2], &[9.0, 18.0, 7.0, 16.0])],
            ),
            ex(
                "unsigned wrap",
                &[of(DType::U8, &[], &[1.0]), of(DType::U8, &[], &[2.0])],
                &[of(DType::U8, &[], &[255.0])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Mul",
        attrs: NUMBER,
        commutative: true,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let (cx, cy) = (g.conj_input(0)?, g.conj_input(1)?);
            let (gx, gy) = (g.mul(grad, cy)?, g.mul(cx, grad)?);
            g.unbroadcast([gx, gy])
        }),
        kernels: &[cpu(&[("T", NUMBERS)], |node| binary(node, Binary::Mul))],
        examples: &[
            ex(
                "same shape",
                &[x(&[2], &[3.0, 4.0]), x(&[2], &[5.0, 6.0])],
                &[x(&[2], &[15.0, 24.0])],
            ),
            ex(
                "column",
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), x(&[2, 1], &[10.0, 5.0])],
                &[x(&[2, 2], &[10.0, 20.0, 15.0, 20.0])],
            ),
            ex(
                "complex",
                &[complex(&[1], &[(1.0, 2.0)]), complex(&[1], &[(3.0, -1.0)])],
                &[complex(&[1], &[(5.0, 5.0)])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "MulNoNan",
        attrs: &["T: {bfloat16, half, float, double, complex64, complex128}"],
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let (x, y) = (g.input(0), g.input(1));
            let gx = g.apply("MulNoNan", &[grad, y])?;
            let gy = g.apply("MulNoNan", &[x, grad])?;
            g.unbroadcast([gx, gy])
        }),
        kernels: &[cpu(&[("T", FLOATS_AND_COMPLEX)], |node| {
            binary(node, Binary::MulNoNan)
        })],
        examples: &[ex(
            "zero on the right wins",
            &[
                f32s(&[4], &[NAN, INF, 2.0, NAN]),
                f32s(&[4], &[0.0, 0.0, 4.0, 1.0]),
            ],
            &[f32s(&[4], &[0.0, 0.0, 8.0, NAN])],
        )],
        ..BINARY
    },
    OpDef {
        name: "Maximum",
        attrs: REAL,
        gradient: Gradient::Rule(|g| selected_grad(g, "GreaterEqual")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            binary(node, Binary::Maximum)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], &[1.0, 5.0, 3.0]), x(&[3], &[2.0, 4.0, 7.0])],
                &[x(&[3], &[2.0, 5.0, 7.0])],
            ),
            ex(
                "NaN wins",
                &[x(&[2], &[NAN, 1.0]), x(&[2], &[1.0, NAN])],
                &[x(&[2], &[NAN, NAN])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "Minimum",
        attrs: REAL,
        gradient: Gradient::Rule(|g| selected_grad(g, "LessEqual")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            binary(node, Binary::Minimum)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], &[1.0, 5.0, 4.0]), x(&[], &[3.0])],
                &[x(&[3], &[1.0, 3.0, 3.0])],
            ),
            ex(
                "NaN wins",
                &[x(&[2], &[NAN, 1.0]), x(&[2], &[1.0, NAN])],
                &[x(&[2], &[NAN, NAN])],
            ),
        ],
        ..BINARY
    },
    OpDef {
        name: "SquaredDifference",
        attrs: &["T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"],
        commutative: true,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let twice = g.scaled(grad, 2.0)?;
            let difference = g.sub(g.input(0), g.input(1))?;
            let gx = g.mul(twice, difference)?;
            let gy = g.neg(gx)?;
            g.unbroadcast([gx, gy])
        }),
        kernels: &[cpu(&[("T", dtypes![FLOATS, INDEX, COMPLEX])], |node| {
            binary(node, Binary::SquaredDifference)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], &[1.0, 5.0, 3.0]), x(&[3], &[2.0, 2.0, 3.0])],
                &[x(&[3], &[1.0, 9.0, 0.0])],
            ),
            ex(
                "complex is real",
                &[complex(&[1], &[(1.0, 2.0)]), complex(&[1], &[(0.0, 4.0)])],
                &[complex(&[1], &[(5.0, 0.0)])],
            ),
        ],
        ..BINARY
    },
];

fn add_grad(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    g.unbroadcast([grad, grad])
}

/// The gradient goes to `x` where `x op y`, else to `y`.
fn selected_grad(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let zeros = g.f("ZerosLike", grad)?;
    let mask = g.apply(op, &[g.input(0), g.input(1)])?;
    let gx = g.apply("SelectV2", &[mask, grad, zeros])?;
    let gy = g.apply("SelectV2", &[mask, zeros, grad])?;
    g.unbroadcast([gx, gy])
}

fn build_strings(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        let (_, shape) = broadcast(x.shape(), y.shape())?;
        let left = expanded(x.slice::<TString>()?, x.shape(), &shape);
        let right = expanded(y.slice::<TString>()?, y.shape(), &shape);
        let joined = left.iter().zip(right.iter()).map(|(x, y)| {
            let mut both = Vec::with_capacity(x.len() + y.len());
            both.extend_from_slice(x);
            both.extend_from_slice(y);
            TString::from(both)
        });
        let z = Tensor::from_vec(shape.clone(), joined.collect())?;
        ctx.set(0, z);
        Ok(())
    })
}
