//! `MatrixSetDiag`, `…V2`, `…V3`: matrices with some of their diagonals replaced.
//!
//! TensorFlow: MatrixSetDiagV3(input: T, diagonal: T, k: int32) -> output: T, with attr align: string; V2 aligns left; the
//! first one replaces the main diagonal. `BatchMatrixSetDiag` is its old name.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::diagonals::{Align, Band, matrix_dims, transfer};
use crate::types::PLAIN;

const SET: OpDef = OpDef {
    inputs: &["input: T", "diagonal: T"],
    outputs: &["output: T"],
    attrs: &["T: type"],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", PLAIN)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "square",
            &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), x(&[2], &[8.0, 9.0])],
            &[x(&[2, 2], &[8.0, 2.0, 3.0, 9.0])],
        ),
        ex(
            "batch of wide ones",
            &[
                f32s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
                f32s(&[2, 1], &[8.0, 9.0]),
            ],
            &[f32s(&[2, 1, 2], &[8.0, 2.0, 9.0, 4.0])],
        ),
        ex_err(
            "length",
            &[],
            &[f32s(&[2, 2], &[1.0]), f32s(&[3], &[1.0])],
            Code::InvalidArgument,
            "first dimensions of diagonal don't match",
        ),
        ex_err(
            "no dimension",
            &[],
            &[f32s(&[1, 1], &[1.0]), f32s(&[], &[1.0])],
            Code::InvalidArgument,
            "diagonal must be at least 1-dim, received shape: []",
        ),
    ],
    ..OpDef::BLANK
};

const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "BatchMatrixSetDiag",
        deprecated: 14,
        ..SET
    },
    OpDef {
        name: "MatrixSetDiag",
        ..SET
    },
    OpDef {
        name: "MatrixSetDiagV2",
        inputs: &["input: T", "diagonal: T", "k: int32"],
        examples: &[
            ex(
                "one",
                &[MATRIX, x(&[1], &[9.0]), i32s(&[], &[-1])],
                &[x(&[2, 3], &[1.0, 2.0, 3.0, 9.0, 5.0, 6.0])],
            ),
            ex(
                "two",
                &[
                    MATRIX,
                    x(&[2, 2], &[8.0, 7.0, 9.0, 7.0]),
                    i32s(&[2], &[-1, 0]),
                ],
                &[x(&[2, 3], &[8.0, 2.0, 3.0, 9.0, 7.0, 6.0])],
            ),
            ex_err(
                "number of diagonals",
                &[],
                &[
                    f32s(&[2, 2], &[1.0]),
                    f32s(&[2, 2], &[1.0]),
                    i32s(&[2], &[-1, 1]),
                ],
                Code::InvalidArgument,
                "The number of diagonals provided in `diag` is not consistent",
            ),
            ex_err(
                "no dimension for the diagonals",
                &[],
                &[
                    f32s(&[2, 3, 4], &[1.0]),
                    f32s(&[10], &[1.0]),
                    i32s(&[2], &[-1, 1]),
                ],
                Code::InvalidArgument,
                "Expected diagonal rank >= 2, Received diagonal rank: 1",
            ),
        ],
        ..SET
    },
    OpDef {
        name: "MatrixSetDiagV3",
        inputs: &["input: T", "diagonal: T", "k: int32"],
        attrs: &[
            "T: type",
            "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
        ],
        examples: &[
            ex(
                "upper ones to the right",
                &[
                    MATRIX,
                    x(&[2, 2], &[7.0, 8.0, 9.0, 10.0]),
                    i32s(&[2], &[1, 2]),
                ],
                &[x(&[2, 3], &[1.0, 9.0, 8.0, 4.0, 5.0, 10.0])],
            ),
            ex_attrs(
                "upper ones to the left",
                &[("align", "LEFT_RIGHT")],
                &[
                    MATRIX,
                    x(&[2, 2], &[7.0, 8.0, 9.0, 10.0]),
                    i32s(&[2], &[1, 2]),
                ],
                &[x(&[2, 3], &[1.0, 9.0, 7.0, 4.0, 5.0, 10.0])],
            ),
        ],
        ..SET
    },
];

/// The diagonals' part goes to the diagonals, the rest to the matrices.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, diagonal) = (g.grad(0)?, g.input(1));
    let zeros = g.apply("ZerosLike", &[diagonal])?;
    let zero = Tensor::zeros(g.dtype(grad), Shape::scalar())?;
    let zero = g.builder().constant(zero)?;
    let (set, part, mut grads) = match (g.num_inputs(), g.attr("align").is_ok()) {
        (2, _) => ("MatrixSetDiag", "MatrixDiagPart", Vec::new()),
        (_, false) => ("MatrixSetDiagV2", "MatrixDiagPartV2", vec![None]),
        (_, true) => ("MatrixSetDiagV3", "MatrixDiagPartV3", vec![None]),
    };
    let with_k = |inputs: &[Output], k: Option<Output>, last: &[Output]| {
        inputs
            .iter()
            .copied()
            .chain(k)
            .chain(last.iter().copied())
            .collect::<Vec<_>>()
    };
    let k = (g.num_inputs() > 2).then(|| g.input(2));
    let padding = if k.is_some() { vec![zero] } else { Vec::new() };
    let input_grad = aligned(g, set, &with_k(&[grad, zeros], k, &[]))?;
    let diagonal_grad = aligned(g, part, &with_k(&[grad], k, &padding))?;
    grads.insert(0, Some(Grad::Dense(diagonal_grad)));
    grads.insert(0, Some(Grad::Dense(input_grad)));
    Ok(grads)
}

/// An op with the alignment of the node, if that has one.
fn aligned(g: &mut GradCtx<'_>, op: &str, inputs: &[Output]) -> Result<Output> {
    let align = g.attr("align");
    let mut node = g.builder().op(op);
    for input in inputs {
        node = node.input(*input);
    }
    if let Ok(align) = align {
        node = node.attr("align", align);
    }
    node.output()
}

/// Whether diagonals of a shape fit matrices of another.
fn check_diagonal(band: Band, input: &Shape, diagonal: &Shape) -> Result<()> {
    let (outer, rows, columns) = matrix_dims(input)?;
    if diagonal.rank() == 0 {
        return Err(invalid_argument!(
            "diagonal must be at least 1-dim, received shape: {diagonal}"
        ));
    }
    band.check(rows, columns)?;
    if !band.is_single() {
        if diagonal.rank() <= outer.len() {
            return Err(invalid_argument!(
                "Diagonal tensor rank must be large enough to contain a diagonal-count dimension. Input rank: {}, Expected diagonal rank >= {}, Received diagonal rank: {}",
                input.rank(),
                outer.len() + 1,
                diagonal.rank()
            ));
        }
        if diagonal[outer.len()] != band.count() {
            return Err(invalid_argument!(
                "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and `upper_diag_index`"
            ));
        }
    }
    let expected = band.shape(outer, rows, columns)?;
    if *diagonal != expected {
        return Err(invalid_argument!(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: {input}\nDiagonal shape: {diagonal}\nExpected diagonal shape: {expected}"
        ));
    }
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let align = Align::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let band = match ctx.num_inputs() {
            2 => Band::MAIN,
            _ => Band::of_input(ctx, 2)?,
        };
        let mut output = ctx.take(0)?;
        let diagonal = ctx.input(1)?;
        let shape = output.shape().clone();
        let (outer, rows, columns) = matrix_dims(&shape)?;
        check_diagonal(band, &shape, diagonal.shape())?;
        let batch = shape.elements_in(0..outer.len());
        for place in band.places(batch, (rows, columns), align) {
            transfer(ctx, (diagonal, &place.kept), (&mut output, &place.matrix))?;
        }
        ctx.set(0, output);
        Ok(())
    })
}
