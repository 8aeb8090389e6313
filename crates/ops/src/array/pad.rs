//! `Pad`, `PadV2`: a tensor surrounded by zeros, or by a value.
//!
//! TensorFlow: Pad(input: T, paddings: Tpaddings) -> output: T; PadV2(input: T, paddings: Tpaddings, constant_values: T)
//! -> output: T. Row `i` of `paddings` says how many elements come before and behind in dimension `i`.

use smallvec::SmallVec;
use tensorfleet_graph::example::{bools, ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Dims, PartialShape, Shape, Tensor};

use super::{grads, moves};
use crate::types::{INDEX, MOVABLE};

const PAD: OpDef = OpDef {
    inputs: &["input: T", "paddings: Tpaddings"],
    outputs: &["output: T"],
    attrs: &["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    infer,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", MOVABLE), ("Tpaddings", INDEX)], build)],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Pad",
        examples: &[
            ex(
                "matrix",
                &[x(&[1, 2], &[1.0, 2.0]), i32s(&[2, 2], &[1, 0, 0, 1])],
                &[x(&[2, 3], &[0.0, 0.0, 0.0, 1.0, 2.0, 0.0])],
            ),
            ex(
                "strings and bools",
                &[strs(&[1], &["a"]), i64s(&[1, 2], &[1, 1])],
                &[strs(&[3], &["", "a", ""])],
            ),
            ex(
                "scalar",
                &[bools(&[], &[true]), i32s(&[0, 2], &[])],
                &[bools(&[], &[true])],
            ),
            ex(
                "nothing inside",
                &[f32s(&[0, 1], &[]), i32s(&[2, 2], &[1, 0, 0, 0])],
                &[f32s(&[1, 1], &[0.0])],
            ),
            ex_err(
                "negative",
                &[],
                &[f32s(&[1], &[1.0]), i32s(&[1, 2], &[-1, 0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "rank",
                &[],
                &[f32s(&[1], &[1.0]), i32s(&[2, 2], &[1, 0, 1, 1])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "not a matrix",
                &[],
                &[f32s(&[1], &[1.0]), i32s(&[2], &[1, 0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..PAD
    },
    OpDef {
        name: "PadV2",
        inputs: &["input: T", "paddings: Tpaddings", "constant_values: T"],
        examples: &[
            ex(
                "matrix",
                &[
                    x(&[1, 2], &[1.0, 2.0]),
                    i32s(&[2, 2], &[1, 0, 0, 1]),
                    x(&[], &[9.0]),
                ],
                &[x(&[2, 3], &[9.0, 9.0, 9.0, 1.0, 2.0, 9.0])],
            ),
            ex_err(
                "no scalar",
                &[],
                &[
                    f32s(&[1], &[1.0]),
                    i32s(&[1, 2], &[1, 0]),
                    f32s(&[1], &[1.0]),
                ],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..PAD
    },
];

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = match (ctx.input(0).dims(), ctx.constant_ints(1)) {
        (Some(dims), Some(paddings)) if paddings.len() == 2 * dims.len() => {
            let dims = dims
                .iter()
                .zip(paddings.chunks_exact(2))
                .map(|(dim, pair)| match dim {
                    ..0 => -1,
                    dim => dim.saturating_add(pair[0]).saturating_add(pair[1]),
                });
            PartialShape::new(&dims.collect::<Dims>())
        }
        (Some(dims), _) => PartialShape::of_rank(dims.len()),
        _ => PartialShape::unknown(),
    };
    ctx.set(0, shape);
    Ok(())
}

/// What was put in is cut out again.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, paddings) = (g.grad(0)?, g.input(1));
    let index = g.dtype(paddings);
    let columns = g
        .builder()
        .op("Unpack")
        .input(paddings)
        .attr("num", 2i64)
        .attr("axis", 1i64)
        .build()?;
    let sizes = grads::shape_as(g, g.input(0), index)?;
    let inner = g.apply("Slice", &[grad, columns.output(0), sizes])?;
    let mut input_grads = vec![Some(Grad::Dense(inner)), None];
    if g.num_inputs() == 3 {
        let value = grads::sum_beside(g, grad, inner)?;
        input_grads.push(Some(Grad::Dense(value)));
    }
    Ok(input_grads)
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let paddings = paddings(ctx)?;
        let input = ctx.input(0)?;
        let value = if ctx.num_inputs() > 2 {
            let value = ctx.input(2)?;
            if value.rank() != 0 {
                return Err(invalid_argument!(
                    "constant_values must be a scalar. Found: {}",
                    value.shape()
                ));
            }
            value.clone()
        } else {
            Tensor::zeros(input.dtype(), Shape::scalar())?
        };
        let shape = padded_shape(input.shape(), &paddings)?;
        let output = if shape == *input.shape() {
            ctx.take(0)?
        } else {
            moves::pad(ctx.par(), input, &paddings, &value, shape)?
        };
        ctx.set(0, output);
        Ok(())
    })
}

/// The paddings in input 1 for the tensor in input 0, checked; for other padding ops too.
pub(super) fn paddings(ctx: &KernelCtx<'_>) -> Result<SmallVec<[(usize, usize); 4]>> {
    let (input, paddings) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
    if paddings.rank() != 2 || paddings[1] != 2 {
        return Err(invalid_argument!(
            "paddings must be a matrix with 2 columns: {paddings}"
        ));
    }
    if paddings.dim(0) != input.rank() {
        return Err(invalid_argument!(
            "The first dimension of paddings must be the rank of inputs{paddings} {input}"
        ));
    }
    let values = ctx.ints(1)?;
    let pairs = values.chunks_exact(2).map(|pair| {
        match (usize::try_from(pair[0]), usize::try_from(pair[1])) {
            (Ok(before), Ok(behind)) => Ok((before, behind)),
            _ => Err(invalid_argument!(
                "Paddings must be non-negative: {} {}",
                pair[0],
                pair[1]
            )),
        }
    });
    pairs.collect()
}

/// The shape with the paddings around it.
pub(super) fn padded_shape(shape: &Shape, paddings: &[(usize, usize)]) -> Result<Shape> {
    let mut dims = Dims::new();
    for (dim, (before, behind)) in shape.iter().zip(paddings) {
        let sum = dim
            .checked_add(*before as i64)
            .and_then(|sum| sum.checked_add(*behind as i64));
        dims.push(sum.ok_or_else(|| {
            invalid_argument!("dimension {dim} with paddings {before} and {behind} overflows")
        })?);
    }
    Shape::new(&dims)
}
