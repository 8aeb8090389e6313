//! `MirrorPad`, `MirrorPadGrad`: a tensor surrounded by its mirror images, and its gradient.
//!
//! TensorFlow: MirrorPad(input: T, paddings: Tpaddings) -> output: T, with attr mode: REFLECT (the edge is the mirror)
//! or SYMMETRIC (the edge is repeated); MirrorPadGrad folds what was copied back onto where it came from.

use tensorfleet_graph::example::{Example, ex_attrs, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::{mirrored, remap_add};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{Element, Shape, Tensor};

use super::moves::{self, Extents};
use super::pad::{padded_shape, paddings};
use crate::by_number;
use crate::types::{INDEX, MOVABLE, NUMBERS};

const MIRROR: OpDef = OpDef {
    inputs: &["input: T", "paddings: Tpaddings"],
    outputs: &["output: T"],
    attrs: &[
        "T: type",
        "Tpaddings: {int32, int64} = DT_INT32",
        "mode: {'REFLECT', 'SYMMETRIC'}",
    ],
    ..OpDef::BLANK
};

const REFLECT: &[(&str, &str)] = &[("mode", "REFLECT")];
const SYMMETRIC: &[(&str, &str)] = &[("mode", "SYMMETRIC")];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "MirrorPad",
        gradient: Gradient::Rule(|g| gradient(g, "MirrorPadGrad")),
        kernels: &[cpu(&[("T", MOVABLE), ("Tpaddings", INDEX)], build_pad)],
        exactness: Exactness::Bits,
        examples: &[
            NOTHING,
            ex_attrs(
                "reflect",
                REFLECT,
                &[x(&[3], &[1.0, 2.0, 3.0]), i32s(&[1, 2], &[2, 1])],
                &[x(&[6], &[3.0, 2.0, 1.0, 2.0, 3.0, 2.0])],
            ),
            ex_attrs(
                "symmetric",
                SYMMETRIC,
                &[
                    x(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[2, 2], &[1, 0, 0, 2]),
                ],
                &[x(
                    &[3, 4],
                    &[1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 1.0, 3.0, 4.0, 4.0, 3.0],
                )],
            ),
            ex_attrs(
                "strings",
                SYMMETRIC,
                &[strs(&[2], &["a", "b"]), i64s(&[1, 2], &[2, 0])],
                &[strs(&[4], &["b", "a", "a", "b"])],
            ),
            ex_attrs(
                "scalar",
                REFLECT,
                &[f32s(&[], &[1.0]), i32s(&[0, 2], &[])],
                &[f32s(&[], &[1.0])],
            ),
            ex_err(
                "too long to reflect",
                REFLECT,
                &[f32s(&[3], &[1.0]), i32s(&[1, 2], &[3, 0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "too long to repeat",
                SYMMETRIC,
                &[f32s(&[3], &[1.0]), i32s(&[1, 2], &[4, 0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..MIRROR
    },
    OpDef {
        name: "MirrorPadGrad",
        gradient: Gradient::Rule(|g| gradient(g, "MirrorPad")),
        kernels: &[cpu(&[("T", NUMBERS), ("Tpaddings", INDEX)], build_grad)],
        examples: &[
            ex_attrs(
                "symmetric",
                SYMMETRIC,
                &[x(&[4], &[1.0, 2.0, 3.0, 4.0]), i32s(&[1, 2], &[1, 0])],
                &[x(&[3], &[3.0, 3.0, 4.0])],
            ),
            ex_attrs(
                "reflect",
                REFLECT,
                &[
                    x(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                    i32s(&[2, 2], &[0, 0, 1, 1]),
                ],
                &[x(&[2, 2], &[6.0, 4.0, 14.0, 12.0])],
            ),
            ex_err(
                "too much",
                REFLECT,
                &[f32s(&[4], &[1.0]), i32s(&[1, 2], &[3, 2])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "too long",
                REFLECT,
                &[f32s(&[4], &[1.0]), i32s(&[1, 2], &[1, 2])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..MIRROR
    },
];

/// Nothing has no mirror, also if none is asked for.
const NOTHING: Example = ex_err(
    "nothing",
    REFLECT,
    &[f32s(&[0], &[]), i32s(&[1, 2], &[0, 0])],
    Code::InvalidArgument,
    "",
);

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (grad, paddings, mode) = (g.grad(0)?, g.input(1), g.attr("mode")?);
    let node = g.builder().op(op).input(grad).input(paddings);
    let grad = node.attr("mode", mode).output()?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build_pad(node: &NodeInfo) -> Result<AnyKernel> {
    let symmetric = node.attrs.str("mode")? == "SYMMETRIC";
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let paddings = paddings(ctx)?;
        let input = ctx.input(0)?;
        let maps = maps(&moves::extents(input.shape()), &paddings, symmetric, "")?;
        let shape = padded_shape(input.shape(), &paddings)?;
        let output = moves::remap(ctx.par(), input, &maps, shape)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let symmetric = node.attrs.str("mode")? == "SYMMETRIC";
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let paddings = paddings(ctx)?;
        let input = ctx.input(0)?;
        let mut dims = Extents::new();
        for (dim, (before, behind)) in input.shape().iter().zip(&paddings) {
            let total = before.saturating_add(*behind);
            match (*dim as usize).checked_sub(total).filter(|rest| *rest > 0) {
                Some(rest) => dims.push(rest),
                None => {
                    return Err(invalid_argument!(
                        "Total paddings must be less than the input dimension size: {total} was not less than {dim}"
                    ));
                }
            }
        }
        let maps = maps(&dims, &paddings, symmetric, "output ")?;
        let sizes: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
        let mut output = Tensor::zeros(input.dtype(), Shape::new(&sizes)?)?;
        by_number!(input.dtype(), T => fold::<T>(input, &dims, &maps, &mut output)?, else => {
            return Err(internal!("no sum of dtype {}", input.dtype()));
        });
        ctx.set(0, output);
        Ok(())
    })
}

/// Where each element of the padded dimensions comes from.
fn maps(
    dims: &[usize],
    paddings: &[(usize, usize)],
    symmetric: bool,
    what: &str,
) -> Result<Vec<Vec<usize>>> {
    let mut maps = Vec::with_capacity(dims.len());
    for (dim, (before, behind)) in dims.iter().zip(paddings) {
        let longest = *before.max(behind);
        if symmetric && longest > *dim {
            return Err(invalid_argument!(
                "paddings must be no greater than the {what}dimension size: {before}, {behind} greater than {dim}"
            ));
        }
        if !symmetric && longest >= *dim {
            return Err(invalid_argument!(
                "paddings must be less than the {what}dimension size: {before}, {behind} not less than {dim}"
            ));
        }
        maps.push(mirrored(*dim, (*before, *behind), symmetric));
    }
    Ok(maps)
}

fn fold<T: Num + Element>(
    input: &Tensor,
    dims: &[usize],
    maps: &[Vec<usize>],
    output: &mut Tensor,
) -> Result<()> {
    let input: Vec<Sum<T>> = input
        .slice::<T>()?
        .iter()
        .map(|value| Sum(*value))
        .collect();
    let mut sums = vec![Sum(T::ZERO); output.elements()];
    remap_add(&input, dims, maps, &mut sums);
    for (output, sum) in output.slice_mut::<T>()?.iter_mut().zip(sums) {
        *output = sum.0;
    }
    Ok(())
}

/// A number with the wrapping sum of its dtype.
#[derive(Clone, Copy)]
struct Sum<T>(T);

impl<T: Num> std::ops::AddAssign for Sum<T> {
    fn add_assign(&mut self, other: Sum<T>) {
        self.0 = self.0.add(other.0);
    }
}
