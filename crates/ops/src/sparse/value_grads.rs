//! `SparseAddGrad`, `SparseSliceGrad`: gradients of the values of a sparse result, handed back to the values it was made of.
//!
//! TensorFlow: SparseAddGrad(backprop_val_grad: T, a_indices, b_indices, sum_indices) -> (a_val_grad: T, b_val_grad: T);
//! SparseSliceGrad(backprop_val_grad: T, input_indices, input_start, output_indices) -> val_grad: T. All indices are int64
//! matrices in row-major order; a value whose place is not in the result gets zero.

use std::cmp::Ordering;

use tensorfleet_graph::example::{ex, ex_err, f32s, i64s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Shape, Tensor, Word, by_word};

use super::add;
use crate::types::NUMBERS;

const VALUE_GRAD: OpDef = OpDef {
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    ],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "SparseAddGrad",
        inputs: &[
            "backprop_val_grad: T",
            "a_indices: int64",
            "b_indices: int64",
            "sum_indices: int64",
        ],
        outputs: &["a_val_grad: T", "b_val_grad: T"],
        gradient: Gradient::Stop("TensorFlow's is not differentiable either"),
        kernels: &[cpu(&[("T", add::TYPES)], |_| AnyKernel::sync(of_sum))],
        examples: &[
            ex(
                "overlap",
                &[
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2, 2], &[0, 0, 1, 1]),
                    i64s(&[2, 2], &[0, 1, 1, 1]),
                    i64s(&[3, 2], &[0, 0, 0, 1, 1, 1]),
                ],
                &[x(&[2], &[1.0, 3.0]), x(&[2], &[2.0, 3.0])],
            ),
            ex(
                "only one kept",
                &[
                    x(&[1], &[1.0]),
                    i64s(&[2, 2], &[0, 0, 1, 1]),
                    i64s(&[2, 2], &[0, 1, 1, 1]),
                    i64s(&[1, 2], &[0, 1]),
                ],
                &[x(&[2], &[0.0, 0.0]), x(&[2], &[1.0, 0.0])],
            ),
            ex(
                "nothing",
                &[
                    x(&[0], &[]),
                    i64s(&[1, 2], &[0, 0]),
                    i64s(&[0, 2], &[]),
                    i64s(&[0, 2], &[]),
                ],
                &[x(&[1], &[0.0]), x(&[0], &[])],
            ),
            ex_err(
                "lengths",
                &[],
                &[
                    f32s(&[2], &[1.0]),
                    i64s(&[1, 1], &[0]),
                    i64s(&[1, 1], &[1]),
                    i64s(&[1, 1], &[0]),
                ],
                Code::InvalidArgument,
                "should match (#nnz of sum): got 2 and 1",
            ),
            ex_err(
                "ranks",
                &[],
                &[
                    f32s(&[1], &[1.0]),
                    i64s(&[1, 1], &[0]),
                    i64s(&[1, 2], &[1]),
                    i64s(&[1, 2], &[0]),
                ],
                Code::InvalidArgument,
                "The densified operands should have the same ndims",
            ),
            ex_err(
                "no matrix",
                &[],
                &[
                    f32s(&[1], &[1.0]),
                    i64s(&[1], &[0]),
                    i64s(&[1, 1], &[1]),
                    i64s(&[1, 1], &[0]),
                ],
                Code::InvalidArgument,
                "Input indices should be matrices",
            ),
        ],
        ..VALUE_GRAD
    },
    OpDef {
        name: "SparseSliceGrad",
        inputs: &[
            "backprop_val_grad: T",
            "input_indices: int64",
            "input_start: int64",
            "output_indices: int64",
        ],
        outputs: &["val_grad: T"],
        gradient: Gradient::None("TensorFlow has none either"),
        kernels: &[cpu(&[("T", NUMBERS)], |_| AnyKernel::sync(of_slice))],
        examples: &[
            ex(
                "a corner",
                &[
                    x(&[2], &[1.0, 2.0]),
                    i64s(&[4, 2], &[0, 0, 0, 3, 1, 2, 3, 4]),
                    i64s(&[2], &[0, 2]),
                    i64s(&[2, 2], &[0, 1, 1, 0]),
                ],
                &[x(&[4], &[0.0, 1.0, 2.0, 0.0])],
            ),
            ex(
                "nothing inside",
                &[
                    x(&[0], &[]),
                    i64s(&[1, 2], &[0, 0]),
                    i64s(&[2], &[0, 2]),
                    i64s(&[0, 2], &[]),
                ],
                &[x(&[1], &[0.0])],
            ),
            ex_err(
                "no such value",
                &[],
                &[
                    f32s(&[1], &[1.0]),
                    i64s(&[2, 1], &[0, 3]),
                    i64s(&[1], &[1]),
                    i64s(&[1, 1], &[1]),
                ],
                Code::Internal,
                "Elements of backprop_val_grad aren't all propagated",
            ),
            ex_err(
                "lengths",
                &[],
                &[
                    f32s(&[1], &[1.0]),
                    i64s(&[2, 1], &[0, 3]),
                    i64s(&[1], &[0]),
                    i64s(&[2, 1], &[0, 3]),
                ],
                Code::InvalidArgument,
                "got 1 and 2",
            ),
            ex_err(
                "start",
                &[],
                &[
                    f32s(&[1], &[1.0]),
                    i64s(&[2, 1], &[0, 3]),
                    i64s(&[2], &[0]),
                    i64s(&[1, 1], &[0]),
                ],
                Code::InvalidArgument,
                "Expected input_start to be a vector of length 1 but got length 2",
            ),
        ],
        ..VALUE_GRAD
    },
];

fn of_sum(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let [grad, a, b, sum] = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?];
    ensure!(
        [a, b, sum].iter().all(|indices| indices.rank() == 2),
        invalid_argument,
        "Input indices should be matrices but received shapes: {} and {} and {}",
        a.shape(),
        b.shape(),
        sum.shape()
    );
    check_grad(grad, sum, "sum_indices")?;
    let [of_a, of_b, rank] = [a, b, sum].map(|indices| indices.shape().dim(1));
    ensure!(
        of_a == rank && of_b == rank && rank > 0,
        invalid_argument,
        "The densified operands should have the same ndims; for A, B, sum got: {of_a}, {of_b}, {rank}"
    );
    let start = vec![0; rank];
    let (to_a, _) = handed_back(grad, sum, a, &start)?;
    let (to_b, _) = handed_back(grad, sum, b, &start)?;
    ctx.set(0, to_a);
    ctx.set(1, to_b);
    Ok(())
}

fn of_slice(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let [grad, input, start, output] = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?];
    ensure!(
        input.rank() == 2 && output.rank() == 2,
        invalid_argument,
        "Input and output indices should be matrices but received shapes: {} and {}",
        input.shape(),
        output.shape()
    );
    check_grad(grad, output, "output_indices")?;
    let (rank, of_output) = (input.shape().dim(1), output.shape().dim(1));
    ensure!(
        rank == of_output && rank > 0,
        invalid_argument,
        "The input and output should have the same ndims: got: {rank} and {of_output}"
    );
    ensure!(
        start.rank() == 1,
        invalid_argument,
        "The input_start should be a vector but received shape {}",
        start.shape()
    );
    ensure!(
        start.elements() == rank,
        invalid_argument,
        "Expected input_start to be a vector of length {rank} but got length {}",
        start.elements()
    );
    let (to_input, used) = handed_back(grad, output, input, start.slice::<i64>()?)?;
    ensure!(
        used == grad.elements(),
        internal,
        "Elements of backprop_val_grad aren't all propagated. Num elements:{}, used: {used}",
        grad.elements()
    );
    ctx.set(0, to_input);
    Ok(())
}

/// One gradient for each row of the indices of the result.
fn check_grad(grad: &Tensor, indices: &Tensor, name: &str) -> Result<()> {
    ensure!(
        grad.rank() == 1,
        invalid_argument,
        "Input backprop_val_grad should be a vector but received shape: {}",
        grad.shape()
    );
    ensure!(
        grad.elements() == indices.shape().dim(0),
        invalid_argument,
        "# elements of backprop_val_grad and # rows of {name} should match (#nnz of sum): got {} and {}",
        grad.elements(),
        indices.shape().dim(0)
    );
    Ok(())
}

/// For each row of `to` the gradient of the row of `from` that is as far from zero as it is from `start`, else zero; and how
/// many were found. Both are walked once, in step.
fn handed_back(
    grad: &Tensor,
    from: &Tensor,
    to: &Tensor,
    start: &[i64],
) -> Result<(Tensor, usize)> {
    let mut sources = from.slice::<i64>()?.chunks_exact(start.len()).peekable();
    let mut places = Vec::new();
    let mut source = 0;
    for (target, row) in to.slice::<i64>()?.chunks_exact(start.len()).enumerate() {
        let shifted = || {
            row.iter()
                .zip(start)
                .map(|(at, start)| at.wrapping_sub(*start))
        };
        while let Some(found) = sources.peek() {
            match found.iter().copied().cmp(shifted()) {
                Ordering::Less => {}
                Ordering::Equal => places.push((source, target)),
                Ordering::Greater => break,
            }
            source += 1;
            sources.next();
        }
    }
    let mut out = Tensor::zeros(grad.dtype(), Shape::vector(to.shape().dim(0)))?;
    by_word!(grad.dtype(), W => copy::<W>(grad, &places, &mut out))?;
    Ok((out, places.len()))
}

fn copy<W: Word>(grad: &Tensor, places: &[(usize, usize)], out: &mut Tensor) -> Result<()> {
    let (grad, out) = (grad.words::<W>()?, out.words_mut::<W>()?);
    for (source, target) in places {
        out[*target] = grad[*source].clone();
    }
    Ok(())
}
