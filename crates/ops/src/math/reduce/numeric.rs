//! Sums, means, products, extremes and norms over axes.
//!
//! TensorFlow: Op(input: T, reduction_indices: Tidx) -> output: T, attr keep_dims. Axes may be negative; none leaves the input
//! as it is. Sums of floats are paired, so they differ from TensorFlow's in the last bits.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s, of, ramp, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::reduce::{self, Reduce, ReduceElement};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, Element};

use super::{Plan, gradient, infer};
use crate::by_number;
use crate::math::elementwise::{input_dtype, no_function};
use crate::math::unary::complex;
use crate::types::{INDEX, NUMBERS, REAL_NUMBERS};

const NUMBER: &[&str] = &[
    "keep_dims: bool = false",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    "Tidx: {int32, int64} = DT_INT32",
];
const ORDERED: &[&str] = &[
    "keep_dims: bool = false",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}",
    "Tidx: {int32, int64} = DT_INT32",
];
const NAN: f64 = f64::NAN;

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "Sum",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::sum),
        kernels: &[cpu(&[("T", NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Reduce::Sum)
        })],
        examples: &[
            ex(
                "rows",
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[], &[1])],
                &[x(&[2], &[6.0, 15.0])],
            ),
            ex(
                "columns",
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[1], &[-2])],
                &[x(&[3], &[5.0, 7.0, 9.0])],
            ),
            ex(
                "all",
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[2], &[0, 1])],
                &[x(&[], &[21.0])],
            ),
            ex(
                "outer and inner",
                &[ramp(&[2, 2, 2], 1.0, 1.0), i64s(&[2], &[2, 0])],
                &[x(&[2], &[14.0, 22.0])],
            ),
            ex(
                "middle",
                &[ramp(&[2, 2, 2], 1.0, 1.0), i32s(&[1], &[1])],
                &[x(&[2, 2], &[4.0, 6.0, 12.0, 14.0])],
            ),
            ex_attrs(
                "dimensions kept",
                &[("keep_dims", "true")],
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[1], &[1])],
                &[x(&[2, 1], &[6.0, 15.0])],
            ),
            ex(
                "no axes",
                &[ramp(&[2, 2], 1.0, 1.0), i32s(&[0], &[])],
                &[ramp(&[2, 2], 1.0, 1.0)],
            ),
            ex(
                "scalar",
                &[x(&[], &[3.0]), i32s(&[0], &[])],
                &[x(&[], &[3.0])],
            ),
            ex(
                "of nothing",
                &[x(&[0, 2], &[]), i32s(&[], &[0])],
                &[x(&[2], &[0.0])],
            ),
            ex(
                "to nothing",
                &[x(&[0, 2], &[]), i32s(&[], &[1])],
                &[x(&[0], &[])],
            ),
            ex(
                "integers wrap",
                &[of(DType::I8, &[2], &[127.0, 2.0]), i32s(&[], &[0])],
                &[of(DType::I8, &[], &[-127.0])],
            ),
            ex_err(
                "axis out of range",
                &[],
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[], &[2])],
                Code::InvalidArgument,
                "(2 for input with 2 dimension(s)",
            ),
            ex_err(
                "axis twice",
                &[],
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[2], &[0, -2])],
                Code::InvalidArgument,
                "duplicate dimension: 0",
            ),
        ],
        ..REDUCTION
    },
    OpDef {
        name: "Mean",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::mean),
        kernels: &[cpu(&[("T", NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Reduce::Mean)
        })],
        examples: &[
            ex(
                "rows",
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[], &[1])],
                &[x(&[2], &[2.0, 5.0])],
            ),
            ex_attrs(
                "all, dimensions kept",
                &[("keep_dims", "true")],
                &[ramp(&[1, 3, 1], 1.0, 1.0), i32s(&[3], &[0, 1, 2])],
                &[x(&[1, 1, 1], &[2.0])],
            ),
            ex(
                "integers truncate",
                &[of(DType::I32, &[3], &[-1.0, -2.0, -5.0]), i32s(&[], &[0])],
                &[of(DType::I32, &[], &[-2.0])],
            ),
            ex(
                "integers do not wrap",
                &[of(DType::I8, &[3], &[100.0]), i32s(&[], &[0])],
                &[of(DType::I8, &[], &[100.0])],
            ),
            ex(
                "of nothing",
                &[of(DType::F32, &[0, 2], &[]), i32s(&[], &[0])],
                &[of(DType::F32, &[2], &[NAN])],
            ),
            ex(
                "of no integers",
                &[of(DType::I32, &[0, 2], &[]), i32s(&[], &[0])],
                &[of(DType::I32, &[2], &[0.0])],
            ),
        ],
        ..REDUCTION
    },
    OpDef {
        name: "Prod",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::prod),
        kernels: &[cpu(&[("T", NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Reduce::Prod)
        })],
        examples: &[
            ex(
                "rows",
                &[x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), i32s(&[], &[1])],
                &[x(&[2], &[6.0, 120.0])],
            ),
            ex(
                "zeros",
                &[x(&[3, 2], &[1.0, 0.0, 0.0, 3.0, 0.0, 4.0]), i32s(&[], &[0])],
                &[x(&[2], &[0.0, 0.0])],
            ),
            ex(
                "outer and inner",
                &[x(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]), i32s(&[2], &[0, -1])],
                &[x(&[1], &[24.0])],
            ),
            ex(
                "of nothing",
                &[x(&[0], &[]), i32s(&[], &[0])],
                &[x(&[], &[1.0])],
            ),
        ],
        ..REDUCTION
    },
    OpDef {
        name: "Max",
        attrs: ORDERED,
        gradient: Gradient::Rule(gradient::extreme),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Reduce::Max)
        })],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "rows",
                &[x(&[2, 3], &[1.0, 5.0, 3.0, 9.0, 2.0, 6.0]), i32s(&[], &[1])],
                &[x(&[2], &[5.0, 9.0])],
            ),
            ex(
                "columns",
                &[x(&[2, 2], &[1.0, 5.0, 3.0, 2.0]), i64s(&[1], &[0])],
                &[x(&[2], &[3.0, 5.0])],
            ),
            ex(
                "NaN wins",
                &[x(&[2, 2], &[1.0, NAN, 3.0, 2.0]), i32s(&[], &[1])],
                &[x(&[2], &[NAN, 3.0])],
            ),
            ex(
                "of nothing",
                &[of(DType::F32, &[0], &[]), i32s(&[], &[0])],
                &[of(DType::F32, &[], &[f64::NEG_INFINITY])],
            ),
            ex(
                "of no integers",
                &[of(DType::I16, &[0], &[]), i32s(&[], &[0])],
                &[of(DType::I16, &[], &[-32768.0])],
            ),
        ],
        ..REDUCTION
    },
    OpDef {
        name: "Min",
        attrs: ORDERED,
        gradient: Gradient::Rule(gradient::extreme),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Reduce::Min)
        })],
        exactness: Exactness::Bits,
        examples: &[
            ex_attrs(
                "rows, dimensions kept",
                &[("keep_dims", "true")],
                &[
                    x(&[2, 3], &[1.0, 5.0, 3.0, 9.0, 2.0, 6.0]),
                    i32s(&[], &[-1]),
                ],
                &[x(&[2, 1], &[1.0, 2.0])],
            ),
            ex(
                "of nothing",
                &[of(DType::U8, &[0], &[]), i32s(&[], &[0])],
                &[of(DType::U8, &[], &[255.0])],
            ),
        ],
        ..REDUCTION
    },
    OpDef {
        name: "EuclideanNorm",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::norm),
        kernels: &[cpu(&[("T", NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Reduce::EuclideanNorm)
        })],
        examples: &[
            ex(
                "rows",
                &[x(&[2, 2], &[3.0, 4.0, 0.0, 2.0]), i32s(&[], &[1])],
                &[x(&[2], &[5.0, 2.0])],
            ),
            ex(
                "complex",
                &[complex(&[2], &[(3.0, 4.0), (0.0, 12.0)]), i32s(&[], &[0])],
                &[complex(&[], &[(13.0, 0.0)])],
            ),
            ex(
                "one element each",
                &[of(DType::F32, &[2, 1], &[-3.0, 2.0]), i32s(&[], &[1])],
                &[of(DType::F32, &[2], &[3.0, 2.0])],
            ),
        ],
        ..REDUCTION
    },
];

const REDUCTION: OpDef = OpDef {
    inputs: &["input: T", "reduction_indices: Tidx"],
    outputs: &["output: T"],
    infer,
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

fn build(node: &NodeInfo, op: Reduce) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    let dtype = input_dtype(node);
    by_number!(dtype, T => build_of::<T>(op, keep_dims), else => Err(no_function(op, dtype)))
}

fn build_of<T: Element + ReduceElement>(op: Reduce, keep_dims: bool) -> Result<AnyKernel> {
    if !T::supports(op) {
        return Err(no_function(op, T::DTYPE));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let plan = Plan::new(ctx, keep_dims)?;
        // A norm of one element is its absolute value.
        if plan.is_trivial() && op != Reduce::EuclideanNorm {
            let out = ctx.take(0)?.reshaped(plan.shape)?;
            ctx.set(0, out);
            return Ok(());
        }
        let mut out = ctx.allocate(T::DTYPE, plan.shape)?;
        let input = ctx.input(0)?.slice::<T>()?;
        reduce::apply(ctx.par(), op, &plan.layout, input, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}
