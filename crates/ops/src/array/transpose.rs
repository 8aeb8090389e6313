//! `Transpose`, `ConjugateTranspose`: dimensions in another order.
//!
//! TensorFlow: Transpose(x: T, perm: Tperm) -> y: T; ConjugateTranspose likewise, of complex numbers the
//! conjugates. Negative entries of `perm` count from behind.

use tensorfleet_graph::example::{Lit, c64s, ex, ex_err, f32s, i32s, i64s, ramp, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{Complex32, Complex64, DType, Dims, PartialShape, Shape, Tensor};

use super::moves::{self, Extents};
use crate::types::{INDEX, MOVABLE};

const TRANSPOSE: OpDef = OpDef {
    inputs: &["x: T", "perm: Tperm"],
    outputs: &["y: T"],
    attrs: &["T: type", "Tperm: {int32, int64} = DT_INT32"],
    infer,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
const TURNED: Lit = x(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ConjugateTranspose",
        gradient: Gradient::Rule(gradient_conjugate),
        kernels: &[cpu(&[("T", MOVABLE), ("Tperm", INDEX)], build_conjugate)],
        examples: &[
            ex(
                "real numbers",
                &[f32s(&[1, 2], &[1.0, 2.0]), i32s(&[2], &[1, 0])],
                &[f32s(&[2, 1], &[1.0, 2.0])],
            ),
            ex(
                "complex",
                &[
                    c64s(&[1, 2], &[(1.0, 2.0), (3.0, -4.0)]),
                    i32s(&[2], &[1, 0]),
                ],
                &[c64s(&[2, 1], &[(1.0, -2.0), (3.0, 4.0)])],
            ),
        ],
        ..TRANSPOSE
    },
    OpDef {
        name: "Transpose",
        gradient: Gradient::Rule(gradient_plain),
        kernels: &[cpu(&[("T", MOVABLE), ("Tperm", INDEX)], build_plain)],
        examples: &[
            ex("matrix", &[MATRIX, i32s(&[2], &[1, 0])], &[TURNED]),
            ex(
                "from behind",
                &[ramp(&[2, 1, 3], 0.0, 1.0), i64s(&[3], &[-1, 0, 1])],
                &[x(&[3, 2, 1], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0])],
            ),
            ex(
                "nothing moves",
                &[strs(&[1, 2], &["a", "b"]), i32s(&[2], &[1, 0])],
                &[strs(&[2, 1], &["a", "b"])],
            ),
            ex(
                "scalar",
                &[f32s(&[], &[1.0]), i32s(&[0], &[])],
                &[f32s(&[], &[1.0])],
            ),
            ex(
                "empty",
                &[f32s(&[0, 2], &[]), i32s(&[2], &[1, 0])],
                &[f32s(&[2, 0], &[])],
            ),
            ex_err(
                "twice",
                &[],
                &[f32s(&[1, 2], &[1.0]), i32s(&[2], &[0, 0])],
                Code::InvalidArgument,
                "1 is missing from {0,0}",
            ),
            ex_err(
                "out of range",
                &[],
                &[f32s(&[1, 2], &[1.0]), i32s(&[2], &[2, 0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "length",
                &[],
                &[f32s(&[1, 2], &[1.0]), i32s(&[1], &[0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..TRANSPOSE
    },
];

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = match (ctx.input(0).dims(), ctx.constant_ints(1)) {
        (Some(dims), Some(perm)) => {
            let order = order(&perm, dims.len())?;
            PartialShape::new(&order.iter().map(|dim| dims[*dim]).collect::<Dims>())
        }
        (Some(dims), None) => PartialShape::of_rank(dims.len()),
        (None, _) => match ctx.shape_from(1).rank() {
            Some(rank) => PartialShape::of_rank(rank),
            None => PartialShape::unknown(),
        },
    };
    ctx.set(0, shape);
    Ok(())
}

fn gradient_plain(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    gradient(g, "Transpose")
}

fn gradient_conjugate(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    gradient(g, "ConjugateTranspose")
}

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let perm = front_counted(g)?;
    let back = g.apply("InvertPermutation", &[perm])?;
    let grad = g.apply(op, &[grad, back])?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

/// The permutation; entries of a constant one that count from behind are made to count from the front.
fn front_counted(g: &mut GradCtx<'_>) -> Result<Output> {
    let perm = g.input(1);
    let node = g.builder().graph().node(perm.node);
    let value = match node.op_name() {
        "Const" => node.attrs.tensor("value")?.clone(),
        _ => return Ok(perm),
    };
    let rank = value.elements();
    let front = if let Ok(values) = value.slice::<i32>() {
        let front = values.iter().map(|dim| dim.rem_euclid(rank as i32));
        Tensor::vector(&front.collect::<Vec<_>>())
    } else {
        let front = value
            .slice::<i64>()?
            .iter()
            .map(|dim| dim.rem_euclid(rank as i64));
        Tensor::vector(&front.collect::<Vec<_>>())
    };
    g.builder().constant(front)
}

fn build_plain(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let y = transpose(ctx)?;
        ctx.set(0, y);
        Ok(())
    })
}

fn build_conjugate(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let mut y = transpose(ctx)?;
        conjugate(ctx.par(), &mut y)?;
        ctx.set(0, y);
        Ok(())
    })
}

fn conjugate(par: &dyn Par, y: &mut Tensor) -> Result<()> {
    match y.dtype() {
        DType::C64 => chunks_mut(par, y.slice_mut::<Complex32>()?, 16 * 1024, |_, chunk| {
            chunk.iter_mut().for_each(|value| value.im = -value.im);
        }),
        DType::C128 => chunks_mut(par, y.slice_mut::<Complex64>()?, 16 * 1024, |_, chunk| {
            chunk.iter_mut().for_each(|value| value.im = -value.im);
        }),
        _ => {}
    }
    Ok(())
}

fn transpose(ctx: &mut KernelCtx<'_>) -> Result<Tensor> {
    let (x, perm) = (ctx.input(0)?, ctx.input(1)?);
    if perm.rank() != 1 {
        return Err(invalid_argument!(
            "perm must be rank 1, got shape {}",
            perm.shape()
        ));
    }
    let order = order(&ctx.ints(1)?, x.rank())?;
    let dims = order.iter().map(|dim| x.shape()[*dim]).collect::<Dims>();
    let shape = Shape::new(&dims)?;
    // Without regard to dimensions of extent one, does anything move?
    let moving = order.iter().filter(|dim| x.shape()[**dim] != 1);
    if shape.elements() <= 1 || moving.is_sorted() {
        return ctx.take(0)?.reshaped(shape);
    }
    let view = View::transposed(&moves::extents(x.shape()), &order);
    moves::copy_view(ctx.par(), x, &view, shape)
}

/// `perm` as dimensions, each of them once.
fn order(perm: &[i64], rank: usize) -> Result<Extents> {
    if perm.len() != rank {
        return Err(invalid_argument!(
            "transpose expects a vector of size {rank}. But input(1) is a vector of size {}",
            perm.len()
        ));
    }
    let mut seen = vec![false; rank];
    let mut order = Extents::new();
    for entry in perm {
        let dim = if *entry < 0 {
            entry + rank as i64
        } else {
            *entry
        };
        match usize::try_from(dim).ok().filter(|dim| *dim < rank) {
            Some(dim) => {
                seen[dim] = true;
                order.push(dim);
            }
            None => {
                return Err(invalid_argument!("{entry} is out of range [0 .. {rank})"));
            }
        }
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        let perm: Vec<String> = perm.iter().map(i64::to_string).collect();
        return Err(invalid_argument!(
            "{missing} is missing from {{{}}}.",
            perm.join(",")
        ));
    }
    Ok(order)
}
