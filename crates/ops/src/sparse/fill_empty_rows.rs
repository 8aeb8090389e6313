//! `SparseFillEmptyRows`, `SparseFillEmptyRowsGrad`: a default value for rows that have none.
//!
//! TensorFlow: SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) -> (output_indices,
//! output_values: T, empty_row_indicator: bool, reverse_index_map: int64), in order of the rows;
//! SparseFillEmptyRowsGrad(reverse_index_map: int64, grad_values: T) -> (d_values: T, d_default_value: T).

use tensorfleet_graph::example::{bools, ex, ex_err, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{Element, Shape, Tensor};

use super::parts::{joined, picked};
use crate::by_number;
use crate::types::NUMBERS;

pub(crate) static OPS: [OpDef; 2] = [
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
        attrs: &["T: type"],
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[], build)],
        exactness: Exactness::Bits,
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
        ..OpDef::BLANK
    },
    OpDef {
        name: "SparseFillEmptyRowsGrad",
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

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (indices, values, default) = (ctx.input(0)?, ctx.input(1)?, ctx.input(3)?);
        check(indices, values, ctx.input(2)?, default)?;
        let (count, rank) = (indices.shape().dim(0), indices.shape().dim(1));
        let indices = indices.slice::<i64>()?;
        let rows = ctx.ints(2)?.first().copied().unwrap_or(0);
        let rows = Shape::new(&[rows])?.elements();
        ensure!(
            rows > 0 || count == 0,
            invalid_argument,
            "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {count}"
        );
        let mut by_row: Vec<Vec<usize>> = vec![Vec::new(); rows];
        for (at, index) in indices.chunks_exact(rank.max(1)).enumerate() {
            let slot = usize::try_from(index[0]).ok();
            let slot = slot.and_then(|row| by_row.get_mut(row)).ok_or_else(|| {
                invalid_argument!("indices({at}, 0) is invalid: {} >= {rows}", index[0])
            })?;
            slot.push(at);
        }
        let mut out = Vec::with_capacity((count + rows) * rank);
        // The default comes behind the values.
        let (mut places, mut reverse) = (Vec::with_capacity(count + rows), vec![0i64; count]);
        for (row, own) in by_row.iter().enumerate() {
            if own.is_empty() {
                out.push(row as i64);
                out.resize(out.len() + rank - 1, 0);
                places.push(count);
            }
            for at in own {
                reverse[*at] = places.len() as i64;
                out.extend_from_slice(&indices[at * rank..(at + 1) * rank]);
                places.push(*at);
            }
        }
        let default = default.clone().reshaped(Shape::vector(1))?;
        let filled = picked(&joined(values.dtype(), &[values, &default])?, &places)?;
        let empty: Vec<bool> = by_row.iter().map(Vec::is_empty).collect();
        let shape = Shape::matrix(places.len(), rank)?;
        ctx.set(0, Tensor::from_vec(shape, out)?);
        ctx.set(1, filled);
        ctx.set(2, Tensor::vector(&empty));
        ctx.set(3, Tensor::vector(&reverse));
        Ok(())
    })
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
