//! `Svd`: singular values and vectors.
//!
//! TensorFlow: Svd(input: T[..., M, N]) -> (s: T[..., P], u: T[..., M, P], v: T[..., N, P]), P the smaller of M and N; with
//! full_matrices `u` and `v` are square, with compute_uv false they are scalars without meaning. The phases of the vectors are not
//! determined.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, f64s, script, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::svd::{Svd, complement, svd};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::Shape;

use super::{Carried, Matrices, TYPES, by_carried, each, gradients};

/// One of those whose vectors have the same signs in TensorFlow.
const WIDE: Lit = f64s(&[2, 3], &[-3.0, 0.5, 0.5, 0.25, -1.0, 0.5]);

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "Svd",
    inputs: &["input: T"],
    outputs: &["s: T", "u: T", "v: T"],
    attrs: &[
        "compute_uv: bool = true",
        "full_matrices: bool = false",
        "T: {double, float, half, complex64, complex128}",
    ],
    gradient: Gradient::Rule(gradients::svd),
    kernels: &[cpu(&[("T", TYPES)], |node| {
        let (with_vectors, is_full) = (
            node.attrs.bool("compute_uv")?,
            node.attrs.bool("full_matrices")?,
        );
        by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
            factor::<S>(ctx, with_vectors, is_full)
        }))
    })],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex_ref("square", &[], &[x(&[2, 2], &[3.0, 0.5, 0.25, 1.0])]),
        ex_ref("wide", &[], &[WIDE]),
        ex_ref(
            "tall",
            &[],
            &[f64s(&[3, 2], &[3.0, 0.5, 0.25, 1.0, -0.5, 0.5])],
        ),
        ex_ref("wide and full", &[("full_matrices", "true")], &[WIDE]),
        ex_ref("values only", &[("compute_uv", "false")], &[WIDE]),
        ex_err(
            "rank",
            &[],
            &[f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    scripts: &[script(
        "the product is the matrix",
        "a = double[2,2]{3, 0, 0, -2}
         f = Svd(a)
         only = Svd(a) {compute_uv=false}
         us = Mul(f:1, f)
         back = BatchMatMulV2(us, f:2) {adj_y=true}
         b = double[3,2]{1, 2, 3, 4, 5, 7}
         g = Svd(b) {full_matrices=true}
         shape = Shape(g:1)",
        &[
            "fetch f => double[2]{3, 2}",
            "fetch only => double[2]{3, 2}",
            "fetch back => double[2,2]{3, 0, 0, -2}",
            "fetch shape => int32[2]{3, 3}",
        ],
    )],
    ..OpDef::BLANK
}];

fn factor<S: Carried>(ctx: &mut KernelCtx<'_>, with_vectors: bool, is_full: bool) -> Result<()> {
    let input = ctx.input(0)?;
    let matrices = Matrices::of(input.shape(), 0)?;
    let (rows, cols) = (matrices.rows, matrices.cols);
    let least = rows.min(cols);
    let width = |side: usize| if is_full { side } else { least };
    let (dtype, size) = (input.dtype(), matrices.size());
    let values = (dtype, matrices.shape(&[least])?);
    let batch = (matrices.count(), size.saturating_mul(least));
    let find = |at: usize| -> Result<Svd<S>> {
        let own = S::matrix(input, at, size)?;
        Ok(svd(&own, rows, cols, with_vectors))
    };
    let carried = |values: Vec<f64>| values.into_iter().map(S::of).collect();
    let all = if with_vectors {
        let outputs = [
            values,
            (dtype, matrices.shape(&[rows, width(rows)])?),
            (dtype, matrices.shape(&[cols, width(cols)])?),
        ];
        each::<S, 3>(ctx, batch, outputs, &|at| {
            let found = find(at)?;
            let left = widened(&found.left, rows, least, width(rows));
            let right = widened(&found.right, cols, least, width(cols));
            Ok([carried(found.values), left, right])
        })?
    } else {
        let found = each::<S, 1>(ctx, batch, [values], &|at| Ok([carried(find(at)?.values)]))?;
        let [values] = found;
        let none = S::write(vec![S::ZERO], dtype, Shape::scalar())?;
        [values, none.clone(), none]
    };
    for (output, tensor) in all.into_iter().enumerate() {
        ctx.set(output, tensor);
    }
    Ok(())
}

/// The matrix with more columns, orthogonal to those it has.
fn widened<S: Carried>(matrix: &[S], rows: usize, cols: usize, wanted: usize) -> Vec<S> {
    let mut out = vec![S::ZERO; rows * wanted];
    for row in 0..rows {
        out[row * wanted..row * wanted + cols]
            .copy_from_slice(&matrix[row * cols..(row + 1) * cols]);
    }
    for col in cols..wanted {
        let found = complement(&out, rows, wanted, col);
        for row in 0..rows {
            out[row * wanted + col] = found[row];
        }
    }
    out
}
