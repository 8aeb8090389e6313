//! `SparseAdd`: the sum of two sparse tensors of one shape; sums smaller than a threshold are left out.
//!
//! TensorFlow: SparseAdd(a_indices, a_values: T, a_shape, b_indices, b_values: T, b_shape, thresh: Treal) ->
//! (sum_indices, sum_values, sum_shape). Both must be in row-major order. Where both have a value the sum is kept if
//! |sum| >= thresh; a value in only one of them is kept whatever its size.

use num_complex::ComplexFloat;
use tensorfleet_graph::example::{ex, ex_err, f32s, f64s, i64s};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{Complex32, Complex64, DType, Element, Tensor};

use super::{Union, coordinates, union};
use crate::types::{COMPLEX, SIGNED, SINGLE_AND_DOUBLE, dtypes};

pub(super) const TYPES: &[DType] = dtypes![SINGLE_AND_DOUBLE, SIGNED, COMPLEX];

pub(crate) static OP: OpDef = OpDef {
    name: "SparseAdd",
    inputs: &[
        "a_indices: int64",
        "a_values: T",
        "a_shape: int64",
        "b_indices: int64",
        "b_values: T",
        "b_shape: int64",
        "thresh: Treal",
    ],
    outputs: &["sum_indices: int64", "sum_values: T", "sum_shape: int64"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "Treal: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", TYPES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "overlap",
            &[
                i64s(&[2, 2], &[0, 0, 1, 1]),
                f32s(&[2], &[1.0, 2.0]),
                i64s(&[2], &[2, 2]),
                i64s(&[2, 2], &[0, 1, 1, 1]),
                f32s(&[2], &[3.0, 4.0]),
                i64s(&[2], &[2, 2]),
                f32s(&[], &[0.0]),
            ],
            &[
                i64s(&[3, 2], &[0, 0, 0, 1, 1, 1]),
                f32s(&[3], &[1.0, 3.0, 6.0]),
                i64s(&[2], &[2, 2]),
            ],
        ),
        ex(
            "threshold",
            &[
                i64s(&[2, 1], &[0, 1]),
                f32s(&[2], &[0.5, 2.0]),
                i64s(&[1], &[3]),
                i64s(&[1, 1], &[1]),
                f32s(&[1], &[-2.0]),
                i64s(&[1], &[3]),
                f32s(&[], &[0.25]),
            ],
            &[i64s(&[1, 1], &[0]), f32s(&[1], &[0.5]), i64s(&[1], &[3])],
        ),
        ex(
            "overlap, in double",
            &[
                i64s(&[3, 2], &[0, 0, 1, 0, 1, 1]),
                f64s(&[3], &[1.0, 0.25, 2.0]),
                i64s(&[2], &[2, 2]),
                i64s(&[3, 2], &[0, 1, 1, 0, 1, 1]),
                f64s(&[3], &[0.5, 0.25, 4.0]),
                i64s(&[2], &[2, 2]),
                f64s(&[], &[0.75]),
            ],
            &[
                i64s(&[3, 2], &[0, 0, 0, 1, 1, 1]),
                f64s(&[3], &[1.0, 0.5, 6.0]),
                i64s(&[2], &[2, 2]),
            ],
        ),
        ex_err(
            "shapes differ",
            &[],
            &[
                i64s(&[1, 1], &[0]),
                f32s(&[1], &[0.5]),
                i64s(&[1], &[3]),
                i64s(&[1, 1], &[1]),
                f32s(&[1], &[-2.0]),
                i64s(&[1], &[4]),
                f32s(&[], &[0.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

/// Each value gets the gradient of the sum at its place, none where the sum was too small to be kept.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, a, b, sum) = (g.grad(1)?, g.input(0), g.input(3), g.output(0));
    let node = g.builder().op("SparseAddGrad").input(grad);
    let both = node.input(a).input(b).input(sum).build()?;
    let mut grads = vec![None; 7];
    grads[1] = Some(Grad::Dense(both.output(0)));
    grads[4] = Some(Grad::Dense(both.output(1)));
    Ok(grads)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match node.attrs.dtype("T")? {
        DType::F32 => kernel::<f32>(|value| f64::from(value.abs())),
        DType::F64 => kernel::<f64>(f64::abs),
        DType::I8 => kernel::<i8>(|value| f64::from(value).abs()),
        DType::I16 => kernel::<i16>(|value| f64::from(value).abs()),
        DType::I32 => kernel::<i32>(|value| f64::from(value).abs()),
        DType::I64 => kernel::<i64>(|value| (value as f64).abs()),
        DType::C64 => kernel::<Complex32>(|value| f64::from(value.abs())),
        DType::C128 => kernel::<Complex64>(ComplexFloat::abs),
        other => Err(internal!("sparse tensors of {other} are not added")),
    }
}

fn kernel<T: Element + Copy + std::ops::Add<Output = T>>(size: fn(T) -> f64) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b) = (coordinates(ctx, 0)?, coordinates(ctx, 3)?);
        if a.shape != b.shape {
            return Err(invalid_argument!(
                "Operands' shapes do not match: {} vs. {}",
                a.shape,
                b.shape
            ));
        }
        let threshold = threshold(ctx.input(6)?)?;
        let (a_values, b_values) = (ctx.input(1)?.slice::<T>()?, ctx.input(4)?.slice::<T>()?);
        let mut sum = Union::new(&a, &b);
        union(&a, &b, |i, j| match (i, j) {
            (Some(at), Some(other)) => {
                let value = a_values[at] + b_values[other];
                if size(value) >= threshold {
                    sum.push((i, j), value);
                }
            }
            (Some(at), None) => sum.push((i, j), a_values[at]),
            (None, Some(at)) => sum.push((i, j), b_values[at]),
            (None, None) => {}
        });
        let (indices, values) = sum.finish()?;
        let shape = ctx.input(2)?.clone();
        ctx.set(0, indices);
        ctx.set(1, values);
        ctx.set(2, shape);
        Ok(())
    })
}

fn threshold(tensor: &Tensor) -> Result<f64> {
    if tensor.rank() != 0 {
        return Err(invalid_argument!(
            "The magnitude threshold must be a scalar: got shape {}",
            tensor.shape()
        ));
    }
    Ok(match tensor.dtype() {
        DType::F32 => f64::from(tensor.to_scalar::<f32>()?),
        DType::F64 => tensor.to_scalar::<f64>()?,
        DType::I8 => f64::from(tensor.to_scalar::<i8>()?),
        DType::I16 => f64::from(tensor.to_scalar::<i16>()?),
        DType::I32 => f64::from(tensor.to_scalar::<i32>()?),
        DType::I64 => tensor.to_scalar::<i64>()? as f64,
        other => return Err(invalid_argument!("a threshold of {other} is not supported")),
    })
}
