//! `ArgMax` and `ArgMin`: where along an axis the largest or smallest element stands, the first of several.
//!
//! TensorFlow: Op(input: T, dimension: Tidx) -> output: output_type.

use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, f32s, i32s, i64s, of, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_math::reduce::{Axis, arg_max, arg_min};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor};

use crate::by_order;
use crate::math::cast::comparable;
use crate::math::elementwise::{lengths, no_function};
use crate::types::{REAL_NUMBERS, dtypes};

const TYPES: &[DType] = dtypes![REAL_NUMBERS, &[DType::Bool]];
const GRID: &[f64] = &[1.0, 5.0, 3.0, 9.0, 2.0, 9.0];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ArgMax",
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}",
            "Tidx: {int16, int32, int64} = DT_INT32",
            "output_type: {int16, uint16, int32, int64} = DT_INT64",
        ],
        kernels: &[cpu(
            &[
                ("T", TYPES),
                (
                    "output_type",
                    &[DType::I16, DType::U16, DType::I32, DType::I64],
                ),
            ],
            |node| build(node, Extreme::Largest),
        )],
        examples: &[
            ex(
                "rows",
                &[x(&[2, 3], GRID), i32s(&[], &[1])],
                &[i64s(&[2], &[1, 0])],
            ),
            ex_attrs(
                "columns, small type",
                &[("output_type", "DT_INT32")],
                &[x(&[2, 3], GRID), i32s(&[], &[-2])],
                &[i32s(&[3], &[1, 0, 1])],
            ),
            ex(
                "bools",
                &[bools(&[3], &[false, true, true]), i32s(&[], &[0])],
                &[i64s(&[], &[1])],
            ),
            ex(
                "NaN is passed over",
                &[f32s(&[3], &[f64::NAN, 1.0, 3.0]), i32s(&[], &[0])],
                &[i64s(&[], &[2])],
            ),
            ex(
                "no rows",
                &[x(&[0, 3], &[]), i32s(&[], &[1])],
                &[i64s(&[0], &[])],
            ),
            ex_err(
                "nothing to choose from",
                &[],
                &[x(&[0, 3], &[]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "Reduction axis 0 is empty in shape [0,3]",
            ),
            ex_err(
                "axis out of range",
                &[],
                &[x(&[2, 3], GRID), i32s(&[], &[2])],
                Code::InvalidArgument,
                "in the range [-2, 2), but got 2",
            ),
        ],
        ..ARG
    },
    OpDef {
        name: "ArgMin",
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}",
            "Tidx: {int32, int64} = DT_INT32",
            "output_type: {int32, int64} = DT_INT64",
        ],
        kernels: &[cpu(
            &[("T", TYPES), ("output_type", &[DType::I32, DType::I64])],
            |node| build(node, Extreme::Smallest),
        )],
        examples: &[
            ex(
                "rows",
                &[x(&[2, 3], GRID), i32s(&[], &[1])],
                &[i64s(&[2], &[0, 1])],
            ),
            ex(
                "the first of equals",
                &[of(DType::I8, &[4], &[3.0, 1.0, 1.0, 2.0]), i64s(&[], &[0])],
                &[i64s(&[], &[1])],
            ),
        ],
        ..ARG
    },
];

const ARG: OpDef = OpDef {
    inputs: &["input: T", "dimension: Tidx"],
    outputs: &["output: output_type"],
    infer,
    gradient: Gradient::Stop("positions have no derivative"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

#[derive(Clone, Copy, Debug)]
enum Extreme {
    Largest,
    Smallest,
}

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let Some(dims) = ctx.input(0).dims() else {
        return Ok(());
    };
    let rank = dims.len();
    match ctx.constant_ints(1).as_deref() {
        Some([axis]) => {
            let axis = if *axis < 0 { axis + rank as i64 } else { *axis };
            let kept = dims.iter().enumerate();
            let kept = kept.filter(|(index, _)| *index as i64 != axis);
            let kept: Vec<i64> = kept.map(|(_, dim)| *dim).collect();
            ctx.set(0, PartialShape::new(&kept));
        }
        _ => ctx.set(0, PartialShape::of_rank(rank.saturating_sub(1))),
    }
    Ok(())
}

fn build(node: &NodeInfo, which: Extreme) -> Result<AnyKernel> {
    let out = node.attrs.dtype("output_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let axis = axis_of(ctx)?;
        let values = comparable(ctx.par(), ctx.input(0)?)?;
        let dtype = values.dtype();
        let positions = by_order!(dtype, T => positions::<T>(ctx, which, axis, &values)?,
            else => return Err(no_function(which, dtype)));
        ctx.set(0, narrowed(positions, out)?);
        Ok(())
    })
}

fn axis_of(ctx: &KernelCtx<'_>) -> Result<usize> {
    let dimension = ctx.input(1)?.shape();
    if dimension.rank() != 0 {
        return Err(invalid_argument!(
            "dim must be a scalar, but received tensor of shape: {dimension}"
        ));
    }
    let (asked, shape) = (ctx.int(1)?, ctx.input(0)?.shape());
    let rank = shape.rank() as i64;
    let axis = if asked < 0 { asked + rank } else { asked };
    if axis < 0 || axis >= rank {
        return Err(invalid_argument!(
            "Expected dimension in the range [{}, {rank}), but got {asked}",
            -rank
        ));
    }
    if shape[axis as usize] == 0 {
        return Err(invalid_argument!(
            "Reduction axis {asked} is empty in shape {shape}"
        ));
    }
    Ok(axis as usize)
}

/// Positions as int64, so that there is one loop for each type of values.
fn positions<T: Real + Element>(
    ctx: &KernelCtx<'_>,
    which: Extreme,
    axis: usize,
    values: &Tensor,
) -> Result<Tensor> {
    let shape = values.shape();
    let kept = shape.iter().enumerate().filter(|(index, _)| *index != axis);
    let kept: Vec<i64> = kept.map(|(_, dim)| *dim).collect();
    let mut positions = ctx.allocate(DType::I64, Shape::new(&kept)?)?;
    let axis = Axis::new(&lengths(shape), axis);
    let (values, out) = (values.slice::<T>()?, positions.slice_mut()?);
    match which {
        Extreme::Largest => arg_max(ctx.par(), axis, values, out),
        Extreme::Smallest => arg_min(ctx.par(), axis, values, out),
    }
    Ok(positions)
}

/// Positions as `out`; what does not fit is cut off.
fn narrowed(positions: Tensor, out: DType) -> Result<Tensor> {
    fn of<I: Element>(positions: &Tensor, narrow: impl Fn(i64) -> I) -> Result<Tensor> {
        let narrow = positions.slice::<i64>()?.iter().map(|index| narrow(*index));
        Tensor::from_vec(positions.shape().clone(), narrow.collect())
    }
    match out {
        DType::I16 => of(&positions, |index| index as i16),
        DType::U16 => of(&positions, |index| index as u16),
        DType::I32 => of(&positions, |index| index as i32),
        DType::I64 => Ok(positions),
        other => Err(no_function("positions", other)),
    }
}
