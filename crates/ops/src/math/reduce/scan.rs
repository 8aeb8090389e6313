//! `Cumsum`, `Cumprod`, `CumulativeLogsumexp`: sums and products of all elements so far along an axis.
//!
//! TensorFlow: Op(x: T, axis: Tidx) -> out: T, attrs exclusive (without the element itself) and reverse (from the end).

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, ex_ref, i32s, i64s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::reduce::{Axis, Scan, ScanElement, cumulate};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element};

use crate::by_number;
use crate::math::calculus::{Calculus, first_of};
use crate::math::elementwise::{input_dtype, lengths, no_function};
use crate::types::{FLOATS, INDEX, NUMBERS};

const NUMBER: &[&str] = &[
    "exclusive: bool = false",
    "reverse: bool = false",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    "Tidx: {int32, int64} = DT_INT32",
];

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "Cumsum",
        attrs: NUMBER,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let sum = scanned(g, "Cumsum", grad, true)?;
            first_of(2, sum)
        }),
        kernels: &[cpu(&[("T", NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Scan::Sum)
        })],
        examples: &[
            ex(
                "rows",
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[], &[1])],
                &[x(&[2, 3], &[1.0, 3.0, 6.0, 4.0, 9.0, 15.0])],
            ),
            ex(
                "columns",
                &[ramp(&[2, 3], 1.0, 1.0), i64s(&[], &[-2])],
                &[x(&[2, 3], &[1.0, 2.0, 3.0, 5.0, 7.0, 9.0])],
            ),
            ex_attrs(
                "exclusive",
                &[("exclusive", "true")],
                &[ramp(&[3], 1.0, 1.0), i32s(&[], &[0])],
                &[x(&[3], &[0.0, 1.0, 3.0])],
            ),
            ex_attrs(
                "from the end",
                &[("reverse", "true")],
                &[ramp(&[3], 1.0, 1.0), i32s(&[], &[0])],
                &[x(&[3], &[6.0, 5.0, 3.0])],
            ),
            ex_attrs(
                "exclusive from the end",
                &[("exclusive", "true"), ("reverse", "true")],
                &[ramp(&[2, 2], 1.0, 1.0), i32s(&[], &[0])],
                &[x(&[2, 2], &[3.0, 4.0, 0.0, 0.0])],
            ),
            ex(
                "empty",
                &[x(&[0, 2], &[]), i32s(&[], &[0])],
                &[x(&[0, 2], &[])],
            ),
            ex_err(
                "axis out of range",
                &[],
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[], &[2])],
                Code::InvalidArgument,
                "in the range [-2, 2), but got 2",
            ),
        ],
        ..SCAN
    },
    OpDef {
        name: "Cumprod",
        attrs: NUMBER,
        gradient: Gradient::Rule(|g| {
            let grad = g.grad(0)?;
            let product = scanned(g, "Cumprod", g.input(0), false)?;
            let product = g.mul(product, grad)?;
            let sum = scanned(g, "Cumsum", product, true)?;
            let grad = g.apply("DivNoNan", &[sum, g.input(0)])?;
            first_of(2, grad)
        }),
        kernels: &[cpu(&[("T", NUMBERS), ("Tidx", INDEX)], |node| {
            build(node, Scan::Prod)
        })],
        examples: &[
            ex(
                "rows",
                &[ramp(&[2, 3], 1.0, 1.0), i32s(&[], &[1])],
                &[x(&[2, 3], &[1.0, 2.0, 6.0, 4.0, 20.0, 120.0])],
            ),
            ex_attrs(
                "exclusive from the end",
                &[("exclusive", "true"), ("reverse", "true")],
                &[ramp(&[3], 2.0, 1.0), i32s(&[], &[0])],
                &[x(&[3], &[12.0, 4.0, 1.0])],
            ),
        ],
        ..SCAN
    },
    OpDef {
        name: "CumulativeLogsumexp",
        attrs: &[
            "exclusive: bool = false",
            "reverse: bool = false",
            "T: {bfloat16, half, float, double}",
            "Tidx: {int32, int64} = DT_INT32",
        ],
        gradient: Gradient::Rule(log_sum_exp_grad),
        kernels: &[cpu(&[("T", FLOATS), ("Tidx", INDEX)], |node| {
            build(node, Scan::LogSumExp)
        })],
        examples: &[
            ex_ref("rows", &[], &[ramp(&[2, 3], -1.0, 0.5), i32s(&[], &[1])]),
            ex_ref(
                "from the end",
                &[("reverse", "true")],
                &[ramp(&[2, 3], -1.0, 0.5), i32s(&[], &[-1])],
            ),
            ex_ref(
                "exclusive",
                &[("exclusive", "true")],
                &[ramp(&[4], -1.0, 0.5), i32s(&[], &[0])],
            ),
            ex_ref(
                "nothing yet",
                &[],
                &[
                    x(&[3], &[f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0]),
                    i32s(&[], &[0]),
                ],
            ),
        ],
        ..SCAN
    },
];

const SCAN: OpDef = OpDef {
    inputs: &["x: T", "axis: Tidx"],
    outputs: &["out: T"],
    infer: infer::same_as_first,
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

/// A scan along the node's axis, as the node's or from its other end.
fn scanned(g: &mut GradCtx<'_>, op: &str, value: Output, turned: bool) -> Result<Output> {
    let exclusive = g.attr("exclusive")?;
    let reverse = g.attrs().bool("reverse")? != turned;
    let axis = g.input(1);
    let node = g.builder().op(op).input(value).input(axis);
    node.attr("exclusive", exclusive)
        .attr("reverse", reverse)
        .output()
}

/// The positive and the negative part of the gradient apart, each in logarithms.
fn log_sum_exp_grad(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let dtype = g.dtype(grad);
    let lowest = g.constant(lowest(dtype), dtype)?;
    let zero = g.constant(0.0, dtype)?;
    let minus = g.neg(grad)?;
    let mut parts = Vec::with_capacity(2);
    for (test, value) in [("Greater", grad), ("Less", minus)] {
        let mask = g.apply(test, &[grad, zero])?;
        let log = g.f("Log", value)?;
        let log = g.apply("SelectV2", &[mask, log, lowest])?;
        let difference = g.sub(log, g.output(0))?;
        let scan = scanned(g, "CumulativeLogsumexp", difference, true)?;
        let sum = g.add(scan, g.input(0))?;
        parts.push(g.f("Exp", sum)?);
    }
    let grad = g.sub(parts[0], parts[1])?;
    first_of(2, grad)
}

/// The lowest finite value.
fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -65504.0,
        DType::BF16 => -3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MIN),
        _ => f64::MIN,
    }
}

fn build(node: &NodeInfo, scan: Scan) -> Result<AnyKernel> {
    let flags = (node.attrs.bool("exclusive")?, node.attrs.bool("reverse")?);
    let dtype = input_dtype(node);
    by_number!(dtype, T => build_of::<T>(scan, flags), else => Err(no_function(scan, dtype)))
}

fn build_of<T: Element + ScanElement>(scan: Scan, flags: (bool, bool)) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let axis = axis_of(ctx)?;
        let input = ctx.input(0)?;
        let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
        let (from, into) = (input.slice::<T>()?, out.slice_mut::<T>()?);
        cumulate(ctx.par(), scan, flags, axis, from, into);
        ctx.set(0, out);
        Ok(())
    })
}

fn axis_of(ctx: &KernelCtx<'_>) -> Result<Axis> {
    let axis = ctx.input(1)?.shape();
    if axis.rank() != 0 {
        return Err(invalid_argument!(
            "ScanOp: axis must be a scalar, not {axis}"
        ));
    }
    let (asked, shape) = (ctx.int(1)?, ctx.input(0)?.shape());
    let rank = shape.rank() as i64;
    let axis = if asked < 0 { asked + rank } else { asked };
    if axis < 0 || axis >= rank {
        return Err(invalid_argument!(
            "ScanOp: Expected scan axis in the range [{}, {rank}), but got {asked}",
            -rank
        ));
    }
    Ok(Axis::new(&lengths(shape), axis as usize))
}
