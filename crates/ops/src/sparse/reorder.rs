//! `SparseReorder`: the values of a sparse tensor in row-major order of their indices.
//!
//! TensorFlow: SparseReorder(input_indices: int64, input_values: T, input_shape: int64) -> (output_indices, output_values).
//! Indices are compared with each other only: those outside of the shape, and a shape that is none, pass.

use tensorfleet_graph::example::{ex, ex_err, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{Shape, Tensor, Word, by_word};

use super::Rows;
use crate::array::grads;

pub(crate) static OP: OpDef = OpDef {
    name: "SparseReorder",
    inputs: &[
        "input_indices: int64",
        "input_values: T",
        "input_shape: int64",
    ],
    outputs: &["output_indices: int64", "output_values: T"],
    attrs: &["T: type"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "three values",
            &[
                i64s(&[3, 2], &[1, 0, 0, 1, 0, 0]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i64s(&[2], &[2, 2]),
            ],
            &[
                i64s(&[3, 2], &[0, 0, 0, 1, 1, 0]),
                x(&[3], &[3.0, 2.0, 1.0]),
            ],
        ),
        ex(
            "strings",
            &[
                i64s(&[2, 1], &[4, 2]),
                strs(&[2], &["a", "b"]),
                i64s(&[1], &[5]),
            ],
            &[i64s(&[2, 1], &[2, 4]), strs(&[2], &["b", "a"])],
        ),
        ex(
            "outside of the shape",
            &[
                i64s(&[3, 2], &[4, 0, -1, 9, 0, 0]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i64s(&[2], &[2, -2]),
            ],
            &[
                i64s(&[3, 2], &[-1, 9, 0, 0, 4, 0]),
                x(&[3], &[2.0, 3.0, 1.0]),
            ],
        ),
        ex_err(
            "lengths differ",
            &[],
            &[
                i64s(&[1, 1], &[0]),
                strs(&[2], &["a", "b"]),
                i64s(&[1], &[5]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

/// The numbers of the values, sorted as they were, tell where each gradient came from.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices, values, shape) = (g.grad(1)?, g.input(0), g.input(1), g.input(2));
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let count = g.apply("Size", &[values])?;
    let numbers = g.apply("Range", &[zero, count, one])?;
    let node = g.builder().op("SparseReorder");
    let sorted = node.input(indices).input(numbers).input(shape).build()?;
    let back = g.apply("InvertPermutation", &[sorted.output(1)])?;
    let to_values = grads::element(g, grad, back)?;
    Ok(vec![None, Some(Grad::Dense(to_values)), None])
}

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let (indices, values) = (ctx.input(0).clone(), ctx.input(1).clone());
    ctx.set(0, indices);
    ctx.set(1, values);
    Ok(())
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let rows = Rows::new(ctx.input(0)?, ctx.input(1)?, ctx.input(2)?)?;
        let count = ctx.input(1)?.elements();
        let mut order: Vec<usize> = (0..count).collect();
        // One number is compared faster than a row of them.
        match rows.positions(ctx.par(), &ctx.ints(2)?) {
            Some(positions) if positions.is_sorted() => {
                drop(rows);
                let (indices, values) = (ctx.take(0)?, ctx.take(1)?);
                ctx.set(0, indices);
                ctx.set(1, values);
                return Ok(());
            }
            Some(positions) => order.sort_by_key(|index| positions[*index]),
            None => order.sort_by_key(|index| rows.row(*index)),
        }
        let mut indices = Vec::with_capacity(rows.flat.len());
        for index in &order {
            indices.extend_from_slice(rows.row(*index));
        }
        let shape = Shape::matrix(count, rows.rank)?;
        let values = ctx.input(1)?;
        let mut sorted = ctx.allocate(values.dtype(), values.shape().clone())?;
        by_word!(values.dtype(), W => pick::<W>(values, &order, &mut sorted))?;
        ctx.set(0, Tensor::from_vec(shape, indices)?);
        ctx.set(1, sorted);
        Ok(())
    })
}

fn pick<W: Word>(values: &Tensor, order: &[usize], out: &mut Tensor) -> Result<()> {
    let values = values.words::<W>()?;
    for (slot, index) in out.words_mut::<W>()?.iter_mut().zip(order) {
        *slot = values[*index].clone();
    }
    Ok(())
}
