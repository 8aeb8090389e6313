//! `SegmentSum`, `SegmentMean`, `SegmentProd`, `SegmentMax`, `SegmentMin`: neighbouring rows with the same segment id combined.
//!
//! TensorFlow: Op(data: T, segment_ids: Tindices) -> output: T. Ids ascend from zero or more; row `s` of the output is segment
//! `s`. A segment without rows is 1 for products and 0 otherwise.

use tensorfleet_graph::example::{ex, ex_err, i32s, i64s, of, ramp, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::segment::{self, Rows, Segment, SegmentElement};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, UNKNOWN_DIM};

use super::{count_sorted, gradient, positions};
use crate::by_number;
use crate::math::elementwise::{input_dtype, no_function};
use crate::types::{INDEX, NUMBERS, REAL_NUMBERS};

const NUMBER: &[&str] = &[
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    "Tindices: {int32, int64}",
];
const REAL: &[&str] = &[
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
    "Tindices: {int32, int64}",
];

pub(crate) static OPS: [OpDef; 5] = [
    OpDef {
        name: "SegmentSum",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::sum),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Sum)
        })],
        examples: &[
            ex(
                "with a gap",
                &[ramp(&[4, 2], 1.0, 1.0), i32s(&[4], &[0, 0, 2, 2])],
                &[x(&[3, 2], &[4.0, 6.0, 0.0, 0.0, 12.0, 14.0])],
            ),
            ex(
                "not from zero",
                &[x(&[2], &[3.0, 4.0]), i64s(&[2], &[1, 1])],
                &[x(&[2], &[0.0, 7.0])],
            ),
            ex(
                "empty",
                &[x(&[0, 2], &[]), i32s(&[0], &[])],
                &[x(&[0, 2], &[])],
            ),
            ex_err(
                "not sorted",
                &[],
                &[x(&[3], &[1.0]), i32s(&[3], &[0, 1, 0])],
                Code::InvalidArgument,
                "segment ids are not increasing",
            ),
            ex_err(
                "beyond the last",
                &[],
                &[x(&[4], &[1.0]), i32s(&[4], &[0, 1, 2, 0])],
                Code::InvalidArgument,
                "Segment id 1 out of range [0, 1), possibly because 'segment_ids' input is not sorted.",
            ),
            ex_err(
                "negative",
                &[],
                &[x(&[2], &[1.0]), i32s(&[2], &[-1, 0])],
                Code::InvalidArgument,
                "Segment id -1 out of range [0, 1)",
            ),
            ex_err(
                "too few ids",
                &[],
                &[x(&[3], &[1.0]), i32s(&[2], &[0, 1])],
                Code::InvalidArgument,
                "same size as dimension 0",
            ),
        ],
        ..SEGMENT
    },
    OpDef {
        name: "SegmentMean",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::mean),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Mean)
        })],
        examples: &[
            ex(
                "with a gap",
                &[ramp(&[4, 2], 1.0, 1.0), i32s(&[4], &[0, 0, 2, 2])],
                &[x(&[3, 2], &[2.0, 3.0, 0.0, 0.0, 6.0, 7.0])],
            ),
            ex(
                "integers truncate",
                &[of(DType::I32, &[2], &[1.0, 2.0]), i32s(&[2], &[0, 0])],
                &[of(DType::I32, &[1], &[1.0])],
            ),
        ],
        ..SEGMENT
    },
    OpDef {
        name: "SegmentProd",
        attrs: NUMBER,
        gradient: Gradient::Rule(gradient::prod),
        kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Prod)
        })],
        examples: &[
            ex(
                "with a gap",
                &[ramp(&[4, 2], 1.0, 1.0), i32s(&[4], &[0, 0, 2, 2])],
                &[x(&[3, 2], &[3.0, 8.0, 1.0, 1.0, 35.0, 48.0])],
            ),
            ex(
                "zeros",
                &[
                    x(&[5], &[0.0, 3.0, 0.0, 0.0, 2.0]),
                    i32s(&[5], &[0, 0, 1, 1, 1]),
                ],
                &[x(&[2], &[0.0, 0.0])],
            ),
        ],
        ..SEGMENT
    },
    OpDef {
        name: "SegmentMax",
        attrs: REAL,
        gradient: Gradient::Rule(gradient::extreme),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Max)
        })],
        examples: &[ex(
            "with a gap",
            &[
                x(&[4, 2], &[1.0, 8.0, 5.0, 2.0, 7.0, 4.0, 3.0, 6.0]),
                i32s(&[4], &[0, 0, 2, 2]),
            ],
            &[x(&[3, 2], &[5.0, 8.0, 0.0, 0.0, 7.0, 6.0])],
        )],
        ..SEGMENT
    },
    OpDef {
        name: "SegmentMin",
        attrs: REAL,
        gradient: Gradient::Rule(gradient::extreme),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Tindices", INDEX)], |node| {
            build(node, Segment::Min)
        })],
        examples: &[ex(
            "with a gap",
            &[
                x(&[4, 2], &[1.0, 8.0, 5.0, 2.0, 7.0, 4.0, 3.0, 6.0]),
                i64s(&[4], &[0, 0, 2, 2]),
            ],
            &[x(&[3, 2], &[1.0, 2.0, 0.0, 0.0, 3.0, 4.0])],
        )],
        ..SEGMENT
    },
];

const SEGMENT: OpDef = OpDef {
    inputs: &["data: T", "segment_ids: Tindices"],
    outputs: &["output: T"],
    infer,
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

pub(super) fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    if let Some([_, row @ ..]) = ctx.input(0).dims() {
        let mut dims = vec![UNKNOWN_DIM];
        dims.extend_from_slice(row);
        ctx.set(0, PartialShape::new(&dims));
    }
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
        let ids = checked_ids(ctx)?;
        let data = ctx.input(0)?;
        let count = count_sorted(&ids, None)?;
        let shape = data.shape().with_dim(0, count as i64)?;
        let row = shape.elements_in(1..shape.rank());
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        let rows = Rows::All(data.slice::<T>()?);
        segment::reduce(ctx.par(), op, &ids, rows, row, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}

fn checked_ids(ctx: &KernelCtx<'_>) -> Result<Vec<usize>> {
    let (data, ids) = (ctx.input(0)?, ctx.input(1)?);
    if data.rank() == 0 {
        return Err(invalid_argument!("input must be at least rank 1"));
    }
    if ids.rank() != 1 {
        return Err(invalid_argument!(
            "segment_ids should be a vector, got shape {}",
            ids.shape()
        ));
    }
    if ids.elements() != data.shape().dim(0) {
        return Err(invalid_argument!(
            "segment_ids should be the same size as dimension 0 of input: {} and {}",
            ids.shape(),
            data.shape()
        ));
    }
    positions(ids)
}
