//! `SparseReshape`: the same values at the places they have in another shape.
//!
//! TensorFlow: SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64) -> (output_indices: int64,
//! output_shape: int64); one new dimension may be -1.

use crate::room::room;
use tensorfleet_graph::example::{ex, ex_err, i64s};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

pub(crate) static OP: OpDef = OpDef {
    name: "SparseReshape",
    inputs: &[
        "input_indices: int64",
        "input_shape: int64",
        "new_shape: int64",
    ],
    outputs: &["output_indices: int64", "output_shape: int64"],
    gradient: Gradient::Stop("indices are not differentiated"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "to three rows",
            &[
                i64s(&[2, 2], &[0, 0, 1, 2]),
                i64s(&[2], &[2, 3]),
                i64s(&[2], &[3, -1]),
            ],
            &[i64s(&[2, 2], &[0, 0, 2, 1]), i64s(&[2], &[3, 2])],
        ),
        ex(
            "no values",
            &[i64s(&[0, 2], &[]), i64s(&[2], &[2, 3]), i64s(&[1], &[6])],
            &[i64s(&[0, 1], &[]), i64s(&[1], &[6])],
        ),
        ex_err(
            "no multiple",
            &[],
            &[
                i64s(&[2, 2], &[0, 0, 1, 2]),
                i64s(&[2], &[2, 3]),
                i64s(&[2], &[4, -1]),
            ],
            Code::InvalidArgument,
            "Input to reshape is a SparseTensor with 6 dense values, but the requested shape requires a multiple of 4. input_shape=[2,3] output_shape=[4,1]",
        ),
        ex_err(
            "two unknown",
            &[],
            &[
                i64s(&[2, 2], &[0, 0, 1, 2]),
                i64s(&[2], &[2, 3]),
                i64s(&[2], &[-1, -1]),
            ],
            Code::InvalidArgument,
            "only one output dimension may be -1, not both 0 and 1",
        ),
        ex_err(
            "other size",
            &[],
            &[
                i64s(&[2, 2], &[0, 0, 1, 2]),
                i64s(&[2], &[2, 3]),
                i64s(&[1], &[4]),
            ],
            Code::InvalidArgument,
            "Input to reshape is a tensor with 6 dense values, but the requested shape has 4. input_shape=[2,3] output_shape=[4]",
        ),
        ex_err(
            "negative",
            &[],
            &[
                i64s(&[2, 2], &[0, 0, 1, 2]),
                i64s(&[2], &[2, 3]),
                i64s(&[2], &[-2, 3]),
            ],
            Code::InvalidArgument,
            "size 0 must be non-negative, not -2",
        ),
        ex(
            "same shape",
            &[
                i64s(&[2, 2], &[0, 5, 1, 2]),
                i64s(&[2], &[2, 3]),
                i64s(&[2], &[-1, 3]),
            ],
            &[i64s(&[2, 2], &[0, 5, 1, 2]), i64s(&[2], &[2, 3])],
        ),
        ex_err(
            "too large",
            &[],
            &[
                i64s(&[1, 2], &[0, 0]),
                i64s(&[2], &[4294967296, 2147483648]),
                i64s(&[2], &[1, 1]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (indices, old, new) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(
            indices.rank() == 2,
            invalid_argument,
            "Input must be a matrix."
        );
        ensure!(
            old.rank() == 1,
            invalid_argument,
            "Input shape should be a vector but received shape {}",
            old.shape()
        );
        ensure!(
            new.rank() == 1,
            invalid_argument,
            "Target shape should be a vector but received shape {}",
            new.shape()
        );
        ensure!(
            indices.shape().dim(1) == old.elements(),
            invalid_argument,
            "Input tensor rank must match input shape length."
        );
        let old = Shape::new(old.slice::<i64>()?)?;
        let new = resolved(&old, new.slice::<i64>()?)?;
        if new == *old {
            // As they are, even those outside of the shape.
            let (indices, shape) = (ctx.take(0)?, ctx.take(1)?);
            ctx.set(0, indices);
            ctx.set(1, shape);
            return Ok(());
        }
        let rows = indices.slice::<i64>()?.chunks_exact(old.rank().max(1));
        let mut out = room(
            indices
                .elements()
                .checked_div(old.rank())
                .unwrap_or(0)
                .saturating_mul(new.len()),
        )?;
        for row in rows {
            // Places outside of the shape stay outside; they must not overflow.
            let mut place = row.iter().zip(old.iter()).fold(0i64, |place, (at, dim)| {
                place.wrapping_mul(*dim).wrapping_add(*at)
            });
            let mut strides = vec![1i64; new.len()];
            for axis in (1..new.len()).rev() {
                strides[axis - 1] = strides[axis].wrapping_mul(new[axis]);
            }
            for stride in strides {
                let stride = stride.max(1);
                out.push(place / stride);
                place %= stride;
            }
        }
        let shape = Shape::matrix(indices.shape().dim(0), new.len())?;
        ctx.set(0, Tensor::from_vec(shape, out)?);
        ctx.set(1, Tensor::vector(&new));
        Ok(())
    })
}

/// The new shape with its unknown dimension filled in.
fn resolved(old: &Shape, new: &[i64]) -> Result<Vec<i64>> {
    let mut unknown = None;
    let mut product = 1i64;
    for (axis, dim) in new.iter().enumerate() {
        if *dim == -1 {
            if let Some(first) = unknown {
                return Err(invalid_argument!(
                    "only one output dimension may be -1, not both {first} and {axis}"
                ));
            }
            unknown = Some(axis);
            continue;
        }
        ensure!(
            *dim >= 0,
            invalid_argument,
            "size {axis} must be non-negative, not {dim}"
        );
        product = product
            .checked_mul(*dim)
            .ok_or_else(|| invalid_argument!("the requested shape {new:?} is too large"))?;
    }
    let size = old.elements() as i64;
    let mut out = new.to_vec();
    let text = |dims: &[i64]| Shape::new(dims).map(|shape| shape.to_string());
    if let Some(axis) = unknown {
        ensure!(
            product > 0,
            invalid_argument,
            "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero"
        );
        out[axis] = size / product;
        if out[axis] * product != size {
            return Err(invalid_argument!(
                "Input to reshape is a SparseTensor with {size} dense values, but the requested shape requires a multiple of {product}. input_shape={old} output_shape={}",
                text(&out)?
            ));
        }
    } else if product != size {
        return Err(invalid_argument!(
            "Input to reshape is a tensor with {size} dense values, but the requested shape has {product}. input_shape={old} output_shape={}",
            text(&out)?
        ));
    }
    Ok(out)
}
