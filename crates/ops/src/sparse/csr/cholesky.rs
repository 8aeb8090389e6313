//! `SparseMatrixSparseCholesky`, `SparseMatrixOrderingAMD`: the triangular factor of sparse Hermitian matrices, and an order of rows in
//! which it stays sparse.
//!
//! TensorFlow: SparseMatrixSparseCholesky(input: variant, permutation: int32) -> output: variant, of the lower triangle with rows and
//! columns in the order of the permutation; SparseMatrixOrderingAMD(input: variant) -> output: int32. The order here is by exact
//! degrees, TensorFlow's by approximate ones: both are permutations with little fill, but not the same.

use std::collections::{BTreeMap, BTreeSet};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::poll;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Complex64, DType, Shape, Tensor};

use super::{Csr, TYPES, matrix};
use crate::linalg::Carried;

const SCRIPTS: &[Script] = &[
    script(
        "in two orders",
        "d = float[4, 4]{7, 0, 0, 0, 1, 4, 0, 0, 2, 0, 5, 0, 1, 0, 0, 6}
         i = int64[7, 2]{0, 0, 1, 0, 1, 1, 2, 0, 2, 2, 3, 0, 3, 3}
         m = DenseToCSRSparseMatrix(d, i)
         as_is = int32[4]{0, 1, 2, 3}
         reverse = int32[4]{3, 2, 1, 0}
         a = SparseMatrixSparseCholesky(m, as_is) {type=DT_FLOAT}
         full = CSRSparseMatrixToSparseTensor(a) {type=DT_FLOAT}
         b = SparseMatrixSparseCholesky(m, reverse) {type=DT_FLOAT}
         lean = CSRSparseMatrixToSparseTensor(b) {type=DT_FLOAT}
         short = int32[3]{0, 1, 2}
         c = SparseMatrixSparseCholesky(m, short) {type=DT_FLOAT}
         n = float[1, 1]{-1}
         j = int64[1, 2]{0, 0}
         negative = DenseToCSRSparseMatrix(n, j)
         one = int32[1]{0}
         e = SparseMatrixSparseCholesky(negative, one) {type=DT_FLOAT}
         w = float[1, 2]{1, 2}
         wide = DenseToCSRSparseMatrix(w, j)
         f = SparseMatrixSparseCholesky(wide, one) {type=DT_FLOAT}",
        &[
            "fetch full:0, full:1, full:2 => ?",
            "fetch lean:0, lean:1, lean:2 => ?",
            "run c fails INVALID_ARGUMENT permutation must have the same number of elements in each batch as the number of rows in sparse matrix; got: 3 != 4",
            "run e fails INVALID_ARGUMENT Sparse Cholesky factorization failed for batch index 0. The input might not be valid.",
            "run f fails INVALID_ARGUMENT sparse matrix must be square; got: 1 != 2",
        ],
    ),
    script(
        "complex batch",
        "re = float[2, 2, 2]{2, 0, 1, 3, 4, 0, 0, 5}
         im = float[2, 2, 2]{0, 0, 0.5, 0, 0, 0, 0, 0}
         d = Complex(re, im)
         i = int64[5, 3]{0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1}
         m = DenseToCSRSparseMatrix(d, i)
         p = int32[2, 2]{1, 0, 0, 1}
         a = SparseMatrixSparseCholesky(m, p) {type=DT_COMPLEX64}
         l = CSRSparseMatrixToDense(a) {type=DT_COMPLEX64}",
        &["fetch l => ?"],
    ),
];

const CHOLESKY: OpDef = OpDef {
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "SparseMatrixOrderingAMD",
        inputs: &["input: variant"],
        outputs: &["output: int32"],
        kernels: &[cpu(&[], |_| AnyKernel::sync(order))],
        exactness: Exactness::Shape,
        scripts: &[script(
            "the row that meets all others comes last",
            "d = float[4, 4]{7, 0, 0, 0, 1, 4, 0, 0, 2, 0, 5, 0, 1, 0, 0, 6}
             i = int64[7, 2]{0, 0, 1, 0, 1, 1, 2, 0, 2, 2, 3, 0, 3, 3}
             m = DenseToCSRSparseMatrix(d, i)
             p = SparseMatrixOrderingAMD(m)
             a = SparseMatrixSparseCholesky(m, p) {type=DT_FLOAT}
             nnz = SparseMatrixNNZ(a)",
            &["fetch p => ?", "fetch nnz => int32[]{7}"],
        )],
        ..CHOLESKY
    },
    OpDef {
        name: "SparseMatrixSparseCholesky",
        inputs: &["input: variant", "permutation: int32"],
        outputs: &["output: variant"],
        attrs: &["type: {float, double, complex64, complex128}"],
        infer: infer::scalar,
        kernels: &[cpu(&[("type", TYPES)], build)],
        scripts: SCRIPTS,
        ..CHOLESKY
    },
];

fn check_square(csr: &Csr) -> Result<()> {
    ensure!(
        csr.row_count() == csr.column_count(),
        invalid_argument,
        "sparse matrix must be square; got: {} != {}",
        csr.row_count(),
        csr.column_count()
    );
    // Rows without values have none of the matrix's memory, but two lists each here.
    Tensor::new(DType::I64, Shape::matrix(csr.row_count(), 6)?)?;
    Ok(())
}

fn order(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let csr = matrix(ctx, 0)?;
    check_square(&csr)?;
    let mut out = Vec::with_capacity(csr.batch() * csr.row_count());
    for batch in 0..csr.batch() {
        out.extend(by_degree(&csr, batch).into_iter().map(|row| row as i32));
    }
    let shape = Shape::new(&csr.shape[..csr.shape.len() - 1])?;
    let out = Tensor::from_vec(shape, out)?;
    ctx.set(0, out);
    Ok(())
}

/// Rows so that each, when its turn comes, has the fewest neighbours; those become neighbours of each other.
fn by_degree(csr: &Csr, batch: usize) -> Vec<usize> {
    let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); csr.row_count()];
    for (row, column, _) in csr.entries(batch).filter(|(row, column, _)| row > column) {
        neighbours[row].insert(column);
        neighbours[column].insert(row);
    }
    let degrees = neighbours.iter().enumerate();
    let mut queue: BTreeSet<(usize, usize)> = degrees.map(|(row, own)| (own.len(), row)).collect();
    let mut order = Vec::with_capacity(neighbours.len());
    while let Some((_, row)) = queue.pop_first() {
        poll();
        order.push(row);
        let own = std::mem::take(&mut neighbours[row]);
        for other in &own {
            let theirs = &mut neighbours[*other];
            queue.remove(&(theirs.len(), *other));
            theirs.remove(&row);
            theirs.extend(own.iter().copied().filter(|third| third != other));
            queue.insert((theirs.len(), *other));
        }
    }
    order
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (csr, permutation) = (matrix(ctx, 0)?, ctx.input(1)?);
        ensure!(
            csr.dtype() == dtype,
            invalid_argument,
            "Asked for a CSRSparseMatrix of type {dtype} but saw dtype: {}",
            csr.dtype()
        );
        check_square(&csr)?;
        check_permutation(&csr, permutation)?;
        let values = Complex64::read(&csr.values)?;
        let (rows, rank) = (csr.row_count(), csr.shape.len());
        let (mut indices, mut factor) = (Vec::new(), Vec::new());
        for batch in 0..csr.batch() {
            let order = permutation
                .slice::<i32>()?
                .get(batch * rows..(batch + 1) * rows);
            let places = places(order.unwrap_or_default())?;
            let lower = permuted(&csr, batch, &values, &places);
            let Some(found) = factored(lower) else {
                return Err(invalid_argument!(
                    "Sparse Cholesky factorization failed for batch index {batch}. The input might not be valid."
                ));
            };
            for (row, column, value) in found {
                let index = [batch as i64, row as i64, column as i64];
                indices.extend_from_slice(&index[3 - rank..]);
                factor.push(value);
            }
        }
        let factor = narrowed(factor, dtype)?;
        let out = Csr::from_coordinates(&indices, &factor, &csr.shape)?;
        ctx.set(0, out.into_tensor());
        Ok(())
    })
}

fn check_permutation(csr: &Csr, permutation: &Tensor) -> Result<()> {
    let (rank, shape) = (csr.shape.len(), permutation.shape());
    ensure!(
        shape.rank() + 1 == rank,
        invalid_argument,
        "sparse matrix must have the same rank as permutation; got: {rank} != {} + 1.",
        shape.rank()
    );
    let (rows, own) = (csr.row_count(), shape.dim(rank - 2));
    ensure!(
        own == rows,
        invalid_argument,
        "permutation must have the same number of elements in each batch as the number of rows in sparse matrix; got: {own} != {rows}"
    );
    ensure!(
        rank == 2 || shape.dim(0) == csr.batch(),
        invalid_argument,
        "permutation must have the same batch size as sparse matrix; got: {} != {}",
        shape.dim(0),
        csr.batch()
    );
    Ok(())
}

/// Where each row goes.
fn places(order: &[i32]) -> Result<Vec<usize>> {
    let mut places = vec![usize::MAX; order.len()];
    for (to, from) in order.iter().enumerate() {
        let slot = usize::try_from(*from).ok();
        let slot = slot.and_then(|from| places.get_mut(from));
        let slot = slot.filter(|slot| **slot == usize::MAX);
        let slot = slot.ok_or_else(|| invalid_argument!("{order:?} is not a permutation"))?;
        *slot = to;
    }
    Ok(places)
}

type Rows = Vec<BTreeMap<usize, Complex64>>;

/// The lower triangle with rows and columns at their new places; what comes to lie above the diagonal is mirrored.
fn permuted(csr: &Csr, batch: usize, values: &[Complex64], places: &[usize]) -> Rows {
    let mut rows: Rows = vec![BTreeMap::new(); places.len()];
    for (row, column, at) in csr.entries(batch).filter(|(row, column, _)| row >= column) {
        let (to_row, to_column) = (places[row], places[column]);
        if to_row >= to_column {
            rows[to_row].insert(to_column, values[at]);
        } else {
            rows[to_column].insert(to_row, values[at].conj());
        }
    }
    rows
}

/// The factor row by row; none if the matrix is not positive definite.
fn factored(rows: Rows) -> Option<Vec<(usize, usize, Complex64)>> {
    // Of the rows that are done, by column: what a new row meets there.
    let mut columns: Vec<Vec<(usize, Complex64)>> = vec![Vec::new(); rows.len()];
    let mut found = Vec::new();
    for (row, mut left) in rows.into_iter().enumerate() {
        let mut diagonal = left.remove(&row).unwrap_or_default().re;
        while let Some((column, sum)) = left.pop_first() {
            poll();
            let (pivot, below) = columns[column].split_first()?;
            let value = sum / pivot.1;
            diagonal -= value.norm_sqr();
            for (other, theirs) in below {
                *left.entry(*other).or_default() -= value * theirs.conj();
            }
            columns[column].push((row, value));
            found.push((row, column, value));
        }
        if diagonal.is_nan() || diagonal <= 0.0 {
            return None;
        }
        let pivot = Complex64::new(diagonal.sqrt(), 0.0);
        columns[row].push((row, pivot));
        found.push((row, row, pivot));
    }
    Some(found)
}

fn narrowed(values: Vec<Complex64>, dtype: DType) -> Result<Tensor> {
    let shape = Shape::vector(values.len());
    if dtype.is_complex() {
        return Complex64::write(values, dtype, shape);
    }
    let values = values.into_iter().map(|value| value.re).collect();
    f64::write(values, dtype, shape)
}
