//! `SparseDenseCwiseAdd`, `SparseDenseCwiseMul`, `SparseDenseCwiseDiv`: each value of a sparse tensor with the element of a dense one at
//! its place.
//!
//! TensorFlow: (sp_indices: int64, sp_values: T, sp_shape: int64, dense: T) -> output: T, the new values. The dense side is broadcast
//! to the sparse one, never the other way round; places without a value stay without.

use tensorfleet_graph::example::{Example, ex, ex_err, f32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::parts::Part;
use crate::array::grads;
use crate::by_real;
use crate::math::elementwise::no_function;
use crate::types::REAL_NUMBERS;

const CWISE: OpDef = OpDef {
    inputs: &[
        "sp_indices: int64",
        "sp_values: T",
        "sp_shape: int64",
        "dense: T",
    ],
    outputs: &["output: T"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    ],
    ..OpDef::BLANK
};

const WIDER: Example = ex_err(
    "dense side is larger",
    &[],
    &[
        i64s(&[1, 1], &[0]),
        f32s(&[1], &[5.0]),
        i64s(&[1], &[2]),
        f32s(&[2, 2], &[1.0]),
    ],
    Code::InvalidArgument,
    "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [2] vs. [2,2]",
);

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "SparseDenseCwiseAdd",
        gradient: Gradient::None("TensorFlow's is not implemented either"),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Operation::Add)
        })],
        examples: &[
            ex(
                "column for each row",
                &[
                    i64s(&[3, 2], &[0, 0, 0, 2, 1, 1]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2], &[2, 3]),
                    x(&[2, 1], &[4.0, 5.0]),
                ],
                &[x(&[3], &[5.0, 6.0, 8.0])],
            ),
            WIDER,
        ],
        ..CWISE
    },
    OpDef {
        name: "SparseDenseCwiseDiv",
        gradient: Gradient::Rule(|g| gradient(g, Operation::Div)),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Operation::Div)
        })],
        examples: &[
            ex(
                "same shape",
                &[
                    i64s(&[2, 2], &[0, 1, 1, 0]),
                    x(&[2], &[8.0, 6.0]),
                    i64s(&[2], &[2, 2]),
                    x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                ],
                &[x(&[2], &[4.0, 2.0])],
            ),
            ex_err(
                "by zero",
                &[],
                &[
                    i64s(&[1, 1], &[0]),
                    x(&[1], &[5.0]),
                    i64s(&[1], &[2]),
                    x(&[2], &[0.0, 1.0]),
                ],
                Code::InvalidArgument,
                "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero ",
            ),
        ],
        ..CWISE
    },
    OpDef {
        name: "SparseDenseCwiseMul",
        gradient: Gradient::Rule(|g| gradient(g, Operation::Mul)),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Operation::Mul)
        })],
        examples: &[
            ex(
                "row for all rows",
                &[
                    i64s(&[3, 2], &[0, 0, 0, 2, 1, 1]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2], &[2, 3]),
                    x(&[3], &[4.0, 5.0, 6.0]),
                ],
                &[x(&[3], &[4.0, 12.0, 15.0])],
            ),
            ex(
                "nothing",
                &[
                    i64s(&[0, 1], &[]),
                    x(&[0], &[]),
                    i64s(&[1], &[2]),
                    x(&[2], &[4.0, 5.0]),
                ],
                &[x(&[0], &[])],
            ),
            WIDER,
            ex_err(
                "outside of the shape",
                &[],
                &[
                    i64s(&[1, 1], &[2]),
                    f32s(&[1], &[5.0]),
                    i64s(&[1], &[2]),
                    f32s(&[2], &[1.0]),
                ],
                Code::InvalidArgument,
                "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape",
            ),
            ex_err(
                "no dimensions",
                &[],
                &[
                    i64s(&[1, 0], &[]),
                    f32s(&[1], &[5.0]),
                    i64s(&[0], &[]),
                    f32s(&[], &[1.0]),
                ],
                Code::InvalidArgument,
                "The shape argument requires at least one element.",
            ),
        ],
        ..CWISE
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Add,
    Mul,
    Div,
}

/// Where the dense side is broadcast, several values go back to one element.
fn gradient(g: &mut GradCtx<'_>, operation: Operation) -> Result<InputGrads> {
    let (grad, values, dense) = (g.grad(0)?, g.input(1), g.input(3));
    let (indices, dense_shape) = dense_indices(g)?;
    let at_values = g.apply("GatherNd", &[dense, indices])?;
    let (to_values, to_dense) = if operation == Operation::Mul {
        (
            g.apply("Mul", &[grad, at_values])?,
            g.apply("Mul", &[grad, values])?,
        )
    } else {
        let square = g.apply("Square", &[at_values])?;
        let slope = g.apply("RealDiv", &[values, square])?;
        let slope = g.apply("Neg", &[slope])?;
        (
            g.apply("RealDiv", &[grad, at_values])?,
            g.apply("Mul", &[grad, slope])?,
        )
    };
    let zeros = g.apply("ZerosLike", &[dense])?;
    let node = g.builder().op("SparseTensorDenseAdd").input(indices);
    let node = node.input(to_dense).input(dense_shape).input(zeros);
    let to_dense = node.output()?;
    Ok(vec![
        None,
        Some(Grad::Dense(to_values)),
        None,
        Some(Grad::Dense(to_dense)),
    ])
}

/// The place in the dense tensor of each value, and the shape of that tensor.
fn dense_indices(g: &mut GradCtx<'_>) -> Result<(Output, Output)> {
    let (indices, shape, dense) = (g.input(0), g.input(2), g.input(3));
    let dense_shape = grads::shape_as(g, dense, DType::I64)?;
    let (rank, dense_rank) = (g.apply("Size", &[shape])?, g.apply("Size", &[dense_shape])?);
    let (zero, one) = (
        grads::int(g, 0)?,
        g.builder().constant(Tensor::scalar(1i64))?,
    );
    let missing = g.apply("Sub", &[rank, dense_rank])?;
    let missing = g.apply("ExpandDims", &[missing, zero])?;
    let ones = g.apply("Fill", &[missing, one])?;
    let aligned = grads::join(g, &[ones, dense_shape])?;
    let repeats = g.apply("FloorDiv", &[shape, aligned])?;
    let indices = g.apply("FloorDiv", &[indices, repeats])?;
    let first_column = g.ints(&[0])?;
    let begin = grads::join(g, &[first_column, missing])?;
    let size = g.ints(&[-1, -1])?;
    Ok((g.apply("Slice", &[indices, begin, size])?, dense_shape))
}

fn build(node: &NodeInfo, operation: Operation) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    by_real!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let places = places(ctx)?;
        let out = combined::<T>(ctx.input(1)?, ctx.input(3)?, &places, operation)?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(no_function(&node.op, dtype)))
}

fn combined<T: Element + Num>(
    values: &Tensor,
    dense: &Tensor,
    places: &[usize],
    operation: Operation,
) -> Result<Tensor> {
    let (values, dense) = (values.slice::<T>()?, dense.slice::<T>()?);
    let mut out = Vec::with_capacity(values.len());
    for (value, place) in values.iter().zip(places) {
        let other = dense[*place];
        ensure!(
            operation != Operation::Div || other != T::ZERO,
            invalid_argument,
            "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero "
        );
        out.push(match operation {
            Operation::Add => value.add(other),
            Operation::Mul => value.mul(other),
            Operation::Div => value.div(other),
        });
    }
    Tensor::from_vec(Shape::vector(out.len()), out)
}

/// The position in the dense tensor of each value.
fn places(ctx: &KernelCtx<'_>) -> Result<Vec<usize>> {
    let part = Part::of(ctx, 0)?;
    let dense = ctx.input(3)?.shape();
    let rank = part.rank();
    ensure!(
        rank > 0,
        invalid_argument,
        "The shape argument requires at least one element."
    );
    let mut pairs = part.shape.iter().rev().zip(dense.iter().rev());
    ensure!(
        dense.rank() <= rank && pairs.all(|(own, dim)| dim == own || *dim == 1),
        invalid_argument,
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: {} vs. {dense}",
        Shape::new(&part.shape)?
    );
    ensure!(
        rank <= 5,
        invalid_argument,
        "Only tensors with ranks between 1 and 5 are currently supported.  Tensor rank: {rank}"
    );
    let mut places = Vec::with_capacity(part.len());
    for at in 0..part.len() {
        let mut inside = part.row(at).iter().zip(&part.shape);
        ensure!(
            inside.all(|(place, dim)| (0..*dim).contains(place)),
            invalid_argument,
            "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"
        );
        let own = part.row(at).iter().skip(rank - dense.rank());
        places.push(own.zip(dense.iter()).fold(0, |place, (at, dim)| {
            let at = if *dim == 1 { 0 } else { *at };
            place * *dim as usize + at as usize
        }));
    }
    Ok(places)
}
