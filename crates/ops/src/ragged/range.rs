//! `RaggedRange`: a row of numbers for each start, limit and step.
//!
//! TensorFlow: RaggedRange(starts: T, limits: T, deltas: T) -> (rt_nested_splits: Tsplits, rt_dense_values: T). Scalars stand for
//! all rows.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use crate::math::cast::{doubles, from_integers, integers};
use crate::types::{INDEX, SINGLE_AND_DOUBLE, dtypes};

pub(crate) static OP: OpDef = OpDef {
    name: "RaggedRange",
    inputs: &["starts: T", "limits: T", "deltas: T"],
    outputs: &["rt_nested_splits: Tsplits", "rt_dense_values: T"],
    attrs: &[
        "T: {bfloat16, float, double, int32, int64} = DT_INT32",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    gradient: Gradient::Stop("bounds are taken for constants"),
    kernels: &[cpu(
        &[("T", dtypes![SINGLE_AND_DOUBLE, INDEX]), ("Tsplits", INDEX)],
        build,
    )],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "rows",
            &[("Tsplits", "int32")],
            &[
                x(&[3], &[0.0, 5.0, 8.0]),
                x(&[3], &[3.0, 2.0, 12.0]),
                x(&[], &[2.0]),
            ],
            &[i32s(&[4], &[0, 2, 2, 4]), x(&[4], &[0.0, 2.0, 8.0, 10.0])],
        ),
        ex_attrs(
            "downwards",
            &[("Tsplits", "int32")],
            &[x(&[], &[4.0]), x(&[2], &[0.0, 5.0]), x(&[2], &[-1.0, -1.0])],
            &[i32s(&[3], &[0, 4, 4]), x(&[4], &[4.0, 3.0, 2.0, 1.0])],
        ),
        ex_attrs(
            "scalars",
            &[("Tsplits", "int32")],
            &[x(&[], &[1.0]), x(&[], &[3.0]), x(&[], &[1.0])],
            &[i32s(&[2], &[0, 2]), x(&[2], &[1.0, 2.0])],
        ),
        ex_attrs(
            "no rows",
            &[("Tsplits", "int32")],
            &[x(&[0], &[]), x(&[], &[3.0]), x(&[], &[1.0])],
            &[i32s(&[1], &[0]), x(&[0], &[])],
        ),
        ex_attrs(
            "fractions",
            &[("Tsplits", "int32")],
            &[f32s(&[], &[0.0]), f32s(&[1], &[1.1]), f32s(&[], &[0.25])],
            &[
                i32s(&[2], &[0, 5]),
                f32s(&[5], &[0.0, 0.25, 0.5, 0.75, 1.0]),
            ],
        ),
        ex_err(
            "no step",
            &[],
            &[x(&[], &[1.0]), x(&[], &[3.0]), x(&[], &[0.0])],
            Code::InvalidArgument,
            "Requires delta != 0",
        ),
        ex_err(
            "shapes differ",
            &[],
            &[x(&[2], &[1.0, 1.0]), x(&[1], &[3.0]), x(&[], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "rank",
            &[],
            &[x(&[1, 1], &[1.0]), x(&[1], &[3.0]), x(&[], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "more than splits can count",
            &[("Tsplits", "int32")],
            &[
                i32s(&[], &[-2147483648]),
                i32s(&[], &[2147483647]),
                i32s(&[], &[1]),
            ],
            Code::InvalidArgument,
            "Requires ((limit - start) / delta) <= 2147483647",
        ),
        ex(
            "none of it",
            &[f32s(&[1], &[1.0]), f32s(&[1], &[1.0]), f32s(&[1], &[1.0])],
            &[i64s(&[2], &[0, 0]), f32s(&[0], &[])],
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let split_type = node.attrs.dtype("Tsplits")?;
    let largest = match split_type {
        DType::I32 => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let rows = rows(ctx)?;
        let dtype = ctx.input(0)?.dtype();
        let lengths = match dtype {
            DType::I32 | DType::I64 => integer_lengths(ctx, rows, largest)?,
            _ => float_lengths(ctx, rows, largest)?,
        };
        let mut splits = vec![0i64];
        let mut end = 0i64;
        for length in lengths {
            end = end.checked_add(length).filter(|end| *end <= largest).ok_or_else(|| {
                invalid_argument!(
                    "The total range size overflowed. Consider using int64 instead of int32 for row_splits_dtype."
                )
            })?;
            splits.push(end);
        }
        let mut values = Tensor::new(dtype, Shape::new(&[end])?)?;
        match dtype {
            DType::I32 => fill::<i32>(ctx, &splits, &mut values)?,
            DType::I64 => fill::<i64>(ctx, &splits, &mut values)?,
            DType::F32 => fill::<f32>(ctx, &splits, &mut values)?,
            _ => fill::<f64>(ctx, &splits, &mut values)?,
        }
        let shape = Shape::vector(splits.len());
        ctx.set(0, from_integers(&splits, split_type, shape)?);
        ctx.set(1, values);
        Ok(())
    })
}

/// The number of rows: as many as the vectors have elements, one if there are only scalars.
fn rows(ctx: &KernelCtx<'_>) -> Result<usize> {
    let mut rows = None;
    for (index, name) in ["starts", "limits", "deltas"].into_iter().enumerate() {
        let shape = ctx.input(index)?.shape();
        ensure!(
            shape.rank() <= 1,
            invalid_argument,
            "{name} must be a scalar or vector"
        );
        if shape.rank() == 1 {
            ensure!(
                rows.is_none_or(|rows| rows == shape.dim(0)),
                invalid_argument,
                "starts, limits, and deltas must have the same shape"
            );
            rows = Some(shape.dim(0));
        }
    }
    Ok(rows.unwrap_or(1))
}

/// Element `row`, or the only one.
fn at<T: Copy + Default>(values: &[T], row: usize) -> T {
    let value = if values.len() == 1 {
        values.first()
    } else {
        values.get(row)
    };
    value.copied().unwrap_or_default()
}

fn integer_lengths(ctx: &KernelCtx<'_>, rows: usize, largest: i64) -> Result<Vec<i64>> {
    let [starts, limits, deltas] = [
        integers(ctx.input(0)?)?,
        integers(ctx.input(1)?)?,
        integers(ctx.input(2)?)?,
    ];
    let length = |row: usize| {
        let [start, limit, delta] =
            [at(&starts, row), at(&limits, row), at(&deltas, row)].map(i128::from);
        check_delta(delta != 0)?;
        let span = (limit - start) * delta.signum();
        let length = (span.max(0) + delta.abs() - 1) / delta.abs();
        i64::try_from(length)
            .ok()
            .filter(|length| *length <= largest)
            .ok_or_else(|| too_long(largest))
    };
    (0..rows).map(length).collect()
}

fn float_lengths(ctx: &KernelCtx<'_>, rows: usize, largest: i64) -> Result<Vec<i64>> {
    let is_single = ctx.input(0)?.dtype() == DType::F32;
    let [starts, limits, deltas] = [
        doubles(ctx.input(0)?)?,
        doubles(ctx.input(1)?)?,
        doubles(ctx.input(2)?)?,
    ];
    let length = |row: usize| {
        let [start, limit, delta] = [at(&starts, row), at(&limits, row), at(&deltas, row)];
        check_delta(delta != 0.0)?;
        if (delta > 0.0 && limit < start) || (delta < 0.0 && limit > start) {
            return Ok(0);
        }
        // How many fit is a matter of rounding, which is that of the dtype.
        let steps = if is_single {
            f64::from((limit as f32 - start as f32) / delta as f32)
        } else {
            (limit - start) / delta
        };
        let steps = steps.abs().ceil();
        match steps < largest as f64 {
            true => Ok(steps as i64),
            false => Err(too_long(largest)),
        }
    };
    (0..rows).map(length).collect()
}

fn check_delta(is_step: bool) -> Result<()> {
    ensure!(is_step, invalid_argument, "Requires delta != 0");
    Ok(())
}

#[cold]
fn too_long(largest: i64) -> tensorfleet_status::Status {
    invalid_argument!("Requires ((limit - start) / delta) <= {largest}")
}

fn fill<T: Element + Num>(ctx: &KernelCtx<'_>, splits: &[i64], out: &mut Tensor) -> Result<()> {
    let (starts, deltas) = (ctx.input(0)?.slice::<T>()?, ctx.input(2)?.slice::<T>()?);
    let mut slots = out.slice_mut::<T>()?.iter_mut();
    for (row, bounds) in splits.windows(2).enumerate() {
        let (mut value, delta) = (at(starts, row), at(deltas, row));
        for slot in (&mut slots).take((bounds[1] - bounds[0]) as usize) {
            *slot = value;
            value = value.add(delta);
        }
    }
    Ok(())
}
