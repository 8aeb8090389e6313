//! `SparseTensorDenseMatMul`: a sparse matrix times a dense one.
//!
//! TensorFlow: SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> product: T, with adjoint_a,
//! adjoint_b (which also conjugate).

use num_complex::{Complex32, Complex64};
use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_math::par::poll_at;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, bf16, f16};

use crate::array::grads;
use crate::math::calculus::Calculus;
use crate::math::cast::integers;
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
        ex_err(
            "column out of bounds",
            &[],
            &[
                i64s(&[1, 2], &[1, 10]),
                x(&[1], &[1.0]),
                i64s(&[2], &[3, 2]),
                x(&[2, 1], &[1.0, 2.0]),
            ],
            Code::InvalidArgument,
            "k (10) from index[0,1] out of bounds (>=2)",
        ),
        ex_err(
            "column out of bounds, adjoint",
            &[("adjoint_a", "true")],
            &[
                i64s(&[1, 2], &[1, 10]),
                x(&[1], &[1.0]),
                i64s(&[2], &[3, 2]),
                x(&[3, 1], &[1.0, 2.0, 3.0]),
            ],
            Code::InvalidArgument,
            "m (10) from index[0,1] out of bounds (>=2)",
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
        DType::F16 => kernel_of_halves::<f16>(adjoint),
        DType::BF16 => kernel_of_halves::<bf16>(adjoint),
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

fn kernel<T: Scalar>(adjoint: [bool; 2]) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let plan = Plan::of(ctx, adjoint)?;
        let mut out = Tensor::zeros(T::DTYPE, plan.shape.clone())?;
        let (values, b) = (ctx.input(1)?.slice::<T>()?, ctx.input(3)?.slice::<T>()?);
        plan.multiply(values, b, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}

/// Halves are summed as singles.
fn kernel_of_halves<T: Element + Float>(adjoint: [bool; 2]) -> Result<AnyKernel> {
    fn wide<T: Element + Float>(tensor: &Tensor) -> Result<Vec<f32>> {
        let values = tensor.slice::<T>()?.iter();
        Ok(values.map(|value| value.to_f32()).collect())
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let plan = Plan::of(ctx, adjoint)?;
        let mut sums = Tensor::zeros(DType::F32, plan.shape.clone())?;
        let (values, b) = (wide::<T>(ctx.input(1)?)?, wide::<T>(ctx.input(3)?)?);
        plan.multiply(&values, &b, sums.slice_mut::<f32>()?);
        let halves = sums.slice::<f32>()?.iter().map(|sum| T::from_f32(*sum));
        let out = Tensor::from_vec(plan.shape.clone(), halves.collect())?;
        ctx.set(0, out);
        Ok(())
    })
}

/// Which value of the sparse matrix meets which row of the dense one, and where that goes.
struct Plan {
    /// For each value the row of the result and the row of the dense matrix.
    places: Vec<(usize, usize)>,
    shape: Shape,
    inner: usize,
    adjoint: [bool; 2],
}

impl Plan {
    fn of(ctx: &KernelCtx<'_>, adjoint: [bool; 2]) -> Result<Plan> {
        let [indices, values, shape, b] =
            [ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?];
        ensure!(
            b.rank() == 2,
            invalid_argument,
            "Tensor 'b' is not a matrix"
        );
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "Tensor 'a_shape' is not a vector"
        );
        let &[rows, columns] = shape.slice::<i64>()? else {
            return Err(invalid_argument!("Tensor 'a_shape' must have 2 elements"));
        };
        ensure!(
            values.rank() == 1,
            invalid_argument,
            "Tensor 'a_values' is not a vector"
        );
        ensure!(
            indices.rank() == 2,
            invalid_argument,
            "Tensor 'a_indices' is not a matrix"
        );
        ensure!(
            indices.shape().dim(0) == values.elements(),
            invalid_argument,
            "Number of rows of a_indices does not match number of entries in a_values"
        );
        ensure!(
            indices.shape().dim(1) == 2,
            invalid_argument,
            "Number of columns of a_indices does not match number of entries in a_shape"
        );
        // The axis of the indices that is the result's, and the other one.
        let [outer, inner] = if adjoint[0] { [1, 0] } else { [0, 1] };
        let [m, k] = if adjoint[0] {
            [columns, rows]
        } else {
            [rows, columns]
        };
        let axis = usize::from(adjoint[1]);
        let (b_inner, n) = (b.shape()[axis], b.shape()[1 - axis]);
        ensure!(
            k == b_inner,
            invalid_argument,
            "Cannot multiply A and B because inner dimension does not match: {k} vs. {b_inner}.  Did you forget a transpose?  Dimensions of A: [{rows}, {columns}).  Dimensions of B: {}",
            b.shape()
        );
        let mut places = Vec::with_capacity(values.elements());
        for (at, index) in integers(indices)?.chunks_exact(2).enumerate() {
            for (name, axis, limit) in [("k", inner, k), ("m", outer, m)] {
                ensure!(
                    (0..limit).contains(&index[axis]),
                    invalid_argument,
                    "{name} ({}) from index[{at},{axis}] out of bounds (>={limit})",
                    index[axis]
                );
            }
            places.push((index[outer] as usize, index[inner] as usize));
        }
        Ok(Plan {
            places,
            shape: Shape::new(&[m, n])?,
            inner: k as usize,
            adjoint,
        })
    }

    fn multiply<T: Scalar>(&self, values: &[T], b: &[T], out: &mut [T]) {
        let columns = self.shape.dim(1);
        for (turn, (value, (row, k))) in values.iter().zip(&self.places).enumerate() {
            poll_at(turn);
            let value = match self.adjoint[0] {
                true => value.conjugate(),
                false => *value,
            };
            let target = &mut out[row * columns..(row + 1) * columns];
            if self.adjoint[1] {
                for (column, slot) in target.iter_mut().enumerate() {
                    *slot = *slot + value * b[column * self.inner + k].conjugate();
                }
            } else {
                for (slot, factor) in target.iter_mut().zip(&b[k * columns..(k + 1) * columns]) {
                    *slot = *slot + value * *factor;
                }
            }
        }
    }
}
