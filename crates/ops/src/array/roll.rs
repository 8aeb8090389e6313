//! `Roll`: elements shifted along axes; what leaves at one end comes back at the other.
//!
//! TensorFlow: Roll(input: T, shift: Tshift, axis: Taxis) -> output: T. Shifts of one axis named twice add up.

use tensorfleet_graph::example::{Lit, ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};

use super::moves;
use crate::types::{INDEX, MOVABLE};

const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(crate) static OP: OpDef = OpDef {
    name: "Roll",
    inputs: &["input: T", "shift: Tshift", "axis: Taxis"],
    outputs: &["output: T"],
    attrs: &["T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(
        &[("T", MOVABLE), ("Tshift", INDEX), ("Taxis", INDEX)],
        build,
    )],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "both axes",
            &[MATRIX, i32s(&[2], &[1, -1]), i32s(&[2], &[0, 1])],
            &[x(&[2, 3], &[5.0, 6.0, 4.0, 2.0, 3.0, 1.0])],
        ),
        ex(
            "more than once round",
            &[MATRIX, i64s(&[], &[4]), i32s(&[], &[-1])],
            &[x(&[2, 3], &[3.0, 1.0, 2.0, 6.0, 4.0, 5.0])],
        ),
        ex(
            "one axis twice",
            &[
                strs(&[3], &["a", "b", "c"]),
                i32s(&[2], &[1, 1]),
                i64s(&[2], &[0, 0]),
            ],
            &[strs(&[3], &["b", "c", "a"])],
        ),
        ex(
            "empty",
            &[f32s(&[0], &[]), i32s(&[], &[1]), i32s(&[], &[0])],
            &[f32s(&[0], &[])],
        ),
        ex_err(
            "sizes",
            &[],
            &[f32s(&[2], &[1.0]), i32s(&[2], &[1, 1]), i32s(&[1], &[0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "axis",
            &[],
            &[f32s(&[2], &[1.0]), i32s(&[], &[1]), i32s(&[], &[1])],
            Code::InvalidArgument,
            "axis 1 is out of range",
        ),
        ex_err(
            "scalar",
            &[],
            &[f32s(&[], &[1.0]), i32s(&[], &[1]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, shift, axis) = (g.grad(0)?, g.input(1), g.input(2));
    let back = g.apply("Neg", &[shift])?;
    let grad = g.apply("Roll", &[grad, back, axis])?;
    Ok(vec![Some(Grad::Dense(grad)), None, None])
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let shifts = shifts(ctx)?;
        let input = ctx.input(0)?;
        let output = if shifts.iter().all(|shift| *shift == 0) {
            ctx.take(0)?
        } else {
            let extents = moves::extents(input.shape());
            let maps = extents.iter().zip(&shifts).map(|(extent, shift)| {
                let from = extent - shift;
                (from..*extent).chain(0..from).collect()
            });
            let maps: Vec<Vec<usize>> = maps.collect();
            moves::remap(ctx.par(), input, &maps, input.shape().clone())?
        };
        ctx.set(0, output);
        Ok(())
    })
}

/// How far each dimension moves, less than its extent.
fn shifts(ctx: &KernelCtx<'_>) -> Result<Vec<usize>> {
    let (input, shift, axis) = (ctx.input(0)?.shape(), ctx.input(1)?, ctx.input(2)?);
    if input.rank() == 0 {
        return Err(invalid_argument!("input must be 1-D or higher"));
    }
    for (name, tensor) in [("shift", shift), ("axis", axis)] {
        if tensor.rank() > 1 {
            return Err(invalid_argument!(
                "{name} must be a scalar or a 1-D vector. Found: {}",
                tensor.shape()
            ));
        }
    }
    if shift.shape() != axis.shape() {
        return Err(invalid_argument!("shift and axis must have the same size"));
    }
    let rank = input.rank() as i64;
    let mut shifts = vec![0i64; input.rank()];
    for (shift, axis) in ctx.ints(1)?.iter().zip(ctx.ints(2)?) {
        let front = if axis < 0 { axis + rank } else { axis };
        if front < 0 || front >= rank {
            return Err(invalid_argument!("axis {axis} is out of range"));
        }
        let front = front as usize;
        let extent = input[front].max(1);
        shifts[front] = (shifts[front] + shift.rem_euclid(extent)) % extent;
    }
    Ok(shifts.into_iter().map(|shift| shift as usize).collect())
}
