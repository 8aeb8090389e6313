//! `DenseToCSRSparseMatrix`, `SparseTensorToCSRSparseMatrix`, `CSRSparseMatrixToDense`, `CSRSparseMatrixToSparseTensor`.
//!
//! TensorFlow: (dense_input: T, indices: int64) -> sparse_output: variant, with the elements at the indices; (indices: int64,
//! values: T, dense_shape: int64) -> sparse_matrix: variant; (sparse_input: variant) -> dense_output: type; (sparse_matrix: variant)
//! -> (indices: int64, values: type, dense_shape: int64). Tensors are matrices or batches of them.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor, Word, by_word};

use super::{Csr, TYPES, gradient, matrix};
use crate::array::gather_nd::gather_nd;
use crate::array::nd::BadIndices;
use crate::sparse::parts::Part;

pub(super) const SCRIPTS: &[Script] = &[
    script(
        "one matrix",
        "d = float[2, 3]{1, 0, 2, 0, 3, 0}
         i = int64[3, 2]{0, 0, 0, 2, 1, 1}
         m = DenseToCSRSparseMatrix(d, i)
         back = CSRSparseMatrixToDense(m) {type=DT_FLOAT}
         coo = CSRSparseMatrixToSparseTensor(m) {type=DT_FLOAT}
         zero = int32[]{0}
         parts = CSRSparseMatrixComponents(m, zero) {type=DT_FLOAT}
         one = int32[]{1}
         beyond = CSRSparseMatrixComponents(m, one) {type=DT_FLOAT}
         nnz = SparseMatrixNNZ(m)
         t = SparseMatrixTranspose(m) {type=DT_FLOAT}
         turned = CSRSparseMatrixToDense(t) {type=DT_FLOAT}
         other = CSRSparseMatrixToDense(m) {type=DT_DOUBLE}
         outside = int64[1, 2]{2, 0}
         far = DenseToCSRSparseMatrix(d, outside)
         flat = float[3]{1, 2, 3}
         low = DenseToCSRSparseMatrix(flat, i)",
        &[
            "fetch back => float[2, 3]{1, 0, 2, 0, 3, 0}",
            "fetch coo:0, coo:1, coo:2 => int64[3, 2]{0, 0, 0, 2, 1, 1}; float[3]{1, 2, 3}; int64[2]{2, 3}",
            "fetch parts:0, parts:1, parts:2 => int32[3]{0, 2, 3}; int32[3]{0, 2, 1}; float[3]{1, 2, 3}",
            "fetch beyond:0 fails INVALID_ARGUMENT index (1) not in [0, 1)",
            "fetch nnz => int32[]{3}",
            "fetch turned => float[3, 2]{1, 0, 0, 3, 2, 0}",
            "fetch other fails INVALID_ARGUMENT Asked for a CSRSparseMatrix of type double but saw dtype: float",
            "run far fails INVALID_ARGUMENT",
            "run low fails INVALID_ARGUMENT",
        ],
    ),
    script(
        "batch of matrices, one without values",
        "i = int64[3, 3]{0, 0, 1, 2, 0, 0, 2, 1, 1}
         v = double[3]{1, 2, 3}
         s = int64[3]{3, 2, 2}
         m = SparseTensorToCSRSparseMatrix(i, v, s)
         back = CSRSparseMatrixToDense(m) {type=DT_DOUBLE}
         coo = CSRSparseMatrixToSparseTensor(m) {type=DT_DOUBLE}
         two = int32[]{2}
         parts = CSRSparseMatrixComponents(m, two) {type=DT_DOUBLE}
         nnz = SparseMatrixNNZ(m)
         t = SparseMatrixTranspose(m) {type=DT_DOUBLE, conjugate=true}
         turned = CSRSparseMatrixToDense(t) {type=DT_DOUBLE}
         r = int64[1]{4}
         line = int64[1, 1]{3}
         w = double[1]{1}
         vector = SparseTensorToCSRSparseMatrix(line, w, r)
         e = EmptyTensorMap()
         none = SparseMatrixNNZ(e)",
        &[
            "fetch back => double[3, 2, 2]{0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3}",
            "fetch coo:0, coo:1, coo:2 => int64[3, 3]{0, 0, 1, 2, 0, 0, 2, 1, 1}; double[3]{1, 2, 3}; int64[3]{3, 2, 2}",
            "fetch parts:0, parts:1, parts:2 => int32[3]{0, 1, 2}; int32[2]{0, 1}; double[2]{2, 3}",
            "fetch nnz => int32[3]{1, 0, 2}",
            "fetch turned => double[3, 2, 2]{0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 3}",
            "run vector fails INVALID_ARGUMENT SparseTensor must have rank 2 or 3; but indices has rank: 1",
            "fetch none fails INVALID_ARGUMENT Could not retrieve Variant input 0",
        ],
    ),
];

const CONVERT: OpDef = OpDef {
    exactness: Exactness::Bits,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "CSRSparseMatrixToDense",
        inputs: &["sparse_input: variant"],
        outputs: &["dense_output: type"],
        attrs: &["type: {float, double, complex64, complex128}"],
        gradient: Gradient::Rule(gradient::to_dense),
        kernels: &[cpu(&[("type", TYPES)], build_to_dense)],
        ..CONVERT
    },
    OpDef {
        name: "CSRSparseMatrixToSparseTensor",
        inputs: &["sparse_matrix: variant"],
        outputs: &["indices: int64", "values: type", "dense_shape: int64"],
        attrs: &["type: {float, double, complex64, complex128}"],
        gradient: Gradient::Rule(gradient::to_coordinates),
        kernels: &[cpu(&[("type", TYPES)], build_to_coordinates)],
        ..CONVERT
    },
    OpDef {
        name: "DenseToCSRSparseMatrix",
        inputs: &["dense_input: T", "indices: int64"],
        outputs: &["sparse_output: variant"],
        attrs: &["T: {float, double, complex64, complex128}"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient::from_dense),
        kernels: &[cpu(&[("T", TYPES)], |_| AnyKernel::sync(from_dense))],
        ..CONVERT
    },
    OpDef {
        name: "SparseTensorToCSRSparseMatrix",
        inputs: &["indices: int64", "values: T", "dense_shape: int64"],
        outputs: &["sparse_matrix: variant"],
        attrs: &["T: {float, double, complex64, complex128}"],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient::from_coordinates),
        kernels: &[cpu(&[("T", TYPES)], |_| AnyKernel::sync(from_coordinates))],
        ..CONVERT
    },
];

fn from_dense(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (dense, indices) = (ctx.input(0)?, ctx.input(1)?);
    let rank = dense.rank();
    ensure!(
        rank == 2 || rank == 3,
        invalid_argument,
        "params must have rank == 2 or 3; but saw shape: {}",
        dense.shape()
    );
    ensure!(
        indices.rank() == 2,
        invalid_argument,
        "indices must be a matrix, but saw shape: {}",
        indices.shape()
    );
    ensure!(
        indices.shape().dim(1) == rank,
        invalid_argument,
        "indices.shape[1] must be equal to the rank of params, but saw: {} vs. {rank}",
        indices.shape().dim(1)
    );
    let values = gather_nd(ctx, dense, indices, BadIndices::Fail)?;
    let out = Csr::from_coordinates(indices.slice::<i64>()?, &values, dense.shape())?;
    ctx.set(0, out.into_tensor());
    Ok(())
}

fn from_coordinates(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let part = Part::of(ctx, 0)?;
    ensure!(
        matches!(part.rank(), 2 | 3),
        invalid_argument,
        "SparseTensor must have rank 2 or 3; but indices has rank: {}",
        part.rank()
    );
    part.check_bounds()?;
    let out = Csr::from_coordinates(&part.indices, &part.values, &part.shape)?;
    ctx.set(0, out.into_tensor());
    Ok(())
}

fn build_to_dense(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let csr = matrix(ctx, 0)?;
        ensure!(
            csr.dtype() == dtype,
            invalid_argument,
            "Asked for a CSRSparseMatrix of type {dtype} but saw dtype: {}",
            csr.dtype()
        );
        let mut out = Tensor::zeros(dtype, Shape::new(&csr.shape)?)?;
        by_word!(dtype, W => spread::<W>(&csr, &mut out))?;
        ctx.set(0, out);
        Ok(())
    })
}

fn spread<W: Word>(csr: &Csr, out: &mut Tensor) -> Result<()> {
    let (values, out) = (csr.values.words::<W>()?, out.words_mut::<W>()?);
    let (rows, columns) = (csr.row_count(), csr.column_count());
    for batch in 0..csr.batch() {
        for (row, column, at) in csr.entries(batch) {
            out[(batch * rows + row) * columns + column] = values[at].clone();
        }
    }
    Ok(())
}

fn build_to_coordinates(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let csr = matrix(ctx, 0)?.into_owned();
        check_type(&csr, dtype)?;
        let rank = csr.shape.len();
        let mut indices = Vec::with_capacity(csr.columns.len() * rank);
        for batch in 0..csr.batch() {
            for (row, column, _) in csr.entries(batch) {
                let index = [batch as i64, row as i64, column as i64];
                indices.extend_from_slice(&index[3 - rank..]);
            }
        }
        let shape = Shape::matrix(csr.columns.len(), rank)?;
        ctx.set(0, Tensor::from_vec(shape, indices)?);
        ctx.set(1, csr.values);
        ctx.set(2, Tensor::vector(&csr.shape));
        Ok(())
    })
}

fn check_type(csr: &Csr, dtype: DType) -> Result<()> {
    ensure!(
        csr.dtype() == dtype,
        invalid_argument,
        "Expected a CSRSparseMatrix of type {dtype} but saw type: {}",
        csr.dtype()
    );
    Ok(())
}
