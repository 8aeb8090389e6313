//! `SelfAdjointEigV2`, `Eig`: eigenvalues and eigenvectors.
//!
//! TensorFlow: SelfAdjointEigV2(input: T) -> (e: T, v: T), ascending, only the lower triangle is read; Eig(input: T) -> (e: Tout,
//! v: Tout), complex and in no order. With compute_v false `v` is a scalar without meaning. Vectors have length one; their phase
//! is not determined.

use tensorfleet_graph::example::{Data, Lit, ex_attrs, ex_err, ex_ref, f32s, f64s, script, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::linalg::{general, hermitian};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{Complex64, DType, Shape};

use super::{Carried, Matrices, TYPES, by_carried, each, gradients};

const EIGEN: OpDef = OpDef {
    inputs: &["input: T"],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};

const TRIANGLE: Lit = Lit {
    dtype: Some(DType::C128),
    dims: &[2, 2],
    data: Data::C(&[(1.0, 0.5), (0.5, -0.25), (0.0, 0.0), (3.0, -1.0)]),
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Eig",
        outputs: &["e: Tout", "v: Tout"],
        attrs: &[
            "compute_v: bool = true",
            "T: {float, double, complex64, complex128}",
            "Tout: {complex64, complex128}",
        ],
        gradient: Gradient::Rule(gradients::eigen),
        kernels: &[cpu(&[("T", TYPES)], build_general)],
        examples: &[
            ex_ref("upper triangle", &[("Tout", "complex128")], &[TRIANGLE]),
            ex_err(
                "output dtype",
                &[("Tout", "complex128")],
                &[f32s(&[2, 2], &[1.0])],
                Code::InvalidArgument,
                "Invalid output dtype",
            ),
        ],
        scripts: &[script(
            "vectors are only scaled",
            "a = double[2,2]{0, 1, -2, 3}
             e = Eig(a) {Tout=complex128}
             c = Cast(a) {DstT=complex128}
             av = BatchMatMulV2(c, e:1)
             ev = Mul(e:1, e)
             d = Sub(av, ev)
             size = ComplexAbs(d) {Tout=double}
             limit = double[]{1e-12}
             ok = Less(size, limit)",
            &["fetch ok => bool[2,2]{true, true, true, true}"],
        )],
        ..EIGEN
    },
    OpDef {
        name: "SelfAdjointEigV2",
        outputs: &["e: T", "v: T"],
        attrs: &[
            "compute_v: bool = true",
            "T: {double, float, half, complex64, complex128}",
        ],
        gradient: Gradient::Rule(gradients::self_adjoint_eigen),
        kernels: &[cpu(&[("T", TYPES)], |node| {
            let with_vectors = node.attrs.bool("compute_v")?;
            by_carried!(node, S => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
                self_adjoint::<S>(ctx, with_vectors)
            }))
        })],
        examples: &[
            ex_attrs(
                "nothing",
                &[],
                &[f64s(&[2, 0, 0], &[])],
                &[f64s(&[2, 0], &[]), f64s(&[2, 0, 0], &[])],
            ),
            // Without an element in the corner TensorFlow's vectors have the same signs.
            ex_ref(
                "three by three",
                &[],
                &[f64s(
                    &[3, 3],
                    &[1.0, 9.0, 9.0, 0.5, 3.0, 9.0, 0.0, -0.5, 6.0],
                )],
            ),
            ex_attrs(
                "values only",
                &[("compute_v", "false")],
                &[x(&[2, 2], &[2.0, 9.0, 1.0, 2.0])],
                &[x(&[2], &[1.0, 3.0]), x(&[], &[0.0])],
            ),
            ex_err(
                "not square",
                &[],
                &[f32s(&[2, 3], &[1.0])],
                Code::InvalidArgument,
                "Input matrix must be square.",
            ),
            ex_err(
                "not finite",
                &[],
                &[f32s(&[2, 2], &[f64::NAN, 0.0, 0.0, 1.0])],
                Code::InvalidArgument,
                "Self-adjoint eigen decomposition was not successful. The input might not be valid.",
            ),
        ],
        scripts: &[script(
            "ascending, from the lower triangle",
            "a = double[2,2]{2, 9, 1, 2}
             e = SelfAdjointEigV2(a)
             only = SelfAdjointEigV2(a) {compute_v=false}
             s = Square(e:1)",
            &[
                "fetch e => double[2]{1, 3}",
                "fetch only => double[2]{1, 3}",
                "fetch s => double[2,2]{0.5, 0.5, 0.5, 0.5}",
            ],
        )],
        ..EIGEN
    },
];

fn self_adjoint<S: Carried>(ctx: &mut KernelCtx<'_>, with_vectors: bool) -> Result<()> {
    let dtype = ctx.input(0)?.dtype();
    run::<S>(ctx, with_vectors, dtype, |own, n| {
        let (values, vectors) = hermitian::eigen(&own, n, with_vectors).ok_or_else(|| {
            invalid_argument!(
                "Self-adjoint eigen decomposition was not successful. The input might not be valid."
            )
        })?;
        Ok([values.into_iter().map(S::of).collect(), vectors])
    })
}

/// Sets values and vectors, or for these one number that has no meaning.
fn run<S: Carried>(
    ctx: &mut KernelCtx<'_>,
    with_vectors: bool,
    dtype: DType,
    find: impl Fn(Vec<S>, usize) -> Result<[Vec<S>; 2]> + Sync,
) -> Result<()> {
    let input = ctx.input(0)?;
    let matrices = Matrices::square(input.shape())?;
    let (n, size) = (matrices.rows, matrices.size());
    let values = (dtype, matrices.shape(&[n])?);
    let batch = (matrices.count(), size.saturating_mul(n));
    let all = if with_vectors {
        let outputs = [values, (dtype, input.shape().clone())];
        each::<S, 2>(ctx, batch, outputs, &|at| {
            find(S::matrix(input, at, size)?, n)
        })?
    } else {
        let [values] = each::<S, 1>(ctx, batch, [values], &|at| {
            let [values, _] = find(S::matrix(input, at, size)?, n)?;
            Ok([values])
        })?;
        [values, S::write(vec![S::ZERO], dtype, Shape::scalar())?]
    };
    for (output, tensor) in all.into_iter().enumerate() {
        ctx.set(output, tensor);
    }
    Ok(())
}

fn build_general(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (with_vectors, dtype) = (attrs.bool("compute_v")?, attrs.dtype("Tout")?);
    let expected = match attrs.dtype("T")? {
        DType::F32 | DType::C64 => DType::C64,
        _ => DType::C128,
    };
    ensure!(
        dtype == expected,
        invalid_argument,
        "Invalid output dtype {dtype} vs {expected}"
    );
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        run::<Complex64>(ctx, with_vectors, dtype, |own, n| {
            let found = general::eigen(&own, n).ok_or_else(|| {
                invalid_argument!(
                    "Eigen decomposition was not successful. The input might not be valid."
                )
            })?;
            Ok(found.into())
        })
    })
}
