//! `ReverseSequence`: the first `seq_lengths[i]` elements of each sequence turned round.
//!
//! TensorFlow: ReverseSequence(input: T, seq_lengths: Tlen) -> output: T, with attrs seq_dim: int, batch_dim: int.

use tensorfleet_graph::example::{ex_attrs, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::moves;
use crate::types::{INDEX, VALUES};

const ROWS: &[(&str, &str)] = &[("seq_dim", "1")];

pub(crate) static OP: OpDef = OpDef {
    name: "ReverseSequence",
    inputs: &["input: T", "seq_lengths: Tlen"],
    outputs: &["output: T"],
    attrs: &[
        "seq_dim: int",
        "batch_dim: int = 0",
        "T: type",
        "Tlen: {int32, int64} = DT_INT64",
    ],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", VALUES), ("Tlen", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "rows",
            ROWS,
            &[
                x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                i64s(&[2], &[2, 3]),
            ],
            &[x(&[2, 3], &[2.0, 1.0, 3.0, 6.0, 5.0, 4.0])],
        ),
        ex_attrs(
            "columns of pairs",
            &[("seq_dim", "0"), ("batch_dim", "1")],
            &[
                f32s(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                i32s(&[2], &[1, 2]),
            ],
            &[f32s(&[2, 2, 2], &[1.0, 2.0, 7.0, 8.0, 5.0, 6.0, 3.0, 4.0])],
        ),
        ex_attrs(
            "strings and a length of zero",
            ROWS,
            &[strs(&[1, 2], &["a", "b"]), i32s(&[1], &[0])],
            &[strs(&[1, 2], &["a", "b"])],
        ),
        ex_err(
            "too long",
            ROWS,
            &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[3])],
            Code::InvalidArgument,
            "seq_lens(0) > input.dims(1)",
        ),
        ex_err(
            "negative",
            ROWS,
            &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[-1])],
            Code::InvalidArgument,
            "seq_lens(0) < 0",
        ),
        ex_err(
            "number of lengths",
            ROWS,
            &[f32s(&[1, 2], &[1.0]), i32s(&[2], &[1, 1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "one dimension for both",
            &[("seq_dim", "0")],
            &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[1])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, lengths) = (g.grad(0)?, g.input(1));
    let (seq_dim, batch_dim) = (g.attr("seq_dim")?, g.attr("batch_dim")?);
    let node = g.builder().op("ReverseSequence").input(grad).input(lengths);
    let node = node.attr("seq_dim", seq_dim).attr("batch_dim", batch_dim);
    let grad = node.output()?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let seq_dim = node.attrs.int("seq_dim")?;
    let batch_dim = node.attrs.int("batch_dim")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (seq_dim, batch_dim) = check(ctx, seq_dim, batch_dim)?;
        let lengths = ctx.ints(1)?;
        let mut output = ctx.input(0)?.clone();
        for (batch, length) in lengths
            .iter()
            .enumerate()
            .filter(|(_, length)| **length > 1)
        {
            turn(
                ctx,
                &mut output,
                (seq_dim, *length as usize),
                (batch_dim, batch),
            )?;
        }
        ctx.set(0, output);
        Ok(())
    })
}

/// Writes one sequence of the input backwards to the output.
fn turn(
    ctx: &KernelCtx<'_>,
    output: &mut Tensor,
    (seq_dim, length): (usize, usize),
    (batch_dim, batch): (usize, usize),
) -> Result<()> {
    let input = ctx.input(0)?;
    let dims = moves::extents(input.shape());
    if input.is_empty() {
        return Ok(());
    }
    let (mut begin, mut sizes) = (vec![0; dims.len()], dims.to_vec());
    let mut steps = vec![1; dims.len()];
    (begin[batch_dim], sizes[batch_dim], sizes[seq_dim]) = (batch, 1, length);
    let forward = View::sliced(&dims, &begin, &steps, &sizes);
    (begin[seq_dim], steps[seq_dim]) = (length - 1, -1);
    let backward = View::sliced(&dims, &begin, &steps, &sizes);
    let shape = input
        .shape()
        .with_dim(batch_dim, 1)?
        .with_dim(seq_dim, length as i64)?;
    let turned = moves::copy_view(ctx.par(), input, &backward, shape)?;
    moves::paste_view(&turned, &forward, output)
}

fn check(ctx: &KernelCtx<'_>, seq_dim: i64, batch_dim: i64) -> Result<(usize, usize)> {
    let (input, lengths) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
    if lengths.rank() != 1 {
        return Err(invalid_argument!(
            "seq_lens input must be 1-dim, not {}",
            lengths.rank()
        ));
    }
    let rank = input.rank() as i64;
    for (name, dim) in [("seq_dim", seq_dim), ("batch_dim", batch_dim)] {
        if dim < 0 {
            return Err(invalid_argument!("Invalid {name} {dim}"));
        }
        if dim >= rank {
            return Err(invalid_argument!(
                "{name} must be < input rank ( {dim} vs. {rank})"
            ));
        }
    }
    if seq_dim == batch_dim {
        return Err(invalid_argument!("batch_dim == seq_dim == {seq_dim}"));
    }
    let (seq_dim, batch_dim) = (seq_dim as usize, batch_dim as usize);
    if lengths[0] != input[batch_dim] {
        return Err(invalid_argument!(
            "Length of seq_lengths != input.dims({batch_dim}), ({} vs. {})",
            lengths[0],
            input[batch_dim]
        ));
    }
    for (index, length) in ctx.ints(1)?.iter().enumerate() {
        if *length < 0 {
            return Err(invalid_argument!("seq_lens({index}) < 0"));
        }
        if *length > input[seq_dim] {
            return Err(invalid_argument!(
                "seq_lens({index}) > input.dims({seq_dim})"
            ));
        }
    }
    Ok((seq_dim, batch_dim))
}
