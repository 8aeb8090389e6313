//! `SparseMatrixSparseMatMul`: the product of sparse matrices, which is sparse.
//!
//! TensorFlow: SparseMatrixSparseMatMul(a: variant, b: variant) -> c: variant, with transpose or adjoint of either side. Places where
//! sums cancel to zero stay; a batch of one matrix goes with each of the other side.

use std::borrow::Cow;

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_math::par::poll_at;
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{Complex32, Complex64, DType, Element, Shape, Tensor};

use super::inspect::check_type;
use super::product::Turn;
use super::{Csr, TYPES, gradient, matrix};
use crate::room::{filled, room};

pub(crate) static OP: OpDef = OpDef {
    name: "SparseMatrixSparseMatMul",
    inputs: &["a: variant", "b: variant"],
    outputs: &["c: variant"],
    attrs: &[
        "type: {float, double, complex64, complex128}",
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false",
    ],
    infer: infer::scalar,
    gradient: Gradient::Rule(gradient::of_sparse_product),
    kernels: &[cpu(&[("type", TYPES)], build)],
    scripts: &[script(
        "each way round",
        "d = float[2, 3]{1, 0, 2, 0, 3, 0}
         i = int64[3, 2]{0, 0, 0, 2, 1, 1}
         m = DenseToCSRSparseMatrix(d, i)
         squared = SparseMatrixSparseMatMul(m, m) {transpose_b=true, type=DT_FLOAT}
         s = CSRSparseMatrixToSparseTensor(squared) {type=DT_FLOAT}
         other = SparseMatrixSparseMatMul(m, m) {adjoint_a=true, type=DT_FLOAT}
         o = CSRSparseMatrixToDense(other) {type=DT_FLOAT}
         wrong = SparseMatrixSparseMatMul(m, m) {type=DT_FLOAT}
         types = SparseMatrixSparseMatMul(m, m) {type=DT_DOUBLE}",
        &[
            "fetch s:0, s:1, s:2 => int64[2, 2]{0, 0, 1, 1}; float[2]{5, 9}; int64[2]{2, 2}",
            "fetch o => float[3, 3]{1, 0, 2, 0, 9, 0, 2, 0, 4}",
            "run wrong fails INVALID_ARGUMENT Inner product dimensions of A and B do not agree.  Shapes are: [2,3] vs. [2,3]",
            "run types fails INVALID_ARGUMENT dtype of a is not equal to 'type': float vs. double",
        ],
    )],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let turns = [Turn::of(attrs, "a")?, Turn::of(attrs, "b")?];
    let dtype = attrs.dtype("type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b) = (matrix(ctx, 0)?, matrix(ctx, 1)?);
        check_type(&a, dtype, "a")?;
        check_type(&b, dtype, "b")?;
        ensure!(
            a.batch() == b.batch() || a.batch() == 1 || b.batch() == 1,
            invalid_argument,
            "Batch sizes of A and B are not compatible.  Batch sizes are: {} vs. {}",
            a.batch(),
            b.batch()
        );
        let (a, b) = (turned(a, turns[0])?, turned(b, turns[1])?);
        ensure!(
            a.column_count() == b.row_count() && a.shape.len() == b.shape.len(),
            invalid_argument,
            "Inner product dimensions of A and B do not agree.  Shapes are: {} vs. {}",
            Shape::new(&a.shape)?,
            Shape::new(&b.shape)?
        );
        let out = match dtype {
            DType::F32 => multiplied::<f32>(&a, &b)?,
            DType::F64 => multiplied::<f64>(&a, &b)?,
            DType::C64 => multiplied::<Complex32>(&a, &b)?,
            DType::C128 => multiplied::<Complex64>(&a, &b)?,
            other => return Err(internal!("no sparse matrices of {other}")),
        };
        ctx.set(0, out.into_tensor());
        Ok(())
    })
}

fn turned(matrix: Cow<'_, Csr>, turn: Turn) -> Result<Cow<'_, Csr>> {
    Ok(match turn {
        Turn::Straight => matrix,
        Turn::Transpose => Cow::Owned(matrix.transposed()?),
        Turn::Adjoint => Cow::Owned(matrix.transposed()?.conjugated()?),
    })
}

/// Row by row, the sum of the rows of `b` that the values of a row of `a` name.
fn multiplied<T: Element + Num>(a: &Csr, b: &Csr) -> Result<Csr> {
    let (x, y) = (a.values.slice::<T>()?, b.values.slice::<T>()?);
    let count = a.batch().max(b.batch());
    let of = |csr: &Csr, batch: usize| if csr.batch() == 1 { 0 } else { batch };
    // The sums of one row, and which of them there are.
    let mut sums = Tensor::zeros(T::DTYPE, Shape::vector(b.column_count()))?;
    let sums = sums.slice_mut::<T>()?;
    let mut is_met = filled(false, sums.len())?;
    let mut met: Vec<i32> = Vec::new();
    let (mut batches, mut rows) = (vec![0], room(a.rows.len())?);
    let (mut columns, mut values): (Vec<i32>, Vec<T>) = (Vec::new(), Vec::new());
    for batch in 0..count {
        let own = of(b, batch);
        let (starts, first) = (b.row_starts(own), b.range(own).start);
        let (a_starts, a_first) = (a.row_starts(of(a, batch)), a.range(of(a, batch)).start);
        let before = columns.len();
        rows.push(0);
        for (turn, bounds) in a_starts.windows(2).enumerate() {
            poll_at(turn);
            let row = a_first + bounds[0] as usize..a_first + bounds[1] as usize;
            for (value, inner) in x[row.clone()].iter().zip(&a.columns[row]) {
                let inner = *inner as usize;
                let row = first + starts[inner] as usize..first + starts[inner + 1] as usize;
                for (factor, column) in y[row.clone()].iter().zip(&b.columns[row]) {
                    let sum = &mut sums[*column as usize];
                    *sum = sum.add(value.mul(*factor));
                    if !std::mem::replace(&mut is_met[*column as usize], true) {
                        met.push(*column);
                    }
                }
            }
            met.sort_unstable();
            for column in met.drain(..) {
                columns.push(column);
                is_met[column as usize] = false;
                values.push(std::mem::replace(&mut sums[column as usize], T::ZERO));
            }
            rows.push((columns.len() - before) as i32);
        }
        ensure!(
            columns.len() <= i32::MAX as usize,
            invalid_argument,
            "a product of more than {} values",
            i32::MAX
        );
        batches.push(columns.len() as i32);
    }
    let mut shape = vec![count as i64, a.row_count() as i64, b.column_count() as i64];
    shape.drain(..3 - a.shape.len());
    Ok(Csr {
        shape,
        batches,
        rows,
        columns,
        values: Tensor::from_vec(Shape::vector(values.len()), values)?,
    })
}
