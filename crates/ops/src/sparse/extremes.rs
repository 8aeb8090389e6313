//! `SparseSparseMaximum`, `SparseSparseMinimum`: the larger or smaller of two sparse tensors of one shape, zero where there is no value.
//!
//! TensorFlow: (a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64) -> (output_indices: int64,
//! output_values: T). Both must be in row-major order; the result has a value wherever one of them has.

use tensorfleet_graph::example::{ex, ex_err, f32s, i64s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::Element;

use super::{Union, coordinates, union};
use crate::by_real;
use crate::math::elementwise::{input_dtype, no_function};
use crate::types::REAL_NUMBERS;

const EXTREME: OpDef = OpDef {
    inputs: &[
        "a_indices: int64",
        "a_values: T",
        "a_shape: int64",
        "b_indices: int64",
        "b_values: T",
        "b_shape: int64",
    ],
    outputs: &["output_indices: int64", "output_values: T"],
    gradient: Gradient::None("TensorFlow's is not implemented either"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "SparseSparseMaximum",
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        ],
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| build(node, true))],
        examples: &[
            ex(
                "overlap",
                &[
                    i64s(&[2, 2], &[0, 0, 1, 1]),
                    x(&[2], &[1.0, 2.0]),
                    i64s(&[2], &[2, 2]),
                    i64s(&[2, 2], &[0, 1, 1, 1]),
                    x(&[2], &[3.0, 4.0]),
                    i64s(&[2], &[2, 2]),
                ],
                &[
                    i64s(&[3, 2], &[0, 0, 0, 1, 1, 1]),
                    x(&[3], &[1.0, 3.0, 4.0]),
                ],
            ),
            ex(
                "zero is larger",
                &[
                    i64s(&[1, 1], &[0]),
                    f32s(&[1], &[-1.0]),
                    i64s(&[1], &[3]),
                    i64s(&[1, 1], &[2]),
                    f32s(&[1], &[-2.0]),
                    i64s(&[1], &[3]),
                ],
                &[i64s(&[2, 1], &[0, 2]), f32s(&[2], &[0.0, 0.0])],
            ),
            ex_err(
                "shapes differ",
                &[],
                &[
                    i64s(&[1, 1], &[0]),
                    f32s(&[1], &[1.0]),
                    i64s(&[1], &[3]),
                    i64s(&[1, 1], &[1]),
                    f32s(&[1], &[2.0]),
                    i64s(&[1], &[4]),
                ],
                Code::InvalidArgument,
                "Operands' shapes do not match: got 3 and 4 for dimension 0",
            ),
            ex_err(
                "ranks differ",
                &[],
                &[
                    i64s(&[1, 1], &[0]),
                    f32s(&[1], &[1.0]),
                    i64s(&[1], &[3]),
                    i64s(&[1, 2], &[1]),
                    f32s(&[1], &[2.0]),
                    i64s(&[2], &[4, 4]),
                ],
                Code::InvalidArgument,
                "Operands do not have the same ranks; got shapes: ",
            ),
        ],
        ..EXTREME
    },
    OpDef {
        name: "SparseSparseMinimum",
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        ],
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| build(node, false))],
        examples: &[ex(
            "overlap",
            &[
                i64s(&[2, 2], &[0, 0, 1, 1]),
                x(&[2], &[1.0, 2.0]),
                i64s(&[2], &[2, 2]),
                i64s(&[2, 2], &[0, 1, 1, 1]),
                x(&[2], &[3.0, 4.0]),
                i64s(&[2], &[2, 2]),
            ],
            &[
                i64s(&[3, 2], &[0, 0, 0, 1, 1, 1]),
                x(&[3], &[0.0, 0.0, 2.0]),
            ],
        )],
        ..EXTREME
    },
];

fn build(node: &NodeInfo, is_maximum: bool) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("T").unwrap_or(input_dtype(node));
    by_real!(dtype, T => kernel::<T>(if is_maximum { T::larger } else { T::smaller }), else => Err(no_function(&node.op, dtype)))
}

fn kernel<T: Element + Real>(choose: fn(T, T) -> T) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b) = (coordinates(ctx, 0)?, coordinates(ctx, 3)?);
        ensure!(
            a.rank == b.rank,
            invalid_argument,
            "Operands do not have the same ranks; got shapes: {} and {}",
            a.shape,
            b.shape
        );
        ensure!(a.rank > 0, invalid_argument, "Tensors must not be empty");
        for (axis, (x, y)) in a.shape.iter().zip(b.shape.iter()).enumerate() {
            ensure!(
                x == y,
                invalid_argument,
                "Operands' shapes do not match: got {x} and {y} for dimension {axis}"
            );
        }
        let (x, y) = (ctx.input(1)?.slice::<T>()?, ctx.input(4)?.slice::<T>()?);
        let value = |values: &[T], at: Option<usize>| match at {
            Some(at) => values.get(at).copied().unwrap_or(T::ZERO),
            None => T::ZERO,
        };
        let mut chosen = Union::new(&a, &b);
        union(&a, &b, |i, j| {
            chosen.push((i, j), choose(value(x, i), value(y, j)));
        });
        let (indices, values) = chosen.finish()?;
        ctx.set(0, indices);
        ctx.set(1, values);
        Ok(())
    })
}
