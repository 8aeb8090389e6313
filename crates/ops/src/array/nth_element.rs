//! `NthElement`: the element that would stand at place `n` of each sorted row.
//!
//! TensorFlow: NthElement(input: T, n: int32) -> values: T, counted from the largest if `reverse`.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{Element, Shape, Tensor};

use super::grads;
use crate::by_order;
use crate::math::calculus::{Calculus, first_of};
use crate::math::cast::{comparable, converted};
use crate::types::REAL_NUMBERS;

/// Elements that are worth a thread of their own.
const GRAIN: usize = 4 << 10;

pub(crate) static OP: OpDef = OpDef {
    name: "NthElement",
    inputs: &["input: T", "n: int32"],
    outputs: &["values: T"],
    attrs: &[
        "reverse: bool = false",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "the middle one",
            &[x(&[2, 3], &[1.0, 5.0, 3.0, 9.0, 7.0, 8.0]), i32s(&[], &[1])],
            &[x(&[2], &[3.0, 8.0])],
        ),
        ex_attrs(
            "the largest",
            &[("reverse", "true")],
            &[x(&[3], &[1.0, 5.0, 3.0]), i32s(&[], &[0])],
            &[x(&[], &[5.0])],
        ),
        // In float: at equal elements there is no difference to take, in double.
        ex(
            "one of equals",
            &[f32s(&[4], &[3.0, 1.0, 3.0, 5.0]), i32s(&[], &[2])],
            &[f32s(&[], &[3.0])],
        ),
        ex_err(
            "too far",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[], &[3])],
            Code::InvalidArgument,
            "Input must have last dimension > n = 3",
        ),
        ex_err(
            "negative",
            &[],
            &[f32s(&[3], &[1.0]), i32s(&[], &[-1])],
            Code::InvalidArgument,
            "n must be non-negative but is -1",
        ),
        ex_err(
            "scalar",
            &[],
            &[f32s(&[], &[1.0]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

/// The gradient goes to the element that was picked, shared evenly among its equals.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (input, last) = (g.input(0), grads::int(g, -1)?);
    let grad = g.grad(0)?;
    let grad = g.apply("ExpandDims", &[grad, last])?;
    let picked = g.apply("ExpandDims", &[g.output(0), last])?;
    let chosen = g.apply("Equal", &[picked, input])?;
    let chosen = g.cast(chosen, g.dtype(grad))?;
    let count = g.apply("Sum", &[chosen, last])?;
    let count = g.apply("ExpandDims", &[count, last])?;
    let share = g.div(chosen, count)?;
    let grad = g.mul(share, grad)?;
    first_of(2, grad)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let is_reverse = node.attrs.bool("reverse")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, n) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            n.rank() == 0,
            invalid_argument,
            "N must be scalar but has rank {}",
            n.rank()
        );
        let n = ctx.int(1)?;
        let n = usize::try_from(n)
            .map_err(|_| invalid_argument!("n must be non-negative but is {n}"))?;
        ensure!(
            input.rank() > 0,
            invalid_argument,
            "Input must be at least rank 1 but is rank 0"
        );
        let last = input.rank() - 1;
        let columns = input.shape().dim(last);
        ensure!(
            n < columns,
            invalid_argument,
            "Input must have last dimension > n = {n}"
        );
        let n = if is_reverse { columns - 1 - n } else { n };
        let shape = Shape::new(&input.shape()[..last])?;
        let dtype = input.dtype();
        let input = comparable(ctx.par(), input)?;
        let mut out = Tensor::new(input.dtype(), shape)?;
        by_order!(input.dtype(), T => pick::<T>(ctx.par(), &input, &mut out, columns, n)?, else => {
            return Err(internal!("no order for dtype {dtype}"));
        });
        let out = converted(ctx.par(), &out, dtype)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn pick<T: Real + Element>(
    par: &dyn Par,
    input: &Tensor,
    out: &mut Tensor,
    columns: usize,
    n: usize,
) -> Result<()> {
    let input = input.slice::<T>()?;
    // What is no number is larger than all others: without an order of all, selection may give up.
    let order = |a: &T, b: &T| {
        let nans = || a.is_nan().cmp(&b.is_nan());
        a.partial_cmp(b).unwrap_or_else(nans)
    };
    let grain = GRAIN.div_ceil(columns);
    chunks_mut(par, out.slice_mut::<T>()?, grain, |first, out| {
        let mut row = Vec::with_capacity(columns);
        for (at, out) in (first..).zip(out) {
            row.clear();
            row.extend_from_slice(&input[at * columns..(at + 1) * columns]);
            *out = *row.select_nth_unstable_by(n, order).1;
        }
    });
    Ok(())
}
