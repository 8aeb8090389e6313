//! `UnsortedSegmentSum`, `UnsortedSegmentProd`, `UnsortedSegmentMax`, `UnsortedSegmentMin`: rows combined by segment id, in any
//! order.
//!
//! TensorFlow: Op(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T. The shape of the ids is the
//! beginning of the data's; a row with a negative id is left out. A segment without rows is 0 for sums, 1 for products, the
//! lowest value for `Max` and the highest for `Min`.

use tensorfleet_graph::example::{ex, ex_err, i32s, i64s, of, ramp, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::segment::{self, Segment, SegmentElement};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, UNKNOWN_DIM};

use super::{gradient, positions};
use crate::by_number;
use crate::math::elementwise::{input_dtype, no_function};
use crate::types::{INDEX, NUMBERS, REAL_NUMBERS};

const IDS: &[DType] = &[DType::I16, DType::I32, DType::I64];
const NUMBER: &str = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";
const REAL: &str =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
const COUNT: &str = "Tnumsegments: {int32, int64} = DT_INT32";

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "UnsortedSegmentSum",
        attrs: &[NUMBER, "Tindices: {int16, int32, int64}", COUNT],
        gradient: Gradient::Rule(gradient::unsorted_sum),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", IDS)], |node| {
            build(node, Segment::Sum)
        })],
        examples: &[
            ex(
                "any order, one left out",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[4], &[2, 0, 2, -1]),
                    i32s(&[], &[4]),
                ],
                &[x(&[4, 2], &[3.0, 4.0, 0.0, 0.0, 6.0, 8.0, 0.0, 0.0])],
            ),
            ex(
                "ids of higher rank",
                &[
                    ramp(&[2, 2], 1.0, 1.0),
                    i64s(&[2, 2], &[1, 0, 1, 1]),
                    i64s(&[], &[2]),
                ],
                &[x(&[2], &[2.0, 8.0])],
            ),
            ex(
                "scalar id",
                &[ramp(&[2], 1.0, 1.0), i32s(&[], &[1]), i32s(&[], &[2])],
                &[x(&[2, 2], &[0.0, 0.0, 1.0, 2.0])],
            ),
            ex(
                "nothing to sum",
                &[x(&[0, 2], &[]), i32s(&[0], &[]), i32s(&[], &[1])],
                &[x(&[1, 2], &[0.0])],
            ),
            ex_err(
                "id out of range",
                &[],
                &[x(&[3], &[1.0]), i32s(&[3], &[0, 1, 4]), i32s(&[], &[4])],
                Code::InvalidArgument,
                "segment_ids[2] = 4 is out of range [0, 4)",
            ),
            ex_err(
                "id of a matrix out of range",
                &[],
                &[
                    x(&[2, 2], &[1.0]),
                    i32s(&[2, 2], &[0, 1, 4, 1]),
                    i32s(&[], &[4]),
                ],
                Code::InvalidArgument,
                "segment_ids[1,0] = 4 is out of range [0, 4)",
            ),
            ex_err(
                "shapes do not fit",
                &[],
                &[x(&[3, 2], &[1.0]), i32s(&[2], &[0, 1]), i32s(&[], &[4])],
                Code::InvalidArgument,
                "data.shape = [3,2] does not start with segment_ids.shape = [2]",
            ),
            ex_err(
                "negative number of segments",
                &[],
                &[x(&[1], &[1.0]), i32s(&[1], &[0]), i32s(&[], &[-1])],
                Code::InvalidArgument,
                "-1 must not be negative",
            ),
        ],
        ..SEGMENT
    },
    OpDef {
        name: "UnsortedSegmentProd",
        attrs: &[NUMBER, "Tindices: {int32, int64}", COUNT],
        gradient: Gradient::Rule(gradient::unsorted_prod),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Prod)
        })],
        examples: &[
            ex(
                "any order, one left out",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[4], &[2, 0, 2, -1]),
                    i32s(&[], &[3]),
                ],
                &[x(&[3, 2], &[3.0, 4.0, 1.0, 1.0, 5.0, 12.0])],
            ),
            ex(
                "zeros",
                &[
                    x(&[4], &[0.0, 2.0, 0.0, 0.0]),
                    i32s(&[4], &[0, 0, 1, 1]),
                    i32s(&[], &[2]),
                ],
                &[x(&[2], &[0.0, 0.0])],
            ),
        ],
        ..SEGMENT
    },
    OpDef {
        name: "UnsortedSegmentMax",
        attrs: &[REAL, "Tindices: {int32, int64}", COUNT],
        gradient: Gradient::Rule(gradient::unsorted_extreme),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Max)
        })],
        examples: &[
            ex(
                "any order, one left out",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[4], &[1, 0, 1, -1]),
                    i32s(&[], &[2]),
                ],
                &[x(&[2, 2], &[3.0, 4.0, 5.0, 6.0])],
            ),
            ex(
                "without rows",
                &[
                    of(DType::F32, &[1], &[1.0]),
                    i32s(&[1], &[0]),
                    i32s(&[], &[2]),
                ],
                &[of(DType::F32, &[2], &[1.0, f32::MIN as f64])],
            ),
        ],
        ..SEGMENT
    },
    OpDef {
        name: "UnsortedSegmentMin",
        attrs: &[REAL, "Tindices: {int32, int64}", COUNT],
        gradient: Gradient::Rule(gradient::unsorted_extreme),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Min)
        })],
        examples: &[
            ex(
                "any order, one left out",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[4], &[1, 0, 1, -1]),
                    i32s(&[], &[2]),
                ],
                &[x(&[2, 2], &[3.0, 4.0, 1.0, 2.0])],
            ),
            ex(
                "without rows",
                &[
                    of(DType::I8, &[1], &[1.0]),
                    i32s(&[1], &[0]),
                    i32s(&[], &[2]),
                ],
                &[of(DType::I8, &[2], &[1.0, 127.0])],
            ),
        ],
        ..SEGMENT
    },
];

const SEGMENT: OpDef = OpDef {
    inputs: &[
        "data: T",
        "segment_ids: Tindices",
        "num_segments: Tnumsegments",
    ],
    outputs: &["output: T"],
    infer,
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let (Some(data), Some(rank)) = (ctx.input(0).dims(), ctx.input(1).rank()) else {
        return Ok(());
    };
    let count = match ctx.constant_ints(2).as_deref() {
        Some([count]) => *count,
        _ => UNKNOWN_DIM,
    };
    let mut dims = vec![count];
    dims.extend_from_slice(data.get(rank..).unwrap_or(&[]));
    ctx.set(0, PartialShape::new(&dims));
    Ok(())
}

fn build(node: &NodeInfo, op: Segment) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_number!(dtype, T => build_of::<T>(op), else => Err(no_function(op, dtype)))
}

fn build_of<T: Element + SegmentElement>(op: Segment) -> Result<AnyKernel> {
    if !T::supports(op) {
        return Err(no_function(op, T::DTYPE));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = output_shape(ctx)?;
        let row = shape.elements_in(1..shape.rank());
        let ids = checked_ids(ctx, shape.dim(0), row)?;
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        let data = ctx.input(0)?.slice::<T>()?;
        segment::scatter(ctx.par(), op, &ids, data, row, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}

fn output_shape(ctx: &KernelCtx<'_>) -> Result<Shape> {
    let (data, ids, count) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    if count.rank() != 0 {
        return Err(invalid_argument!(
            "num_segments should be a scalar, not shape {}",
            count.shape()
        ));
    }
    if !data.shape().starts_with(ids.shape()) {
        return Err(invalid_argument!(
            "data.shape = {} does not start with segment_ids.shape = {}",
            data.shape(),
            ids.shape()
        ));
    }
    let count = ctx.int(2)?;
    if count < 0 {
        return Err(invalid_argument!(
            "Input num_segments == {count} must not be negative."
        ));
    }
    Shape::new(&[count])?.concat(&data.shape()[ids.rank()..])
}

fn checked_ids(ctx: &KernelCtx<'_>, count: usize, row: usize) -> Result<Vec<usize>> {
    let ids = positions(ctx.input(1)?)?;
    let is_bad = |id: usize| id >= count && id <= i64::MAX as usize;
    // Rows without elements are never looked at, so their ids are not either.
    if row > 0
        && let Some(at) = ids.iter().position(|id| is_bad(*id))
    {
        let shape = ctx.input(1)?.shape();
        let place: Vec<String> = (shape.strides().iter().zip(shape.iter()))
            .map(|(stride, dim)| (at / stride % *dim as usize).to_string())
            .collect();
        let place = match place.as_slice() {
            [] => String::new(),
            place => format!("[{}]", place.join(",")),
        };
        return Err(invalid_argument!(
            "segment_ids{place} = {} is out of range [0, {count})",
            ids[at]
        ));
    }
    Ok(ids)
}
