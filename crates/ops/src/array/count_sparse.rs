//! `DenseCountSparseOutput`, `SparseCountSparseOutput`, `RaggedCountSparseOutput`: how often, or with which total weight, each integer
//! occurs in a row, as a sparse matrix.
//!
//! TensorFlow: (values: T, weights: output_type), with indices and shape of a sparse tensor or splits of a ragged one before, ->
//! (output_indices: int64, output_values: output_type, output_dense_shape: int64). Values from maxlength on are left out; the
//! result is at least minlength wide.

use std::collections::BTreeMap;

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::bincount::WEIGHTS;
use super::bincount_rows::rows_of_values;
use crate::types::INDEX;

const COUNTED: (&str, &str) = ("binary_output", "false");

const COUNT: OpDef = OpDef {
    outputs: &[
        "output_indices: int64",
        "output_values: output_type",
        "output_dense_shape: int64",
    ],
    attrs: &[
        "T: {int32, int64}",
        "minlength: int >= -1 = -1",
        "maxlength: int >= -1 = -1",
        "binary_output: bool",
        "output_type: {int32, int64, float, double}",
    ],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "DenseCountSparseOutput",
        inputs: &["values: T", "weights: output_type"],
        kernels: &[cpu(&[("T", INDEX), ("output_type", WEIGHTS)], |node| {
            build(node, dense)
        })],
        examples: &[
            ex_attrs(
                "rows",
                &[COUNTED],
                &[i32s(&[2, 3], &[5, 1, 1, 0, 2, 2]), x(&[0], &[])],
                &[
                    i64s(&[4, 2], &[0, 1, 0, 5, 1, 0, 1, 2]),
                    x(&[4], &[2.0, 1.0, 1.0, 2.0]),
                    i64s(&[2], &[2, 6]),
                ],
            ),
            ex_attrs(
                "one row, weighted, cut",
                &[COUNTED, ("maxlength", "4")],
                &[i64s(&[4], &[3, 1, 3, 7]), x(&[4], &[1.0, 2.0, 3.0, 4.0])],
                &[
                    i64s(&[2, 1], &[1, 3]),
                    x(&[2], &[2.0, 4.0]),
                    i64s(&[1], &[4]),
                ],
            ),
            ex_attrs(
                "whether at all, widened",
                &[("binary_output", "true"), ("minlength", "9")],
                &[i64s(&[3], &[3, 1, 3]), x(&[0], &[])],
                &[
                    i64s(&[2, 1], &[1, 3]),
                    x(&[2], &[1.0, 1.0]),
                    i64s(&[1], &[9]),
                ],
            ),
            ex_err(
                "negative",
                &[COUNTED],
                &[i32s(&[1], &[-1]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "Input values must all be non-negative",
            ),
            ex_err(
                "weights",
                &[COUNTED],
                &[i32s(&[2], &[1, 1]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "rank",
                &[COUNTED],
                &[i32s(&[1, 1, 1], &[1]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "Input must be a 1 or 2-dimensional tensor.",
            ),
            ex_err(
                "no rows",
                &[COUNTED],
                &[i32s(&[0, 1], &[]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "Invalid input: Shapes dimension cannot be 0.",
            ),
        ],
        ..COUNT
    },
    OpDef {
        name: "RaggedCountSparseOutput",
        inputs: &["splits: int64", "values: T", "weights: output_type"],
        kernels: &[cpu(&[("T", INDEX), ("output_type", WEIGHTS)], |node| {
            build(node, ragged)
        })],
        examples: &[
            ex_attrs(
                "rows",
                &[COUNTED],
                &[
                    i64s(&[4], &[0, 0, 3, 5]),
                    i32s(&[5], &[1, 1, 0, 5, 2]),
                    x(&[0], &[]),
                ],
                &[
                    i64s(&[4, 2], &[1, 0, 1, 1, 2, 2, 2, 5]),
                    x(&[4], &[1.0, 2.0, 1.0, 1.0]),
                    i64s(&[2], &[3, 6]),
                ],
            ),
            ex_err(
                "too few splits",
                &[COUNTED],
                &[i64s(&[1], &[0]), i32s(&[0], &[]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "Must provide at least 2 elements for the splits argument",
            ),
            ex_err(
                "first split",
                &[COUNTED],
                &[i64s(&[2], &[1, 1]), i32s(&[1], &[1]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "Splits must start with 0, not with 1",
            ),
            ex_err(
                "last split",
                &[COUNTED],
                &[i64s(&[2], &[0, 2]), i32s(&[1], &[1]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "Splits must end with the number of values, got 2 instead of 1",
            ),
        ],
        ..COUNT
    },
    OpDef {
        name: "SparseCountSparseOutput",
        inputs: &[
            "indices: int64",
            "values: T",
            "dense_shape: int64",
            "weights: output_type",
        ],
        kernels: &[cpu(&[("T", INDEX), ("output_type", WEIGHTS)], |node| {
            build(node, sparse)
        })],
        examples: &[
            ex_attrs(
                "rows, weighted",
                &[COUNTED],
                &[
                    i64s(&[4, 2], &[0, 0, 0, 1, 2, 0, 2, 3]),
                    i32s(&[4], &[1, 1, 0, 5]),
                    i64s(&[2], &[3, 4]),
                    x(&[4], &[1.0, 2.0, 3.0, 4.0]),
                ],
                &[
                    i64s(&[3, 2], &[0, 1, 2, 0, 2, 5]),
                    x(&[3], &[3.0, 3.0, 4.0]),
                    i64s(&[2], &[3, 6]),
                ],
            ),
            ex_attrs(
                "nothing in one row",
                &[COUNTED],
                &[
                    i64s(&[0, 1], &[]),
                    i64s(&[0], &[]),
                    i64s(&[1], &[4]),
                    x(&[0], &[]),
                ],
                &[i64s(&[0, 1], &[]), x(&[0], &[]), i64s(&[1], &[1])],
            ),
            ex_err(
                "outside of the shape",
                &[COUNTED],
                &[
                    i64s(&[1, 2], &[1, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[1, 2]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "Invalid index value at 0: dimension 0 has value 1 which is not in [0, 1)",
            ),
            ex_err(
                "number of values",
                &[COUNTED],
                &[
                    i64s(&[1, 2], &[0, 0]),
                    i32s(&[2], &[1, 1]),
                    i64s(&[2], &[1, 2]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "Number of values must match first dimension of indices.",
            ),
            ex_err(
                "no dimensions",
                &[COUNTED],
                &[
                    i64s(&[1, 0], &[]),
                    i32s(&[1], &[1]),
                    i64s(&[0], &[]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "The shape argument requires at least one element.",
            ),
            ex_err(
                "no rows",
                &[COUNTED],
                &[
                    i64s(&[0, 2], &[]),
                    i32s(&[0], &[]),
                    i64s(&[2], &[0, 2]),
                    f32s(&[0], &[]),
                ],
                Code::InvalidArgument,
                "Cannot allocate 0 batches, is the dense shape too wide?",
            ),
        ],
        ..COUNT
    },
];

/// Which values are counted, and in which of how many rows each; without a number of rows there is only one.
struct Input {
    values: usize,
    weights: usize,
    rows: Option<(Vec<usize>, i64)>,
}

fn build(node: &NodeInfo, read: fn(&KernelCtx<'_>) -> Result<Input>) -> Result<AnyKernel> {
    let (least, most) = (node.attrs.int("minlength")?, node.attrs.int("maxlength")?);
    let binary = node.attrs.bool("binary_output")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = read(ctx)?;
        let (numbers, weights) = (ctx.ints(input.values)?, ctx.input(input.weights)?);
        ensure!(
            numbers.iter().all(|number| *number >= 0),
            invalid_argument,
            "Input values must all be non-negative"
        );
        let values = ctx.input(input.values)?.shape();
        ensure!(
            weights.is_empty() || weights.shape() == values,
            invalid_argument,
            "Weights and values must have the same shape. Weight shape: {}; values shape: {values}",
            weights.shape()
        );
        let kept = |number: &i64| most < 0 || *number < most;
        let seen = numbers.iter().copied().filter(kept).max().unwrap_or(0);
        let width = match most {
            0.. => most,
            _ => seen.saturating_add(1).max(least),
        };
        let row_of = |at: usize| match &input.rows {
            Some((rows, _)) => rows.get(at).copied().unwrap_or(0) as i64,
            None => 0,
        };
        let places = numbers.iter().enumerate();
        let places = places.filter(|(_, number)| kept(number));
        let places: Vec<_> = places
            .map(|(at, number)| (at, (row_of(at), *number)))
            .collect();
        let (keys, counts) = match weights.dtype() {
            DType::I32 => tally::<i32>(&places, weights, binary)?,
            DType::I64 => tally::<i64>(&places, weights, binary)?,
            DType::F32 => tally::<f32>(&places, weights, binary)?,
            _ => tally::<f64>(&places, weights, binary)?,
        };
        let (rank, shape) = match &input.rows {
            Some((_, rows)) => (2, vec![*rows, width]),
            None => (1, vec![width]),
        };
        let indices = keys.iter().flat_map(|(row, number)| [*row, *number]);
        let indices: Vec<i64> = match rank {
            2 => indices.collect(),
            _ => indices.skip(1).step_by(2).collect(),
        };
        ctx.set(
            0,
            Tensor::from_vec(Shape::matrix(keys.len(), rank)?, indices)?,
        );
        ctx.set(1, counts);
        ctx.set(2, Tensor::vector(&shape));
        Ok(())
    })
}

type Key = (i64, i64);

/// The sum of the weights of each key, in order of the keys.
fn tally<T: Num + Element>(
    places: &[(usize, Key)],
    weights: &Tensor,
    binary: bool,
) -> Result<(Vec<Key>, Tensor)> {
    let weights = weights.slice::<T>()?;
    let mut sums: BTreeMap<Key, T> = BTreeMap::new();
    for (at, key) in places {
        let sum = sums.entry(*key).or_insert(T::ZERO);
        *sum = match weights.get(*at) {
            _ if binary => T::ONE,
            Some(weight) => sum.add(*weight),
            None => sum.add(T::ONE),
        };
    }
    let keys = sums.keys().copied().collect();
    let values: Vec<T> = sums.into_values().collect();
    Ok((keys, Tensor::from_vec(Shape::vector(values.len()), values)?))
}

fn dense(ctx: &KernelCtx<'_>) -> Result<Input> {
    let shape = ctx.input(0)?.shape();
    let rows = match shape.dims() {
        [_] => None,
        [0, _] => {
            return Err(invalid_argument!(
                "Invalid input: Shapes dimension cannot be 0."
            ));
        }
        [rows, columns] => {
            let columns = (*columns).max(1) as usize;
            let row_of = (0..shape.elements()).map(|at| at / columns);
            Some((row_of.collect(), *rows))
        }
        _ => {
            return Err(invalid_argument!(
                "Input must be a 1 or 2-dimensional tensor. Got: {shape}"
            ));
        }
    };
    Ok(Input {
        values: 0,
        weights: 1,
        rows,
    })
}

fn ragged(ctx: &KernelCtx<'_>) -> Result<Input> {
    let splits = ctx.ints(0)?;
    ensure!(
        splits.len() > 1,
        invalid_argument,
        "Must provide at least 2 elements for the splits argument"
    );
    let rows = rows_of_values(&splits, ctx.input(1)?.elements())?;
    Ok(Input {
        values: 1,
        weights: 2,
        rows: Some((rows, splits.len() as i64 - 1)),
    })
}

fn sparse(ctx: &KernelCtx<'_>) -> Result<Input> {
    let [indices, values, shape] = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?];
    ensure!(
        indices.rank() == 2,
        invalid_argument,
        "Input indices must be a 2-dimensional tensor. Got: {}",
        indices.shape()
    );
    ensure!(
        values.rank() == 1,
        invalid_argument,
        "Input values must be a vector. Got: {}",
        values.shape()
    );
    ensure!(
        shape.rank() == 1,
        invalid_argument,
        "Input shape must be a vector. Got: {}",
        shape.shape()
    );
    ensure!(
        values.elements() == indices.shape().dim(0),
        invalid_argument,
        "Number of values must match first dimension of indices.Got {} values, indices shape: {}",
        values.elements(),
        indices.shape()
    );
    ensure!(
        shape.elements() == indices.shape().dim(1),
        invalid_argument,
        "Number of dimensions must match second dimension of indices.Got {} dimensions, indices shape: {}",
        shape.elements(),
        indices.shape()
    );
    let dims = shape.slice::<i64>()?;
    let Some(first) = dims.first() else {
        return Err(invalid_argument!(
            "The shape argument requires at least one element."
        ));
    };
    let mut rows = Vec::with_capacity(values.elements());
    for (at, row) in indices.slice::<i64>()?.chunks_exact(dims.len()).enumerate() {
        for (axis, (place, dim)) in row.iter().zip(dims).enumerate() {
            ensure!(
                (0..*dim).contains(place),
                invalid_argument,
                "Invalid index value at {at}: dimension {axis} has value {place} which is not in [0, {dim}) (as given by dense shape {dims:?}"
            );
        }
        rows.push(row[0] as usize);
    }
    let is_vector = dims.len() == 1;
    ensure!(
        is_vector || (1..i64::from(i32::MAX)).contains(first),
        invalid_argument,
        "Cannot allocate {first} batches, is the dense shape too wide?"
    );
    Ok(Input {
        values: 1,
        weights: 3,
        rows: (!is_vector).then_some((rows, *first)),
    })
}
