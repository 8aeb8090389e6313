//! Comparisons: the table of six, and `ApproximateEqual`.
//!
//! TensorFlow: Op(x: T, y: T) -> z: bool, broadcasting. `Equal` and `NotEqual` take every type that can be compared and have
//! the attr incompatible_shape_error: if false, shapes that do not fit make the tensors unequal as a whole.

use std::fmt::Debug;

use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, f32s, f64s, of, strs, x};
use tensorfleet_graph::infer::{InferCtx, broadcast_shapes};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::binary::{Compare, CompareElement, compare};
use tensorfleet_math::num::Real;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, TString, Tensor};

use super::elementwise::{broadcast, expanded, input_dtype, no_function, status};
use super::unary::complex;
use crate::by_number;
use crate::types::{QUANTIZED, REAL_NUMBERS, SINGLE_AND_DOUBLE, VALUES, dtypes};

const REAL: &[&str] = &[
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
];
const ANY: &[&str] = &["T: type", "incompatible_shape_error: bool = true"];
const COMPARABLE: &[DType] = dtypes![VALUES, QUANTIZED];
const NAN: f64 = f64::NAN;
const LEFT: &[f64] = &[1.0, 2.0, 3.0];
const RIGHT: &[f64] = &[2.0, 2.0, 2.0];

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "Equal",
        attrs: ANY,
        commutative: true,
        infer: infer_equality,
        kernels: &[cpu(&[("T", COMPARABLE)], |node| {
            equality(node, Compare::Equal)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], LEFT), x(&[3], RIGHT)],
                &[bools(&[3], &[false, true, false])],
            ),
            ex(
                "scalars",
                &[x(&[], &[4.0]), x(&[], &[4.0])],
                &[bools(&[], &[true])],
            ),
            ex(
                "NaN and zeros",
                &[x(&[3], &[NAN, 0.0, 1.0]), x(&[3], &[NAN, -0.0, 1.0])],
                &[bools(&[3], &[false, true, true])],
            ),
            ex(
                "strings",
                &[strs(&[2, 1], &["a", ""]), strs(&[2], &["a", "b"])],
                &[bools(&[2, 2], &[true, false, false, false])],
            ),
            ex(
                "bools",
                &[bools(&[2], &[true, false]), bools(&[], &[false])],
                &[bools(&[2], &[false, true])],
            ),
            ex(
                "complex",
                &[
                    complex(&[2], &[(1.0, 2.0), (1.0, 0.0)]),
                    complex(&[2], &[(1.0, 2.0), (1.0, 2.0)]),
                ],
                &[bools(&[2], &[true, false])],
            ),
            ex(
                "empty",
                &[x(&[0], &[]), x(&[1], &[1.0])],
                &[bools(&[0], &[])],
            ),
            ex_attrs(
                "shapes that do not fit are unequal",
                &[("incompatible_shape_error", "false")],
                &[x(&[2], &[1.0, 2.0]), x(&[3], LEFT)],
                &[bools(&[], &[false])],
            ),
            ex_err(
                "shapes that do not fit",
                &[],
                &[x(&[2], &[1.0, 2.0]), x(&[3], LEFT)],
                Code::InvalidArgument,
                "Incompatible shapes: [2] vs. [3]",
            ),
        ],
        ..COMPARISON
    },
    OpDef {
        name: "NotEqual",
        attrs: ANY,
        commutative: true,
        infer: infer_equality,
        kernels: &[cpu(&[("T", COMPARABLE)], |node| {
            equality(node, Compare::NotEqual)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], LEFT), x(&[3], RIGHT)],
                &[bools(&[3], &[true, false, true])],
            ),
            ex(
                "NaN",
                &[x(&[2], &[NAN, 1.0]), x(&[2], &[NAN, 1.0])],
                &[bools(&[2], &[true, false])],
            ),
            ex(
                "strings",
                &[strs(&[2], &["a", "b"]), strs(&[], &["a"])],
                &[bools(&[2], &[false, true])],
            ),
            ex_attrs(
                "shapes that do not fit are unequal",
                &[("incompatible_shape_error", "false")],
                &[x(&[2], &[1.0, 2.0]), x(&[3], LEFT)],
                &[bools(&[], &[true])],
            ),
        ],
        ..COMPARISON
    },
    OpDef {
        name: "Less",
        attrs: REAL,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            ordering(node, Compare::Less)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], LEFT), x(&[3], RIGHT)],
                &[bools(&[3], &[true, false, false])],
            ),
            ex(
                "NaN",
                &[x(&[2], &[NAN, 1.0]), x(&[2], &[1.0, NAN])],
                &[bools(&[2], &[false, false])],
            ),
            ex(
                "scalar",
                &[x(&[], &[1.0]), x(&[], &[2.0])],
                &[bools(&[], &[true])],
            ),
            ex(
                "signs",
                &[of(DType::I64, &[], &[-1.0]), of(DType::I64, &[], &[1.0])],
                &[bools(&[], &[true])],
            ),
        ],
        ..COMPARISON
    },
    OpDef {
        name: "LessEqual",
        attrs: REAL,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            ordering(node, Compare::LessEqual)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], LEFT), x(&[], &[2.0])],
                &[bools(&[3], &[true, true, false])],
            ),
            ex(
                "NaN",
                &[x(&[2], &[NAN, 1.0]), x(&[2], &[1.0, NAN])],
                &[bools(&[2], &[false, false])],
            ),
        ],
        ..COMPARISON
    },
    OpDef {
        name: "Greater",
        attrs: REAL,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            ordering(node, Compare::Greater)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], LEFT), x(&[3], RIGHT)],
                &[bools(&[3], &[false, false, true])],
            ),
            ex(
                "column and row",
                &[x(&[2, 1], &[1.0, 2.0]), x(&[2], &[0.0, 1.0])],
                &[bools(&[2, 2], &[true, false, true, true])],
            ),
        ],
        ..COMPARISON
    },
    OpDef {
        name: "GreaterEqual",
        attrs: REAL,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            ordering(node, Compare::GreaterEqual)
        })],
        examples: &[
            ex(
                "numbers",
                &[x(&[3], LEFT), x(&[3], RIGHT)],
                &[bools(&[3], &[false, true, true])],
            ),
            ex(
                "scalar on the left",
                &[x(&[], &[2.0]), x(&[3], LEFT)],
                &[bools(&[3], &[true, true, false])],
            ),
        ],
        ..COMPARISON
    },
    OpDef {
        name: "ApproximateEqual",
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
            "tolerance: float = 1e-05",
        ],
        commutative: true,
        infer: infer::all_same,
        kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], approximate)],
        examples: &[
            ex(
                "default tolerance",
                &[
                    f64s(&[3], &[1.0, 1.0, 1.0]),
                    f64s(&[3], &[1.000_001, 1.0001, 1.0]),
                ],
                &[bools(&[3], &[true, false, true])],
            ),
            ex_attrs(
                "wide tolerance",
                &[("tolerance", "0.5")],
                &[f32s(&[3], &[1.0, 1.0, NAN]), f32s(&[3], &[1.25, 1.5, NAN])],
                &[bools(&[3], &[true, true, false])],
            ),
            ex_err(
                "shapes differ",
                &[],
                &[f32s(&[2], &[1.0, 2.0]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "x and y must be of the same shape",
            ),
        ],
        ..COMPARISON
    },
];

const COMPARISON: OpDef = OpDef {
    inputs: &["x: T", "y: T"],
    outputs: &["z: bool"],
    infer: infer::broadcast,
    gradient: Gradient::Stop("a comparison has no derivative"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

fn infer_equality(ctx: &mut InferCtx<'_>) -> Result<()> {
    let (x, y) = (ctx.input(0), ctx.input(1));
    let is_known = x.to_shape().is_some() && y.to_shape().is_some();
    if is_known || ctx.attrs().bool("incompatible_shape_error")? {
        ctx.set(0, broadcast_shapes(x, y)?);
    }
    Ok(())
}

fn equality(node: &NodeInfo, op: Compare) -> Result<AnyKernel> {
    // Unequal as a whole where shapes do not fit, unless that is an error.
    let misfit = match node.attrs.bool("incompatible_shape_error")? {
        true => None,
        false => Some(op == Compare::NotEqual),
    };
    let dtype = input_dtype(node);
    match dtype {
        DType::Bool => comparison::<bool>(op, misfit),
        DType::String => strings(op, misfit),
        DType::QI8 => quantized::<i8>(op, misfit),
        DType::QU8 => quantized::<u8>(op, misfit),
        DType::QI16 => quantized::<i16>(op, misfit),
        DType::QU16 => quantized::<u16>(op, misfit),
        DType::QI32 => quantized::<i32>(op, misfit),
        _ => {
            by_number!(dtype, T => comparison::<T>(op, misfit), else => Err(no_function(op, dtype)))
        }
    }
}

fn ordering(node: &NodeInfo, op: Compare) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_number!(dtype, T => comparison::<T>(op, None), else => Err(no_function(op, dtype)))
}

fn comparison<T: Element + CompareElement>(op: Compare, misfit: Option<bool>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let z = compared::<T>(ctx, op, misfit, ctx.input(0)?, ctx.input(1)?)?;
        ctx.set(0, z);
        Ok(())
    })
}

fn quantized<T: Element + CompareElement>(op: Compare, misfit: Option<bool>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.take(0)?.reinterpreted(T::DTYPE)?;
        let y = ctx.take(1)?.reinterpreted(T::DTYPE)?;
        let z = compared::<T>(ctx, op, misfit, &x, &y)?;
        ctx.set(0, z);
        Ok(())
    })
}

fn compared<T: Element + CompareElement>(
    ctx: &KernelCtx<'_>,
    op: Compare,
    misfit: Option<bool>,
    x: &Tensor,
    y: &Tensor,
) -> Result<Tensor> {
    if x.rank() == 0 && y.rank() == 0 {
        let mut z = [false];
        T::run(op, x.slice::<T>()?, y.slice::<T>()?, &mut z);
        return Ok(Tensor::scalar(z[0]));
    }
    let (plan, shape) = match (broadcast(x.shape(), y.shape()), misfit) {
        (Ok(found), _) => found,
        (Err(_), Some(answer)) => return Ok(Tensor::scalar(answer)),
        (Err(status), None) => return Err(status),
    };
    let mut z = ctx.allocate(DType::Bool, shape)?;
    let (x, y) = (x.slice::<T>()?, y.slice::<T>()?);
    compare(ctx.par(), op, &plan, x, y, z.slice_mut::<bool>()?).map_err(status)?;
    Ok(z)
}

fn strings(op: Compare, misfit: Option<bool>) -> Result<AnyKernel> {
    let wanted = op == Compare::Equal;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        let shape = match (broadcast(x.shape(), y.shape()), misfit) {
            (Ok((_, shape)), _) => shape,
            (Err(_), Some(answer)) => {
                ctx.set(0, Tensor::scalar(answer));
                return Ok(());
            }
            (Err(status), None) => return Err(status),
        };
        let left = expanded(x.slice::<TString>()?, x.shape(), &shape);
        let right = expanded(y.slice::<TString>()?, y.shape(), &shape);
        let pairs = left.iter().zip(right.iter());
        let z = pairs.map(|(x, y)| (x == y) == wanted).collect();
        let z = Tensor::from_vec(shape.clone(), z)?;
        ctx.set(0, z);
        Ok(())
    })
}

fn approximate(node: &NodeInfo) -> Result<AnyKernel> {
    let tolerance = f64::from(node.attrs.float("tolerance")?);
    match input_dtype(node) {
        DType::F32 => approximate_of::<f32>(tolerance),
        DType::F64 => approximate_of::<f64>(tolerance),
        other => Err(no_function("ApproximateEqual", other)),
    }
}

fn approximate_of<T: Element + Real + Debug>(tolerance: f64) -> Result<AnyKernel> {
    let tolerance = T::from_f64(tolerance);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (x, y) = (ctx.input(0)?, ctx.input(1)?);
        if x.shape() != y.shape() {
            return Err(invalid_argument!(
                "x and y must be of the same shape. x shape: {}. y shape: {}",
                x.shape(),
                y.shape()
            ));
        }
        let mut z = ctx.allocate(DType::Bool, x.shape().clone())?;
        let pairs = x.slice::<T>()?.iter().zip(y.slice::<T>()?);
        for (z, (x, y)) in z.slice_mut::<bool>()?.iter_mut().zip(pairs) {
            let difference = x.sub(*y);
            *z = difference <= tolerance && T::ZERO.sub(tolerance) <= difference;
        }
        ctx.set(0, z);
        Ok(())
    })
}
