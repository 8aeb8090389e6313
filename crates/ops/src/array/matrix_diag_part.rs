//! `MatrixDiagPart`, `…V2`, `…V3`: diagonals of the innermost matrices of a tensor.
//!
//! TensorFlow: MatrixDiagPartV3(input: T, k: int32, padding_value: T) -> diagonal: T, with attr align: string; V2 aligns
//! left; the first one takes the main diagonal. `BatchMatrixDiagPart` is its old name.

use tensorfleet_graph::example::{Lit, bools, ex, ex_attrs, ex_err, f32s, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::diagonals::{Align, Band, matrix_dims, transfer};
use super::{grads, moves};
use crate::types::PLAIN;

const PART: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["diagonal: T"],
    attrs: &["T: type"],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", PLAIN)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "square",
            &[x(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[x(&[2], &[1.0, 4.0])],
        ),
        ex(
            "batch of wide ones",
            &[f32s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0])],
            &[f32s(&[2, 1], &[1.0, 3.0])],
        ),
        ex("empty", &[bools(&[0, 2, 2], &[])], &[bools(&[0, 2], &[])]),
        ex_err(
            "vector",
            &[],
            &[f32s(&[2], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

const MATRIX: Lit = x(
    &[3, 4],
    &[
        1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0,
    ],
);

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "BatchMatrixDiagPart",
        deprecated: 14,
        ..PART
    },
    OpDef {
        name: "MatrixDiagPart",
        ..PART
    },
    OpDef {
        name: "MatrixDiagPartV2",
        inputs: &["input: T", "k: int32", "padding_value: T"],
        examples: &[
            ex(
                "three",
                &[MATRIX, i32s(&[2], &[-1, 1]), x(&[], &[0.0])],
                &[x(
                    &[3, 3],
                    &[2.0, 7.0, 12.0, 1.0, 6.0, 11.0, 5.0, 10.0, 0.0],
                )],
            ),
            ex(
                "one",
                &[MATRIX, i32s(&[], &[2]), x(&[], &[0.0])],
                &[x(&[2], &[3.0, 8.0])],
            ),
            ex_err(
                "no such diagonal",
                &[],
                &[f32s(&[2, 2], &[1.0]), i32s(&[], &[2]), f32s(&[], &[0.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "upside down",
                &[],
                &[
                    f32s(&[2, 2], &[1.0]),
                    i32s(&[2], &[1, 0]),
                    f32s(&[], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..PART
    },
    OpDef {
        name: "MatrixDiagPartV3",
        inputs: &["input: T", "k: int32", "padding_value: T"],
        attrs: &[
            "T: type",
            "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
        ],
        examples: &[
            ex(
                "upper ones to the right",
                &[MATRIX, i32s(&[2], &[1, 3]), x(&[], &[9.0])],
                &[x(&[3, 3], &[9.0, 9.0, 4.0, 9.0, 3.0, 8.0, 2.0, 7.0, 12.0])],
            ),
            ex_attrs(
                "lower ones to the right",
                &[("align", "LEFT_RIGHT")],
                &[MATRIX, i32s(&[2], &[-2, -1]), x(&[], &[7.0])],
                &[x(&[2, 2], &[5.0, 10.0, 7.0, 9.0])],
            ),
        ],
        ..PART
    },
];

/// The gradients put back into zeros on the diagonals.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, input) = (g.grad(0)?, g.input(0));
    let zeros = g.apply("ZerosLike", &[input])?;
    if g.num_inputs() == 1 {
        let grad = g.apply("MatrixSetDiag", &[zeros, grad])?;
        return Ok(vec![Some(Grad::Dense(grad))]);
    }
    let (k, align) = (g.input(1), g.attr("align"));
    let op = if align.is_ok() {
        "MatrixSetDiagV3"
    } else {
        "MatrixSetDiagV2"
    };
    let mut node = g.builder().op(op).input(zeros).input(grad).input(k);
    if let Ok(align) = align {
        node = node.attr("align", align);
    }
    let input_grad = node.output()?;
    let padding = grads::sum_beside(g, grad, input_grad)?;
    Ok(vec![
        Some(Grad::Dense(input_grad)),
        None,
        Some(Grad::Dense(padding)),
    ])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let align = Align::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let band = match ctx.num_inputs() {
            1 => Band::MAIN,
            _ => Band::of_input(ctx, 1)?,
        };
        let diagonal = part(ctx, band, align)?;
        ctx.set(0, diagonal);
        Ok(())
    })
}

fn part(ctx: &KernelCtx<'_>, band: Band, align: Align) -> Result<Tensor> {
    let input = ctx.input(0)?;
    let (outer, rows, columns) = matrix_dims(input.shape())?;
    band.check(rows, columns)?;
    let shape = band.shape(outer, rows, columns)?;
    let padding = match ctx.num_inputs() {
        1 => Tensor::zeros(input.dtype(), Shape::scalar())?,
        _ => {
            let padding = ctx.input(2)?;
            if padding.elements() != 1 {
                return Err(invalid_argument!(
                    "padding_value must be a scalar, received shape: {}",
                    padding.shape()
                ));
            }
            padding.clone()
        }
    };
    let batch = input.shape().elements_in(0..outer.len());
    let mut diagonal = moves::fill(ctx.par(), &padding, shape)?;
    for place in band.places(batch, (rows, columns), align) {
        transfer(ctx, (input, &place.matrix), (&mut diagonal, &place.kept))?;
    }
    Ok(diagonal)
}
