//! `MatrixBandPart`: matrices with zeros outside of a band around the main diagonal.
//!
//! TensorFlow: MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> band: T. A negative number keeps that
//! whole triangle. `BatchMatrixBandPart` is its old name.

use tensorfleet_graph::example::{Lit, ex, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Word, by_word};

use super::diagonals::matrix_dims;
use crate::types::{INDEX, NUMBERS, PLAIN};

const BAND: OpDef = OpDef {
    outputs: &["band: T"],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const MATRIX: Lit = x(&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "BatchMatrixBandPart",
        inputs: &["input: T", "num_lower: int64", "num_upper: int64"],
        attrs: &["T: type"],
        deprecated: 14,
        gradient: Gradient::None("the op is no longer in use"),
        kernels: &[cpu(&[("T", NUMBERS)], build)],
        examples: &[ex(
            "lower triangle",
            &[MATRIX, i64s(&[], &[-1]), i64s(&[], &[0])],
            &[x(&[3, 3], &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0, 7.0, 8.0, 9.0])],
        )],
        ..BAND
    },
    OpDef {
        name: "MatrixBandPart",
        inputs: &["input: T", "num_lower: Tindex", "num_upper: Tindex"],
        attrs: &["T: type", "Tindex: {int32, int64} = DT_INT64"],
        kernels: &[cpu(&[("T", PLAIN), ("Tindex", INDEX)], build)],
        examples: &[
            ex(
                "lower triangle",
                &[MATRIX, i64s(&[], &[-1]), i64s(&[], &[0])],
                &[x(&[3, 3], &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0, 7.0, 8.0, 9.0])],
            ),
            ex(
                "band",
                &[MATRIX, i32s(&[], &[0]), i32s(&[], &[1])],
                &[x(&[3, 3], &[1.0, 2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0, 9.0])],
            ),
            ex(
                "batch of wide ones",
                &[
                    f32s(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i64s(&[], &[0]),
                    i64s(&[], &[0]),
                ],
                &[f32s(&[2, 1, 2], &[1.0, 0.0, 3.0, 0.0])],
            ),
            ex_err(
                "too many",
                &[],
                &[f32s(&[2, 2], &[1.0]), i64s(&[], &[3]), i64s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "vector",
                &[],
                &[f32s(&[2], &[1.0]), i64s(&[], &[0]), i64s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BAND
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, lower, upper) = (g.grad(0)?, g.input(1), g.input(2));
    let grad = g.apply("MatrixBandPart", &[grad, lower, upper])?;
    Ok(vec![Some(Grad::Dense(grad)), None, None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (_, rows, columns) = matrix_dims(ctx.input(0)?.shape())?;
        let mut counts = [0; 2];
        let limits = [
            (1, "num_lower", "rows", rows),
            (2, "num_upper", "columns", columns),
        ];
        for (index, name, what, limit) in limits {
            let shape = ctx.input(index)?.shape();
            if shape.rank() != 0 {
                return Err(invalid_argument!(
                    "{name} must be scalar, got shape {shape}"
                ));
            }
            let count = ctx.int(index)?;
            if count > limit {
                return Err(invalid_argument!(
                    "{name} must be negative or less or equal to number of {what} ({limit}) got: {count}"
                ));
            }
            counts[index - 1] = count;
        }
        let mut matrices = ctx.take(0)?;
        let size = (rows as usize, columns as usize);
        let band = if matrices.is_empty() {
            matrices
        } else if matrices.is_unique() {
            by_word!(matrices.dtype(), W => {
                clear::<W>(ctx.par(), None, matrices.words_mut::<W>()?, size, counts);
            });
            matrices
        } else {
            let mut band = ctx.allocate(matrices.dtype(), matrices.shape().clone())?;
            by_word!(matrices.dtype(), W => {
                let from = Some(matrices.words::<W>()?);
                clear::<W>(ctx.par(), from, band.words_mut::<W>()?, size, counts);
            });
            band
        };
        ctx.set(0, band);
        Ok(())
    })
}

/// Writes zeros outside of the band, and inside of it what is in `from`, if that is elsewhere.
fn clear<W: Word>(
    par: &dyn Par,
    from: Option<&[W]>,
    out: &mut [W],
    (rows, columns): (usize, usize),
    [lower, upper]: [i64; 2],
) {
    let grain = (16 * 1024usize).div_ceil(columns);
    rows_mut(par, out, columns, grain, |first, chunk| {
        for (row, out) in (first..).zip(chunk.chunks_exact_mut(columns)) {
            let at = (row % rows) as i64;
            let begin = if lower < 0 {
                0
            } else {
                (at - lower).max(0) as usize
            };
            let end = if upper < 0 {
                columns
            } else {
                (at + upper + 1) as usize
            };
            let begin = begin.min(columns);
            let end = end.clamp(begin, columns);
            out[..begin].fill(W::default());
            if let Some(from) = from {
                let row = &from[row * columns..(row + 1) * columns];
                out[begin..end].clone_from_slice(&row[begin..end]);
            }
            out[end..].fill(W::default());
        }
    });
}
