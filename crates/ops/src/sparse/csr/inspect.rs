//! `CSRSparseMatrixComponents`, `SparseMatrixNNZ`, `SparseMatrixTranspose`: sparse matrices looked into, and turned.
//!
//! TensorFlow: CSRSparseMatrixComponents(csr_sparse_matrix: variant, index: int32) -> (row_ptrs: int32, col_inds: int32, values: type)
//! of one matrix of a batch; SparseMatrixNNZ(sparse_matrix: variant) -> nnz: int32, the number of values, of each matrix of a batch;
//! SparseMatrixTranspose(input: variant) -> output: variant, with attr conjugate.

use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::convert::SCRIPTS;
use super::{Csr, TYPES, gradient, matrix};

const INSPECT: OpDef = OpDef {
    exactness: Exactness::Bits,
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "CSRSparseMatrixComponents",
        inputs: &["csr_sparse_matrix: variant", "index: int32"],
        outputs: &["row_ptrs: int32", "col_inds: int32", "values: type"],
        attrs: &["type: {float, double, complex64, complex128}"],
        kernels: &[cpu(&[("type", TYPES)], build_components)],
        ..INSPECT
    },
    OpDef {
        name: "SparseMatrixNNZ",
        inputs: &["sparse_matrix: variant"],
        outputs: &["nnz: int32"],
        gradient: Gradient::Stop("numbers of values are integers"),
        kernels: &[cpu(&[], |_| AnyKernel::sync(count))],
        ..INSPECT
    },
    OpDef {
        name: "SparseMatrixTranspose",
        inputs: &["input: variant"],
        outputs: &["output: variant"],
        attrs: &[
            "conjugate: bool = false",
            "type: {float, double, complex64, complex128}",
        ],
        infer: infer::scalar,
        gradient: Gradient::Rule(gradient::of_transposed),
        kernels: &[cpu(&[("type", TYPES)], build_transpose)],
        ..INSPECT
    },
];

/// Fails unless input `name` has the type that attr `type` says.
pub(super) fn check_type(csr: &Csr, dtype: DType, name: &str) -> Result<()> {
    ensure!(
        csr.dtype() == dtype,
        invalid_argument,
        "dtype of {name} is not equal to 'type': {} vs. {dtype}",
        csr.dtype()
    );
    Ok(())
}

fn build_components(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let csr = matrix(ctx, 0)?;
        check_type(&csr, dtype, "input")?;
        let index = ctx.input(1)?;
        ensure!(
            index.rank() == 0,
            invalid_argument,
            "index should be a scalar, but saw: {index:?}"
        );
        let index = ctx.int(1)?;
        ensure!(
            (0..csr.batch() as i64).contains(&index),
            invalid_argument,
            "index ({index}) not in [0, {})",
            csr.batch()
        );
        let range = csr.range(index as usize);
        let rows = Tensor::vector(csr.row_starts(index as usize));
        let columns = Tensor::vector(csr.columns.get(range.clone()).unwrap_or_default());
        let values = csr.values.rows(range.start, range.len())?;
        ctx.set(0, rows);
        ctx.set(1, columns);
        ctx.set(2, values);
        Ok(())
    })
}

fn count(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let csr = matrix(ctx, 0)?;
    let counts: Vec<i32> = csr
        .batches
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect();
    let shape = match csr.shape.len() {
        3 => Shape::vector(counts.len()),
        _ => Shape::scalar(),
    };
    let out = Tensor::from_vec(shape, counts)?;
    ctx.set(0, out);
    Ok(())
}

fn build_transpose(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("type")?;
    let conjugates = node.attrs.bool("conjugate")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let csr = matrix(ctx, 0)?;
        check_type(&csr, dtype, "input")?;
        let turned = csr.transposed()?;
        let out = if conjugates {
            turned.conjugated()?
        } else {
            turned
        };
        ctx.set(0, out.into_tensor());
        Ok(())
    })
}
