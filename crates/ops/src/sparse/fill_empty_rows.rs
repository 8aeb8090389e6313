//! `SparseFillEmptyRows`, `RaggedFillEmptyRows` and their gradients: a default value for rows that have none.
//!
//! TensorFlow: SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) -> (output_indices,
//! output_values: T, empty_row_indicator: bool, reverse_index_map: int64), in order of the rows;
//! SparseFillEmptyRowsGrad(reverse_index_map: int64, grad_values: T) -> (d_values: T, d_default_value: T). Of ragged tensors there
//! are the rows of the values and the number of rows instead of indices and shape.

use tensorfleet_graph::example::{bools, ex, ex_err, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::map::fill_by;
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::parts::{joined, picked};
use crate::by_number;
use crate::room::{filled, gathered};
use crate::types::NUMBERS;

const FILL: OpDef = OpDef {
    attrs: &["T: type"],
    gradient: Gradient::Rule(gradient),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const GRAD: OpDef = OpDef {
    inputs: &["reverse_index_map: int64", "grad_values: T"],
    outputs: &["d_values: T", "d_default_value: T"],
    attrs: &["T: type"],
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[cpu(&[("T", NUMBERS)], build_grad)],
    examples: &[
        ex(
            "one filled",
            &[i64s(&[2], &[2, 1]), x(&[3], &[1.0, 2.0, 3.0])],
            &[x(&[2], &[3.0, 2.0]), x(&[], &[1.0])],
        ),
        ex_err(
            "beyond the end",
            &[],
            &[i64s(&[2], &[2, 5]), x(&[3], &[1.0, 2.0, 3.0])],
            Code::InvalidArgument,
            "Elements in reverse index must be in [0, 3) but got 5",
        ),
    ],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "RaggedFillEmptyRows",
        inputs: &[
            "value_rowids: int64",
            "values: T",
            "nrows: int64",
            "default_value: T",
        ],
        outputs: &[
            "output_value_rowids: int64",
            "output_values: T",
            "empty_row_indicator: bool",
            "reverse_index_map: int64",
        ],
        kernels: &[cpu(&[], |_| AnyKernel::sync(fill_ragged))],
        examples: &[
            ex(
                "two empty rows",
                &[
                    i64s(&[3], &[0, 2, 2]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[], &[4]),
                    x(&[], &[7.0]),
                ],
                &[
                    i64s(&[5], &[0, 1, 2, 2, 3]),
                    x(&[5], &[1.0, 7.0, 2.0, 3.0, 7.0]),
                    bools(&[4], &[false, true, false, true]),
                    i64s(&[3], &[0, 2, 3]),
                ],
            ),
            // The shape of no row numbers is TensorFlow's.
            ex(
                "no rows",
                &[
                    i64s(&[0], &[]),
                    i32s(&[0], &[]),
                    i64s(&[], &[0]),
                    i32s(&[], &[7]),
                ],
                &[
                    i64s(&[0, 1], &[]),
                    i32s(&[0], &[]),
                    bools(&[0], &[]),
                    i64s(&[0], &[]),
                ],
            ),
            ex_err(
                "row that is none",
                &[],
                &[
                    i64s(&[1], &[5]),
                    i32s(&[1], &[1]),
                    i64s(&[], &[2]),
                    i32s(&[], &[7]),
                ],
                Code::InvalidArgument,
                "indices(0, 0) is invalid: 5 >= 2",
            ),
            ex_err(
                "number of values",
                &[],
                &[
                    i64s(&[1], &[1]),
                    i32s(&[2], &[1, 1]),
                    i64s(&[], &[2]),
                    i32s(&[], &[7]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..FILL
    },
    OpDef {
        name: "RaggedFillEmptyRowsGrad",
        ..GRAD
    },
    OpDef {
        name: "SparseFillEmptyRows",
        inputs: &[
            "indices: int64",
            "values: T",
            "dense_shape: int64",
            "default_value: T",
        ],
        outputs: &[
            "output_indices: int64",
            "output_values: T",
            "empty_row_indicator: bool",
            "reverse_index_map: int64",
        ],
        kernels: &[cpu(&[], |_| AnyKernel::sync(fill_sparse))],
        examples: &[
            ex(
                "two empty rows",
                &[
                    i64s(&[3, 2], &[0, 1, 2, 0, 2, 1]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2], &[4, 3]),
                    x(&[], &[7.0]),
                ],
                &[
                    i64s(&[5, 2], &[0, 1, 1, 0, 2, 0, 2, 1, 3, 0]),
                    x(&[5], &[1.0, 7.0, 2.0, 3.0, 7.0]),
                    bools(&[4], &[false, true, false, true]),
                    i64s(&[3], &[0, 2, 3]),
                ],
            ),
            ex(
                "out of order",
                &[
                    i64s(&[3, 2], &[2, 1, 0, 1, 2, 0]),
                    i32s(&[3], &[1, 2, 3]),
                    i64s(&[2], &[4, 3]),
                    i32s(&[], &[7]),
                ],
                &[
                    i64s(&[5, 2], &[0, 1, 1, 0, 2, 1, 2, 0, 3, 0]),
                    i32s(&[5], &[2, 7, 1, 3, 7]),
                    bools(&[4], &[false, true, false, true]),
                    i64s(&[3], &[2, 0, 3]),
                ],
            ),
            ex(
                "no rows",
                &[
                    i64s(&[0, 2], &[]),
                    i32s(&[0], &[]),
                    i64s(&[2], &[0, 3]),
                    i32s(&[], &[7]),
                ],
                &[
                    i64s(&[0, 2], &[]),
                    i32s(&[0], &[]),
                    bools(&[0], &[]),
                    i64s(&[0], &[]),
                ],
            ),
            ex_err(
                "row that is none",
                &[],
                &[
                    i64s(&[1, 2], &[5, 1]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[2, 3]),
                    i32s(&[], &[7]),
                ],
                Code::InvalidArgument,
                "indices(0, 0) is invalid: 5 >= 2",
            ),
            ex_err(
                "default",
                &[],
                &[
                    i64s(&[1, 2], &[1, 1]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[2, 3]),
                    i32s(&[1], &[7]),
                ],
                Code::InvalidArgument,
                "default_value must be a scalar, saw: [1]",
            ),
        ],
        ..FILL
    },
    OpDef {
        name: "SparseFillEmptyRowsGrad",
        ..GRAD
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (map, grad) = (g.output(3), g.grad(1)?);
    let values = g.apply("SparseFillEmptyRowsGrad", &[map, grad])?;
    let default = values.node.output(1);
    Ok(vec![
        None,
        Some(Grad::Dense(values)),
        None,
        Some(Grad::Dense(default)),
    ])
}

fn fill_sparse(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (indices, values, default) = (ctx.input(0)?, ctx.input(1)?, ctx.input(3)?);
    check(indices, values, ctx.input(2)?, default)?;
    let rank = indices.shape().dim(1);
    let rows = ctx.ints(2)?.first().copied().unwrap_or(0);
    let filled = match fill(ctx, rank, rows)? {
        None => ctx.take(0)?,
        Some(filled) => {
            let shape = Shape::matrix(filled.len() / rank.max(1), rank)?;
            Tensor::from_vec(shape, filled)?
        }
    };
    ctx.set(0, filled);
    Ok(())
}

fn fill_ragged(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let [ids, values, rows, default] =
        [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?].map(Tensor::shape);
    for (name, shape) in [("nrows", rows), ("default_value", default)] {
        ensure!(
            shape.rank() == 0,
            invalid_argument,
            "{name} must be a scalar, saw: {shape}"
        );
    }
    for (name, shape) in [("value_rowids", ids), ("values", values)] {
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "{name} must be a vector, saw: {shape}"
        );
    }
    ensure!(
        ids.dim(0) == values.dim(0),
        invalid_argument,
        "The length of `values` ({}) must match the first dimension of `value_rowids` ({}).",
        values.dim(0),
        ids.dim(0)
    );
    let rows = ctx.int(2)?;
    let filled = match fill(ctx, 1, rows)? {
        None if rows == 0 => Tensor::new(DType::I64, Shape::matrix(0, 1)?)?,
        None => ctx.take(0)?,
        Some(filled) => Tensor::from_vec(Shape::vector(filled.len()), filled)?,
    };
    ctx.set(0, filled);
    Ok(())
}

/// Sets all outputs but the first, whose elements it gives back: the places of the values, `rank` numbers each. None are given
/// back if they are those of the input, as no row is empty and all are in order.
fn fill(ctx: &mut KernelCtx<'_>, rank: usize, rows: i64) -> Result<Option<Vec<i64>>> {
    let (indices, values, default) = (ctx.input(0)?, ctx.input(1)?, ctx.input(3)?);
    let (count, indices) = (values.elements(), indices.slice::<i64>()?);
    let rows = Shape::new(&[rows])?.elements();
    ensure!(
        rows > 0 || count == 0,
        invalid_argument,
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {count}"
    );
    // How many values each row has, then where the next one of it goes.
    let mut next = Tensor::zeros(DType::I64, Shape::vector(rows))?;
    let next = next.slice_mut::<i64>()?;
    let (mut in_order, mut run, mut last) = (true, 0, None);
    for (at, index) in indices.chunks_exact(rank.max(1)).enumerate() {
        let row = index[0];
        if last == Some(row) {
            run += 1;
            continue;
        }
        // A row's values mostly stand together, and are counted together.
        if let Some(last) = last {
            next[last as usize] += run;
            in_order &= last < row;
        }
        ensure!(
            usize::try_from(row).is_ok_and(|row| row < rows),
            invalid_argument,
            "indices({at}, 0) is invalid: {row} >= {rows}"
        );
        (run, last) = (1, Some(row));
    }
    if let Some(last) = last {
        next[last as usize] += run;
    }
    let empty: Vec<bool> = gathered(next.iter().map(|values| *values == 0))?;
    if in_order && !empty.contains(&true) {
        let mut reverse = ctx.allocate(DType::I64, Shape::vector(count))?;
        fill_by(ctx.par(), reverse.slice_mut::<i64>()?, |at| at as i64);
        ctx.set(2, Tensor::vector(&empty));
        ctx.set(3, reverse);
        let values = ctx.take(1)?;
        ctx.set(1, values);
        return Ok(None);
    }
    let mut total = 0;
    for (slot, is_empty) in next.iter_mut().zip(&empty) {
        let own = *slot + i64::from(*is_empty);
        *slot = total;
        total += own;
    }
    // The default comes behind the values.
    let mut places = filled(count, total as usize)?;
    let mut out = filled(0i64, (total as usize).saturating_mul(rank))?;
    for (row, _) in empty.iter().enumerate().filter(|(_, is_empty)| **is_empty) {
        out[next[row] as usize * rank] = row as i64;
    }
    let mut reverse = Vec::with_capacity(count);
    for (at, index) in indices.chunks_exact(rank.max(1)).enumerate() {
        let slot = &mut next[index[0] as usize];
        let to = *slot as usize;
        *slot += 1;
        reverse.push(to as i64);
        places[to] = at;
        out[to * rank..(to + 1) * rank].copy_from_slice(index);
    }
    let default = default.clone().reshaped(Shape::vector(1))?;
    let filled = picked(&joined(values.dtype(), &[values, &default])?, &places)?;
    ctx.set(1, filled);
    ctx.set(2, Tensor::vector(&empty));
    ctx.set(3, Tensor::vector(&reverse));
    Ok(Some(out))
}

fn check(indices: &Tensor, values: &Tensor, shape: &Tensor, default: &Tensor) -> Result<()> {
    ensure!(
        shape.rank() == 1 && shape.elements() > 0,
        invalid_argument,
        "dense_shape must be a vector, saw: {}",
        shape.shape()
    );
    ensure!(
        indices.rank() == 2,
        invalid_argument,
        "indices must be a matrix, saw: {}",
        indices.shape()
    );
    ensure!(
        values.rank() == 1,
        invalid_argument,
        "values must be a vector, saw: {}",
        values.shape()
    );
    ensure!(
        indices.shape().dim(0) == values.elements(),
        invalid_argument,
        "The length of `values` ({}) must match the first dimension of `indices` ({}).",
        values.elements(),
        indices.shape().dim(0)
    );
    ensure!(
        indices.shape().dim(1) == shape.elements(),
        invalid_argument,
        "Index rank {} and shape rank {} do not match.",
        indices.shape().dim(1),
        shape.elements()
    );
    ensure!(
        default.rank() == 0,
        invalid_argument,
        "default_value must be a scalar, saw: {}",
        default.shape()
    );
    Ok(())
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    by_number!(dtype, T => AnyKernel::sync(spread::<T>), else => Err(internal!("no sums of {dtype}")))
}

fn spread<T: Element + Num>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (map, grad) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        map.rank() == 1 && grad.rank() == 1,
        invalid_argument,
        "reverse_index_map and grad_values must be vectors, saw: {} and {}",
        map.shape(),
        grad.shape()
    );
    let grads = grad.slice::<T>()?;
    let mut seen = vec![false; grads.len()];
    let mut values = Vec::with_capacity(map.elements());
    for at in map.slice::<i64>()? {
        let place = usize::try_from(*at).ok().filter(|at| *at < grads.len());
        let place = place.ok_or_else(|| {
            invalid_argument!(
                "Elements in reverse index must be in [0, {}) but got {at}",
                grads.len()
            )
        })?;
        seen[place] = true;
        values.push(grads[place]);
    }
    let rest = grads.iter().zip(&seen).filter(|(_, seen)| !**seen);
    let default = rest.fold(T::ZERO, |sum, (grad, _)| sum.add(*grad));
    ctx.set(0, Tensor::from_vec(Shape::vector(values.len()), values)?);
    ctx.set(1, Tensor::scalar(default));
    Ok(())
}
