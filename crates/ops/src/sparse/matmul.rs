//! `SparseTensorDenseMatMul`: a sparse matrix times a dense one.
//!
//! TensorFlow: SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> product: T, with adjoint_a,
//! adjoint_b (which also conjugate).

use num_complex::{Complex32, Complex64};
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, bf16, f16};

use super::{Coordinates, coordinates};
use crate::array::grads;
use crate::math::calculus::Calculus;
use crate::types::INDEX;

const TYPES: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::I32,
    DType::F16,
    DType::BF16,
    DType::C64,
    DType::C128,
];

pub(crate) static OP: OpDef = OpDef {
    name: "SparseTensorDenseMatMul",
    inputs: &[
        "a_indices: Tindices",
        "a_values: T",
        "a_shape: int64",
        "b: T",
    ],
    outputs: &["product: T"],
    attrs: &[
        "T: type",
        "Tindices: {int32, int64} = DT_INT64",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", TYPES), ("Tindices", INDEX)], build)],
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex(
            "2x3 by 3x2",
            &[
                i64s(&[3, 2], &[0, 0, 0, 2, 1, 1]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i64s(&[2], &[2, 3]),
                x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ],
            &[x(&[2, 2], &[11.0, 14.0, 9.0, 12.0])],
        ),
        ex_attrs(
            "both adjoint",
            &[("adjoint_a", "true"), ("adjoint_b", "true")],
            &[
                i64s(&[2, 2], &[0, 0, 1, 1]),
                x(&[2], &[2.0, 3.0]),
                i64s(&[2], &[2, 2]),
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            ],
            &[x(&[2, 2], &[2.0, 6.0, 6.0, 12.0])],
        ),
        ex_attrs(
            "adjoint sparse one",
            &[("adjoint_a", "true")],
            &[
                i64s(&[2, 2], &[0, 2, 1, 0]),
                x(&[2], &[2.0, 3.0]),
                i64s(&[2], &[2, 3]),
                x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            ],
            &[x(&[3, 2], &[9.0, 12.0, 0.0, 0.0, 2.0, 4.0])],
        ),
        ex_attrs(
            "adjoint dense one",
            &[("adjoint_b", "true")],
            &[
                i64s(&[2, 2], &[0, 2, 1, 0]),
                x(&[2], &[2.0, 3.0]),
                i64s(&[2], &[2, 3]),
                x(&[1, 3], &[1.0, 2.0, 3.0]),
            ],
            &[x(&[2, 1], &[6.0, 3.0])],
        ),
        ex(
            "no values",
            &[
                i64s(&[0, 2], &[]),
                x(&[0], &[]),
                i64s(&[2], &[2, 2]),
                x(&[2, 1], &[1.0, 2.0]),
            ],
            &[x(&[2, 1], &[0.0, 0.0])],
        ),
        ex_err(
            "inner sizes differ",
            &[],
            &[
                i64s(&[1, 2], &[0, 0]),
                x(&[1], &[1.0]),
                i64s(&[2], &[2, 3]),
                x(&[2, 1], &[1.0, 2.0]),
            ],
            Code::InvalidArgument,
            "Cannot multiply A and B because inner dimension does not match",
        ),
    ],
    ..OpDef::BLANK
};

/// With P = A·B: dB = Aᴴ·dP, and dA = dP·Bᴴ at the places of the values only, row by row and never as a whole.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let [adjoint_a, adjoint_b] = [g.attrs().bool("adjoint_a")?, g.attrs().bool("adjoint_b")?];
    let (grad, indices, b) = (g.grad(0)?, g.input(0), g.input(3));
    let (values, shape) = (g.input(1), g.input(2));
    let node = g.builder().op("SparseTensorDenseMatMul").input(indices);
    let node = node.input(values).input(shape).input(grad);
    let mut to_b = node.attr("adjoint_a", !adjoint_a).output()?;
    let swapped = g.ints(&[1, 0])?;
    let mut b_rows = b;
    if adjoint_b {
        to_b = g.apply("ConjugateTranspose", &[to_b, swapped])?;
        b_rows = g.apply("Transpose", &[b, swapped])?;
    }
    let (first, second) = (column(g, indices, 0)?, column(g, indices, 1)?);
    let (row, inner) = if adjoint_a {
        (second, first)
    } else {
        (first, second)
    };
    let mut grad_rows = grads::element(g, grad, row)?;
    let mut b_rows = grads::element(g, b_rows, inner)?;
    if adjoint_a {
        grad_rows = g.conj(grad_rows)?;
    }
    if adjoint_a == adjoint_b {
        b_rows = g.conj(b_rows)?;
    }
    let products = g.mul(grad_rows, b_rows)?;
    let last = g.ints(&[-1])?;
    let to_values = g.apply("Sum", &[products, last])?;
    Ok(vec![
        None,
        Some(Grad::Dense(to_values)),
        None,
        Some(Grad::Dense(to_b)),
    ])
}

/// One column of the indices.
fn column(g: &mut GradCtx<'_>, indices: Output, at: i32) -> Result<Output> {
    let (at, axis) = (grads::int(g, at)?, grads::int(g, 1)?);
    g.apply("GatherV2", &[indices, at, axis])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let adjoint = [node.attrs.bool("adjoint_a")?, node.attrs.bool("adjoint_b")?];
    match node.attrs.dtype("T")? {
        DType::F32 => kernel::<f32>(adjoint),
        DType::F64 => kernel::<f64>(adjoint),
        DType::I32 => kernel::<i32>(adjoint),
        DType::F16 => kernel::<f16>(adjoint),
        DType::BF16 => kernel::<bf16>(adjoint),
        DType::C64 => kernel::<Complex32>(adjoint),
        DType::C128 => kernel::<Complex64>(adjoint),
        other => Err(internal!("sparse matrices of {other} are not multiplied")),
    }
}

/// A number that may have to be conjugated.
trait Scalar: Element + Copy + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> {
    fn conjugate(self) -> Self {
        self
    }
}

impl Scalar for f32 {}
impl Scalar for f64 {}
impl Scalar for f16 {}
impl Scalar for bf16 {}
impl Scalar for i32 {}
impl Scalar for Complex32 {
    fn conjugate(self) -> Self {
        self.conj()
    }
}
impl Scalar for Complex64 {
    fn conjugate(self) -> Self {
        self.conj()
    }
}

fn kernel<T: Scalar>([adjoint_a, adjoint_b]: [bool; 2]) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let a = coordinates(ctx, 0)?;
        let b = ctx.input(3)?;
        if a.rank != 2 || b.rank() != 2 {
            return Err(invalid_argument!(
                "Tensors 'a' and 'b' must be matrices, got shapes {} and {}",
                a.shape,
                b.shape()
            ));
        }
        let (rows, inner) = if adjoint_a {
            (a.shape.dim(1), a.shape.dim(0))
        } else {
            (a.shape.dim(0), a.shape.dim(1))
        };
        let (b_inner, columns) = if adjoint_b {
            (b.shape().dim(1), b.shape().dim(0))
        } else {
            (b.shape().dim(0), b.shape().dim(1))
        };
        if inner != b_inner {
            return Err(invalid_argument!(
                "Cannot multiply A and B because inner dimension does not match: {inner} vs. {b_inner}.  Did you forget a transpose?  Dimensions of A: {}).  Dimensions of B: {}",
                a.shape,
                b.shape()
            ));
        }
        let mut out = Tensor::zeros(T::DTYPE, Shape::matrix(rows, columns)?)?;
        let values = ctx.input(1)?.slice::<T>()?;
        multiply(
            &a,
            values,
            b.slice::<T>()?,
            [adjoint_a, adjoint_b],
            inner,
            columns,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}

fn multiply<T: Scalar>(
    a: &Coordinates,
    values: &[T],
    b: &[T],
    [adjoint_a, adjoint_b]: [bool; 2],
    inner: usize,
    columns: usize,
    out: &mut [T],
) {
    for (index, value) in values.iter().enumerate() {
        let (first, second) = (a.row(index)[0] as usize, a.row(index)[1] as usize);
        let (row, k) = if adjoint_a {
            (second, first)
        } else {
            (first, second)
        };
        let value = if adjoint_a { value.conjugate() } else { *value };
        let target = &mut out[row * columns..(row + 1) * columns];
        if adjoint_b {
            for (column, slot) in target.iter_mut().enumerate() {
                *slot = *slot + value * b[column * inner + k].conjugate();
            }
        } else {
            for (slot, factor) in target.iter_mut().zip(&b[k * columns..(k + 1) * columns]) {
                *slot = *slot + value * *factor;
            }
        }
    }
}
