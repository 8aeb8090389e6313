//! `SparseTensorDenseAdd`: the sum of a sparse and a dense tensor of one shape.
//!
//! TensorFlow: SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> output: T. Values of one place add up.

use tensorfleet_graph::example::{ex, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Element, Shape, Tensor};

use crate::by_number;
use crate::math::cast::integers;
use crate::math::elementwise::no_function;
use crate::types::{INDEX, NUMBERS};

pub(crate) static OP: OpDef = OpDef {
    name: "SparseTensorDenseAdd",
    inputs: &[
        "a_indices: Tindices",
        "a_values: T",
        "a_shape: Tindices",
        "b: T",
    ],
    outputs: &["output: T"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "Tindices: {int32, int64}",
    ],
    infer: |ctx| {
        ctx.set(0, ctx.input(3).clone());
        Ok(())
    },
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", NUMBERS), ("Tindices", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "matrix",
            &[
                i64s(&[3, 2], &[0, 1, 1, 0, 0, 1]),
                x(&[3], &[5.0, 6.0, 7.0]),
                i64s(&[2], &[2, 2]),
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            ],
            &[x(&[2, 2], &[1.0, 14.0, 9.0, 4.0])],
        ),
        ex(
            "nothing added",
            &[
                i32s(&[0, 1], &[]),
                x(&[0], &[]),
                i32s(&[1], &[2]),
                x(&[2], &[1.0, 2.0]),
            ],
            &[x(&[2], &[1.0, 2.0])],
        ),
        ex_err(
            "ranks differ",
            &[],
            &[
                i64s(&[1, 1], &[0]),
                f32s(&[1], &[5.0]),
                i64s(&[1], &[2]),
                f32s(&[2, 2], &[1.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "shapes differ",
            &[],
            &[
                i64s(&[1, 1], &[0]),
                f32s(&[1], &[5.0]),
                i64s(&[1], &[2]),
                f32s(&[3], &[1.0]),
            ],
            Code::InvalidArgument,
            "Dimension 0 does not equal (no broadcasting is supported): sparse side 2 vs dense side 3",
        ),
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
            "Sparse tensor has an invalid index on dimension 0: a_indices(0,0) = 2",
        ),
        ex_err(
            "number of values",
            &[],
            &[
                i64s(&[1, 1], &[1]),
                f32s(&[2], &[5.0]),
                i64s(&[1], &[2]),
                f32s(&[2], &[1.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices) = (g.grad(0)?, g.input(0));
    let to_values = g.apply("GatherNd", &[grad, indices])?;
    Ok(vec![
        None,
        Some(Grad::Dense(to_values)),
        None,
        Some(Grad::Dense(grad)),
    ])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T")?;
    by_number!(dtype, T => AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let places = places(ctx)?;
        let out = added::<T>(ctx.take(3)?, ctx.input(1)?, &places)?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(no_function(&node.op, dtype)))
}

fn added<T: Element + Num>(mut out: Tensor, values: &Tensor, places: &[usize]) -> Result<Tensor> {
    let dense = out.slice_mut::<T>()?;
    for (value, place) in values.slice::<T>()?.iter().zip(places) {
        dense[*place] = dense[*place].add(*value);
    }
    Ok(out)
}

/// The position of each value in the dense tensor.
fn places(ctx: &KernelCtx<'_>) -> Result<Vec<usize>> {
    let [indices, values, shape] = [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?];
    let dense: &Shape = ctx.input(3)?.shape();
    ensure!(
        indices.rank() == 2,
        invalid_argument,
        "Input a_indices should be a matrix but received shape: {}",
        indices.shape()
    );
    ensure!(
        values.rank() == 1 && shape.rank() == 1,
        invalid_argument,
        "Inputs a_values and a_shape should be vectors but received shapes: {} and {}",
        values.shape(),
        shape.shape()
    );
    let (count, rank) = (indices.shape().dim(0), indices.shape().dim(1));
    for (wanted, found) in [(count, values.elements()), (rank, shape.elements())] {
        ensure!(
            wanted == found,
            invalid_argument,
            "Dimensions {wanted} and {found} are not compatible"
        );
    }
    ensure!(
        rank == dense.rank(),
        invalid_argument,
        "Two operands have different ranks; received: {rank} and {}",
        dense.rank()
    );
    let shape = integers(shape)?;
    for (axis, (own, dim)) in shape.iter().zip(dense.iter()).enumerate() {
        ensure!(
            own == dim,
            invalid_argument,
            "Dimension {axis} does not equal (no broadcasting is supported): sparse side {own} vs dense side {dim}"
        );
    }
    ensure!(
        (1..=5).contains(&rank),
        invalid_argument,
        "Only tensors with ranks between 1 and 5 are currently supported.  Tensor rank: {rank}"
    );
    let mut places = Vec::with_capacity(count);
    for (row, index) in integers(indices)?.chunks_exact(rank).enumerate() {
        let mut place = 0;
        for (axis, (at, dim)) in index.iter().zip(&shape).enumerate() {
            ensure!(
                (0..*dim).contains(at),
                invalid_argument,
                "Sparse tensor has an invalid index on dimension {axis}: a_indices({row},{axis}) = {at}, dense tensor shape: {shape:?}"
            );
            place = place * *dim as usize + *at as usize;
        }
        places.push(place);
    }
    Ok(places)
}
