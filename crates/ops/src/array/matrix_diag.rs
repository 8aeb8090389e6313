//! `MatrixDiag`, `…V2`, `…V3`: matrices with given diagonals and a value elsewhere.
//!
//! TensorFlow: MatrixDiagV3(diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T) -> output: T, with
//! attr align: string; V2 aligns left; the first one makes square matrices of main diagonals in zeros.
//! `BatchMatrixDiag` is its old name.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

use super::diagonals::{Align, Band, transfer};
use super::{grads, moves};
use crate::types::PLAIN;

const DIAG: OpDef = OpDef {
    inputs: &["diagonal: T"],
    outputs: &["output: T"],
    attrs: &["T: type"],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", PLAIN)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "vector",
            &[x(&[2], &[1.0, 2.0])],
            &[x(&[2, 2], &[1.0, 0.0, 0.0, 2.0])],
        ),
        ex(
            "batch",
            &[f32s(&[2, 1], &[1.0, 2.0])],
            &[f32s(&[2, 1, 1], &[1.0, 2.0])],
        ),
        ex_err(
            "scalar",
            &[],
            &[f32s(&[], &[1.0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

const V2_INPUTS: &[&str] = &[
    "diagonal: T",
    "k: int32",
    "num_rows: int32",
    "num_cols: int32",
    "padding_value: T",
];
const UNKNOWN: Lit = i32s(&[], &[-1]);

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "BatchMatrixDiag",
        deprecated: 14,
        ..DIAG
    },
    OpDef {
        name: "MatrixDiag",
        ..DIAG
    },
    OpDef {
        name: "MatrixDiagV2",
        inputs: V2_INPUTS,
        examples: &[
            ex(
                "one above the main one",
                &[
                    x(&[2], &[1.0, 2.0]),
                    i32s(&[], &[1]),
                    UNKNOWN,
                    UNKNOWN,
                    x(&[], &[0.0]),
                ],
                &[x(&[3, 3], &[0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0])],
            ),
            ex(
                "two, in three columns",
                &[
                    x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[2], &[0, 1]),
                    UNKNOWN,
                    i32s(&[], &[3]),
                    x(&[], &[9.0]),
                ],
                &[x(&[2, 3], &[3.0, 1.0, 9.0, 9.0, 4.0, 2.0])],
            ),
            ex_err(
                "too few rows",
                &[],
                &[
                    f32s(&[2], &[1.0]),
                    i32s(&[], &[0]),
                    i32s(&[], &[1]),
                    UNKNOWN,
                    f32s(&[], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "number of diagonals",
                &[],
                &[
                    f32s(&[2, 2], &[1.0]),
                    i32s(&[2], &[-1, 1]),
                    UNKNOWN,
                    UNKNOWN,
                    f32s(&[], &[0.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..DIAG
    },
    OpDef {
        name: "MatrixDiagV3",
        inputs: V2_INPUTS,
        attrs: &[
            "T: type",
            "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
        ],
        examples: &[
            ex(
                "three",
                &[
                    x(&[3, 2], &[7.0, 1.0, 2.0, 3.0, 4.0, 7.0]),
                    i32s(&[2], &[-1, 1]),
                    UNKNOWN,
                    UNKNOWN,
                    x(&[], &[0.0]),
                ],
                &[x(&[2, 2], &[2.0, 1.0, 4.0, 3.0])],
            ),
            ex(
                "one beyond the last column",
                &[
                    i32s(&[2, 1], &[7, 8]),
                    i32s(&[2], &[0, 1]),
                    i32s(&[], &[2]),
                    i32s(&[], &[1]),
                    i32s(&[], &[0]),
                ],
                &[i32s(&[2, 1], &[8, 0])],
            ),
            ex_attrs(
                "lower ones to the right",
                &[("align", "LEFT_RIGHT")],
                &[
                    x(&[2, 2], &[1.0, 2.0, 7.0, 3.0]),
                    i32s(&[2], &[-1, 0]),
                    i32s(&[], &[2]),
                    i32s(&[], &[2]),
                    x(&[], &[5.0]),
                ],
                &[x(&[2, 2], &[1.0, 5.0, 3.0, 2.0])],
            ),
        ],
        ..DIAG
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    if g.num_inputs() == 1 {
        let grad = g.apply("MatrixDiagPart", &[grad])?;
        return Ok(vec![Some(Grad::Dense(grad))]);
    }
    let (k, align) = (g.input(1), g.attr("align"));
    let zero = Tensor::zeros(g.dtype(grad), Shape::scalar())?;
    let zero = g.builder().constant(zero)?;
    let op = if align.is_ok() {
        "MatrixDiagPartV3"
    } else {
        "MatrixDiagPartV2"
    };
    let mut node = g.builder().op(op).input(grad).input(k).input(zero);
    if let Ok(align) = align {
        node = node.attr("align", align);
    }
    let diagonal = node.output()?;
    let padding = grads::sum_beside(g, grad, diagonal)?;
    let (diagonal, padding) = (Grad::Dense(diagonal), Grad::Dense(padding));
    Ok(vec![Some(diagonal), None, None, None, Some(padding)])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let align = Align::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let output = matrix(ctx, align)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn matrix(ctx: &KernelCtx<'_>, align: Align) -> Result<Tensor> {
    let diagonal = ctx.input(0)?;
    let Some((longest, outer)) = diagonal.shape().split_last() else {
        return Err(invalid_argument!(
            "diagonal must be at least 1-dim, received shape: {}",
            diagonal.shape()
        ));
    };
    let simple = ctx.num_inputs() == 1;
    let band = if simple {
        Band::MAIN
    } else {
        Band::of_input(ctx, 1)?
    };
    let outer = match outer {
        outer if band.is_single() => outer,
        [outer @ .., count] if *count == band.count() => outer,
        _ => {
            return Err(invalid_argument!(
                "The number of rows of `diagonal` doesn't match the number of diagonals implied from `d_lower` and `d_upper`. num_diags = {}, diagonal.shape = {}",
                band.count(),
                diagonal.shape()
            ));
        }
    };
    let (wanted, padding) = if simple {
        ((-1, -1), Tensor::zeros(diagonal.dtype(), Shape::scalar())?)
    } else {
        ((ctx.int(2)?, ctx.int(3)?), ctx.input(4)?.clone())
    };
    if padding.elements() != 1 {
        return Err(invalid_argument!(
            "padding_value must be a scalar, received shape: {}",
            padding.shape()
        ));
    }
    // Diagonals that such a matrix has not are left out.
    let (rows, columns) = size(band, *longest, wanted)?;
    let shape = Shape::new(&[outer, &[rows, columns]].concat())?;
    let batch = diagonal.shape().elements_in(0..outer.len());
    let mut output = moves::fill(ctx.par(), &padding, shape)?;
    for place in band.places(batch, (rows, columns), align) {
        transfer(ctx, (diagonal, &place.kept), (&mut output, &place.matrix))?;
    }
    Ok(output)
}

/// Rows and columns, where -1 asks for as few as the diagonals need.
fn size(band: Band, longest: i64, (rows, columns): (i64, i64)) -> Result<(i64, i64)> {
    let least_rows = longest - band.upper.min(0);
    let least_columns = longest + band.lower.max(0);
    let (rows, columns) = match (rows, columns) {
        (-1, -1) => {
            let square = least_rows.max(least_columns);
            (square, square)
        }
        (-1, columns) => (least_rows, columns),
        (rows, -1) => (rows, least_columns),
        both => both,
    };
    if rows < least_rows {
        return Err(invalid_argument!(
            "The number of rows is too small: {rows}, at least {least_rows} are needed"
        ));
    }
    if columns < least_columns {
        return Err(invalid_argument!(
            "The number of columns is too small: {columns}, at least {least_columns} are needed"
        ));
    }
    if rows != least_rows && columns != least_columns {
        return Err(invalid_argument!(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal: {rows}, {columns}"
        ));
    }
    Ok((rows, columns))
}
