//! `SparseMatrixMatMul`: the product of sparse matrices and dense ones.
//!
//! TensorFlow: SparseMatrixMatMul(a: variant, b: T) -> output: T, with transpose or adjoint of either side, and of the result.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_math::par::poll_at;
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{Complex32, Complex64, DType, Element, Shape, Tensor};

use super::{Csr, TYPES, gradient, matrix};

const SCRIPTS: &[Script] = &[
    script(
        "each way round",
        "d = float[2, 3]{1, 0, 2, 0, 3, 0}
         i = int64[3, 2]{0, 0, 0, 2, 1, 1}
         m = DenseToCSRSparseMatrix(d, i)
         b = float[3, 2]{1, 2, 3, 4, 5, 6}
         plain = SparseMatrixMatMul(m, b)
         c = float[2, 3]{1, 2, 3, 4, 5, 6}
         turned = SparseMatrixMatMul(m, c) {transpose_b=true}
         a_turned = SparseMatrixMatMul(m, c) {transpose_a=true}
         all = SparseMatrixMatMul(m, b) {adjoint_a=true, adjoint_b=true, transpose_output=true}
         wrong = SparseMatrixMatMul(m, c)
         both = SparseMatrixMatMul(m, b) {transpose_a=true, adjoint_a=true}
         deep = float[1, 3, 2]{1, 2, 3, 4, 5, 6}
         ranks = SparseMatrixMatMul(m, deep)
         wide = double[3, 2]{1, 2, 3, 4, 5, 6}
         types = SparseMatrixMatMul(m, wide)",
        &[
            "fetch plain => float[2, 2]{11, 14, 9, 12}",
            "fetch turned => float[2, 2]{7, 16, 6, 15}",
            "fetch a_turned => float[3, 3]{1, 2, 3, 12, 15, 18, 2, 4, 6}",
            "fetch all => ?",
            "fetch wrong fails INVALID_ARGUMENT Inner product dimensions of A and B do not agree. Shapes are: [2,3] vs. [2,3]",
            "fetch both fails INVALID_ARGUMENT Only one of adjoint_a and transpose_a may be true.",
            "fetch ranks fails INVALID_ARGUMENT Ranks of a and b must match, saw: 2 vs. 3.",
            "fetch types fails INVALID_ARGUMENT Input types don't match.  a.dtype == float vs. b.dtype == double",
        ],
    ),
    script(
        "complex batch",
        "dr = float[2, 2, 2]{1, 0, 0, 3, 0, 0, 1, 0}
         di = float[2, 2, 2]{2, 0, 0, -1, 0, 2, 0, 0}
         d = Complex(dr, di)
         i = int64[4, 3]{0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0}
         m = DenseToCSRSparseMatrix(d, i)
         br = float[2, 2, 1]{0, 2, 3, 1}
         bi = float[2, 2, 1]{1, 0, 0, -1}
         b = Complex(br, bi)
         plain = SparseMatrixMatMul(m, b)
         adjoint = SparseMatrixMatMul(m, b) {adjoint_a=true, conjugate_output=true}
         wide = int32[3]{2, 1, 2}
         row = Reshape(b, wide)
         turned = SparseMatrixMatMul(m, row) {adjoint_b=true, transpose_output=true, conjugate_output=true}
         c = Conj(m)
         conjugate = SparseMatrixMatMul(c, b)",
        &["fetch plain, adjoint, turned, conjugate => ?"],
    ),
];

pub(crate) static OP: OpDef = OpDef {
    name: "SparseMatrixMatMul",
    inputs: &["a: variant", "b: T"],
    outputs: &["output: T"],
    attrs: &[
        "T: type",
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false",
        "transpose_output: bool = false",
        "conjugate_output: bool = false",
    ],
    gradient: Gradient::Rule(gradient::of_product),
    kernels: &[cpu(&[("T", TYPES)], build)],
    scripts: SCRIPTS,
    ..OpDef::BLANK
};

/// How a side is taken.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Turn {
    Straight,
    Transpose,
    Adjoint,
}

impl Turn {
    /// Of side `a` or `b`.
    pub(super) fn of(attrs: &Attrs, side: &str) -> Result<Turn> {
        let transposed = attrs.bool(&format!("transpose_{side}"))?;
        let adjoint = attrs.bool(&format!("adjoint_{side}"))?;
        ensure!(
            !(transposed && adjoint),
            invalid_argument,
            "Only one of adjoint_{side} and transpose_{side} may be true."
        );
        Ok(match (transposed, adjoint) {
            (true, _) => Turn::Transpose,
            (_, true) => Turn::Adjoint,
            _ => Turn::Straight,
        })
    }
}

/// What a node computes.
#[derive(Clone, Copy)]
struct Product {
    a: Turn,
    b: Turn,
    transposes: bool,
    conjugates: bool,
}

/// Sizes of one product: rows and columns of the result, and what they have in common.
struct Sizes {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let product = Product {
        a: Turn::of(attrs, "a")?,
        b: Turn::of(attrs, "b")?,
        transposes: attrs.bool("transpose_output")?,
        conjugates: attrs.bool("conjugate_output")?,
    };
    match attrs.dtype("T")? {
        DType::F32 => kernel::<f32>(product, |value| value),
        DType::F64 => kernel::<f64>(product, |value| value),
        DType::C64 => kernel::<Complex32>(product, |value| value.conj()),
        DType::C128 => kernel::<Complex64>(product, |value| value.conj()),
        other => Err(internal!("no sparse matrices of {other}")),
    }
}

fn kernel<T: Element + Num>(product: Product, conj: fn(T) -> T) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (a, b) = (matrix(ctx, 0)?, ctx.input(1)?);
        let sizes = check(&a, b, product)?;
        let (m, n) = match product.transposes {
            true => (sizes.n, sizes.m),
            false => (sizes.m, sizes.n),
        };
        let mut dims: Vec<i64> = a.shape[..a.shape.len() - 2].to_vec();
        dims.extend([m as i64, n as i64]);
        let mut out = Tensor::zeros(T::DTYPE, Shape::new(&dims)?)?;
        multiply(
            &a,
            b.slice::<T>()?,
            &sizes,
            product,
            conj,
            out.slice_mut::<T>()?,
        )?;
        ctx.set(0, out);
        Ok(())
    })
}

fn check(a: &Csr, b: &Tensor, product: Product) -> Result<Sizes> {
    ensure!(
        a.dtype() == b.dtype(),
        invalid_argument,
        "Input types don't match.  a.dtype == {} vs. b.dtype == {}",
        a.dtype(),
        b.dtype()
    );
    let rank = a.shape.len();
    ensure!(
        rank == b.rank(),
        invalid_argument,
        "Ranks of a and b must match, saw: {rank} vs. {}.",
        b.rank()
    );
    let batch = if rank == 2 { 1 } else { b.shape().dim(0) };
    ensure!(
        a.batch() == batch,
        invalid_argument,
        "Batch sizes of a and b must match, saw: {} vs. {batch}.",
        a.batch()
    );
    let [mut m, mut k] = [a.row_count(), a.column_count()];
    if product.a != Turn::Straight {
        (m, k) = (k, m);
    }
    let [mut of_b, mut n] = [b.shape().dim(rank - 2), b.shape().dim(rank - 1)];
    if product.b != Turn::Straight {
        (of_b, n) = (n, of_b);
    }
    ensure!(
        k == of_b,
        invalid_argument,
        "Inner product dimensions of A and B do not agree. Shapes are: {} vs. {}",
        Shape::new(&a.shape)?,
        b.shape()
    );
    Ok(Sizes { batch, m, n, k })
}

fn multiply<T: Element + Num>(
    a: &Csr,
    b: &[T],
    sizes: &Sizes,
    product: Product,
    conj: fn(T) -> T,
    out: &mut [T],
) -> Result<()> {
    let values = a.values.slice::<T>()?;
    let Sizes { batch, m, n, k } = *sizes;
    // Rows of the right side next to each other, whichever way it came.
    let turned: Vec<T>;
    let b = if product.b == Turn::Straight {
        b
    } else {
        let at = |i: usize| b[i / (k * n) * (k * n) + i % n * k + i % (k * n) / n];
        let taken = (0..b.len()).map(at);
        turned = match product.b {
            Turn::Adjoint => taken.map(conj).collect(),
            _ => taken.collect(),
        };
        &turned
    };
    let mut product_of = vec![T::ZERO; out.len()];
    for batch in 0..batch {
        for (row, column, at) in a.entries(batch) {
            poll_at(at);
            let (row, column, value) = match product.a {
                Turn::Straight => (row, column, values[at]),
                Turn::Transpose => (column, row, values[at]),
                Turn::Adjoint => (column, row, conj(values[at])),
            };
            let into = &mut product_of[(batch * m + row) * n..][..n];
            let from = &b[(batch * k + column) * n..][..n];
            for (sum, factor) in into.iter_mut().zip(from) {
                *sum = sum.add(value.mul(*factor));
            }
        }
    }
    for (i, sum) in product_of.into_iter().enumerate() {
        let place = match product.transposes {
            true => i / (m * n) * (m * n) + i % n * m + i % (m * n) / n,
            false => i,
        };
        out[place] = if product.conjugates { conj(sum) } else { sum };
    }
    Ok(())
}
