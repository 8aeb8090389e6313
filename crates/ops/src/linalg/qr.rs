//! `Qr`: orthonormal columns and an upper triangle whose product is the matrix.
//!
//! TensorFlow: Qr(input: T[..., M, N]) -> (q: T[..., M, P], r: T[..., P, N]), P the smaller of M and N, or M with full_matrices.

use tensorfleet_graph::example::{Data, Lit, ex_err, ex_ref, f32s, f64s, script, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::linalg::qr::qr;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::DType;

use super::{Carried, Matrices, TYPES, by_carried, each, gradients};
use crate::types::dtypes;

const WIDE: Lit = f64s(&[2, 3], &[-3.0, 0.5, 0.5, 0.25, -1.0, 0.5]);
const TALL: Lit = f64s(&[3, 2], &[3.0, 0.5, 0.25, 1.0, -0.5, 0.5]);
const COMPLEX: Lit = Lit {
    dtype: Some(DType::C128),
    dims: &[2, 2],
    data: Data::C(&[(1.0, 0.5), (0.5, -0.25), (2.0, 1.0), (3.0, -1.0)]),
};

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "Qr",
    inputs: &["input: T"],
    outputs: &["q: T", "r: T"],
    attrs: &[
        "full_matrices: bool = false",
        "T: {double, float, half, complex64, complex128}",
    ],
    gradient: Gradient::Rule(gradients::qr),
    kernels: &[cpu(&[("T", dtypes![TYPES, &[DType::F16]])], |node| {
        let is_full = node.attrs.bool("full_matrices")?;
        by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
            factor::<S>(ctx, is_full)
        }))
    })],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    examples: &[
        ex_ref(
            "square",
            &[],
            &[f64s(
                &[2, 2, 2],
                &[3.0, 0.5, 0.25, 1.0, 0.5, 2.0, -1.0, 4.0],
            )],
        ),
        ex_ref("single", &[], &[f32s(&[2, 2], &[3.0, 0.5, 0.25, 1.0])]),
        ex_ref("wide", &[], &[WIDE]),
        ex_ref("tall", &[], &[TALL]),
        ex_ref("complex", &[], &[COMPLEX]),
        ex_ref("wide and full", &[("full_matrices", "true")], &[WIDE]),
        ex_ref("one", &[], &[x(&[1, 1], &[-2.0])]),
        ex_err(
            "rank",
            &[],
            &[f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    scripts: &[script(
        "tall and full",
        "a = double[3,2]{1, 2, 3, 4, 5, 7}
         f = Qr(a) {full_matrices=true}
         h = half[2,2]{1, 2, 0, 4}
         g = Qr(h)
         none = float[0,2]{}
         e = Qr(none)",
        &[
            "fetch f, f:1 => ?",
            "fetch g:1 => ?",
            "fetch e:1 => float[0,2]{}",
        ],
    )],
    ..OpDef::BLANK
}];

fn factor<S: Carried>(ctx: &mut KernelCtx<'_>, is_full: bool) -> Result<()> {
    let input = ctx.input(0)?;
    let matrices = Matrices::of(input.shape(), 0)?;
    let (rows, cols) = (matrices.rows, matrices.cols);
    let width = if is_full { rows } else { rows.min(cols) };
    let (dtype, size) = (input.dtype(), matrices.size());
    let outputs = [
        (dtype, matrices.shape(&[rows, width])?),
        (dtype, matrices.shape(&[width, cols])?),
    ];
    let work = rows.saturating_mul(rows.saturating_mul(cols));
    let [q, r] = each::<S, 2>(ctx, (matrices.count(), work), outputs, &|at| {
        Ok(qr(&S::matrix(input, at, size)?, rows, cols, is_full).into())
    })?;
    ctx.set(0, q);
    ctx.set(1, r);
    Ok(())
}
