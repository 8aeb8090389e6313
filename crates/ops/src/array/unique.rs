//! `Unique`, `UniqueV2`, `UniqueWithCounts`, `UniqueWithCountsV2`: the distinct elements, or slices along an
//! axis, in the order in which they first occur.
//!
//! TensorFlow: Unique(x: T) -> (y: T, idx: out_idx), where y[idx[i]] = x[i]; the V2 ops take an axis (a vector
//! of at most one element), the others a vector `x`; the WithCounts ops also say how often each occurs.
//! NaNs are all distinct.

use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::{Unique, unique, unique_by};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::keys::{Keys, mix};
use crate::types::{INDEX, REAL_NUMBERS, dtypes};

/// Everything with equality that TensorFlow takes.
const TYPES: &[DType] = dtypes![REAL_NUMBERS, &[DType::Bool, DType::String]];

const UNIQUE: OpDef = OpDef {
    inputs: &["x: T"],
    outputs: &["y: T", "idx: out_idx"],
    attrs: &["T: type", "out_idx: {int32, int64} = DT_INT32"],
    kernels: &[cpu(&[("T", TYPES), ("out_idx", INDEX)], build)],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const V2_ATTRS: &[&str] = &[
    "T: type",
    "Taxis: {int32, int64} = DT_INT64",
    "out_idx: {int32, int64} = DT_INT32",
];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "Unique",
        examples: &[
            ex(
                "numbers",
                &[x(&[5], &[4.0, 1.0, 4.0, 2.0, 1.0])],
                &[x(&[3], &[4.0, 1.0, 2.0]), i32s(&[5], &[0, 1, 0, 2, 1])],
            ),
            ex_attrs(
                "int64 indices of strings",
                &[("out_idx", "int64")],
                &[strs(&[3], &["b", "a", "b"])],
                &[strs(&[2], &["b", "a"]), i64s(&[3], &[0, 1, 0])],
            ),
            ex(
                "signed zeros and NaNs",
                &[f32s(&[4], &[0.0, -0.0, f64::NAN, f64::NAN])],
                &[
                    f32s(&[3], &[0.0, f64::NAN, f64::NAN]),
                    i32s(&[4], &[0, 0, 1, 2]),
                ],
            ),
            ex(
                "bools",
                &[bools(&[3], &[true, true, false])],
                &[bools(&[2], &[true, false]), i32s(&[3], &[0, 0, 1])],
            ),
            ex("empty", &[x(&[0], &[])], &[x(&[0], &[]), i32s(&[0], &[])]),
            ex_err(
                "matrix",
                &[],
                &[f32s(&[1, 1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..UNIQUE
    },
    OpDef {
        name: "UniqueV2",
        inputs: &["x: T", "axis: Taxis"],
        attrs: V2_ATTRS,
        examples: &[
            ex(
                "rows",
                &[
                    x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0]),
                    i64s(&[1], &[0]),
                ],
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), i32s(&[3], &[0, 1, 0])],
            ),
            ex(
                "columns",
                &[
                    x(&[2, 3], &[1.0, 2.0, 1.0, 3.0, 4.0, 3.0]),
                    i32s(&[1], &[-1]),
                ],
                &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), i32s(&[3], &[0, 1, 0])],
            ),
            ex(
                "no axis",
                &[x(&[2], &[7.0, 7.0]), i32s(&[0], &[])],
                &[x(&[1], &[7.0]), i32s(&[2], &[0, 0])],
            ),
            ex(
                "empty rows",
                &[f32s(&[3, 0], &[]), i32s(&[1], &[0])],
                &[f32s(&[1, 0], &[]), i32s(&[3], &[0, 0, 0])],
            ),
            ex_err(
                "axis",
                &[],
                &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[2])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..UNIQUE
    },
    OpDef {
        name: "UniqueWithCounts",
        outputs: &["y: T", "idx: out_idx", "count: out_idx"],
        examples: &[ex(
            "numbers",
            &[x(&[5], &[4.0, 1.0, 4.0, 2.0, 1.0])],
            &[
                x(&[3], &[4.0, 1.0, 2.0]),
                i32s(&[5], &[0, 1, 0, 2, 1]),
                i32s(&[3], &[2, 2, 1]),
            ],
        )],
        ..UNIQUE
    },
    OpDef {
        name: "UniqueWithCountsV2",
        inputs: &["x: T", "axis: Taxis"],
        outputs: &["y: T", "idx: out_idx", "count: out_idx"],
        attrs: V2_ATTRS,
        examples: &[ex(
            "rows",
            &[
                x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0]),
                i64s(&[1], &[0]),
            ],
            &[
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                i32s(&[3], &[0, 1, 0]),
                i32s(&[2], &[2, 1]),
            ],
        )],
        ..UNIQUE
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let wide = node.attrs.dtype("out_idx")? == DType::I64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let axis = axis(ctx)?;
        let x = ctx.input(0)?;
        let shape = Shape::vector(x.shape().dim(axis));
        let dtype = if wide { DType::I64 } else { DType::I32 };
        let mut index = ctx.allocate(dtype, shape)?;
        let found = if wide {
            let mut index = index.slice_mut::<i64>()?.iter_mut();
            distinct(x, axis, |number| {
                if let Some(to) = index.next() {
                    *to = number as i64;
                }
            })?
        } else {
            let mut index = index.slice_mut::<i32>()?.iter_mut();
            distinct(x, axis, |number| {
                if let Some(to) = index.next() {
                    *to = number as i32;
                }
            })?
        };
        ensure!(
            wide || i32::try_from(found.first.len()).is_ok(),
            internal,
            "more than 2^31 elements for int32 indices"
        );
        let first: Vec<i64> = found.first.iter().map(|first| *first as i64).collect();
        let y = super::gather::gather_rows(ctx, x, &Tensor::vector(&first), axis as i64, 0)?;
        ctx.set(0, y);
        ctx.set(1, index);
        ctx.set(2, numbers(&found.count, wide)?);
        Ok(())
    })
}

/// The axis whose slices are compared.
fn axis(ctx: &KernelCtx<'_>) -> Result<usize> {
    let rank = ctx.input(0)?.rank();
    let axes = if ctx.num_inputs() > 1 {
        let axis = ctx.input(1)?;
        if axis.rank() != 1 {
            return Err(invalid_argument!("axis expects a 1D vector."));
        }
        ctx.ints(1)?
    } else {
        smallvec::SmallVec::new()
    };
    match axes.as_slice() {
        [] if rank == 1 => Ok(0),
        [] => Err(invalid_argument!("unique expects a 1D vector.")),
        [axis] => {
            let from_front = if *axis < 0 { axis + rank as i64 } else { *axis };
            usize::try_from(from_front)
                .ok()
                .filter(|axis| *axis < rank)
                .ok_or_else(|| invalid_argument!("axis has to be between [0, {rank}), got {axis}"))
        }
        _ => Err(invalid_argument!(
            "axis does not support input tensors larger than 1 elements"
        )),
    }
}

/// The distinct slices along an axis; `put` gets, for each slice, which of them it is.
fn distinct(x: &Tensor, axis: usize, put: impl FnMut(usize)) -> Result<Unique> {
    let shape = x.shape();
    let count = shape.dim(axis);
    let outer = shape.elements_in(0..axis);
    let inner = shape.elements_in(axis + 1..shape.rank());
    if outer * inner == 1 {
        return Ok(match x.dtype() {
            DType::I32 => unique(x.slice::<i32>()?, |value| value as u64, put),
            DType::I64 => unique(x.slice::<i64>()?, |value| value as u64, put),
            _ => Keys::of(x)?.unique(put),
        });
    }
    let keys = Keys::of(x)?;
    let elements = |slice: usize| {
        (0..outer).flat_map(move |i| {
            let at = (i * count + slice) * inner;
            at..at + inner
        })
    };
    Ok(unique_by(
        count,
        |slice| elements(slice).fold(0, |hash, at| mix(hash, keys.hash(at))),
        |a, b| elements(a).zip(elements(b)).all(|(a, b)| keys.equal(a, b)),
        put,
    ))
}

fn numbers(values: &[usize], wide: bool) -> Result<Tensor> {
    let overflow = |_| internal!("more than 2^31 elements for int32 indices");
    Ok(if wide {
        let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
        Tensor::vector(&values)
    } else {
        let values = values.iter().map(|value| i32::try_from(*value));
        let values: Vec<i32> = values
            .collect::<std::result::Result<_, _>>()
            .map_err(overflow)?;
        Tensor::vector(&values)
    })
}
