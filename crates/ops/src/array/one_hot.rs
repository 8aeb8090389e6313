//! `OneHot`: `on_value` where the index says, `off_value` elsewhere.
//!
//! TensorFlow: OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> output: T, with attr axis: int.
//! An index outside of `0..depth` gives `off_value` throughout.

use tensorfleet_graph::example::{bools, ex, ex_attrs, ex_err, f32s, i32s, i64s, of, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, Word, by_word};

use crate::types::MOVABLE;

const INDICES: &[DType] = &[DType::U8, DType::I8, DType::I32, DType::I64];

pub(crate) static OP: OpDef = OpDef {
    name: "OneHot",
    inputs: &["indices: TI", "depth: int32", "on_value: T", "off_value: T"],
    outputs: &["output: T"],
    attrs: &[
        "axis: int = -1",
        "T: type",
        "TI: {uint8, int8, int32, int64} = DT_INT64",
    ],
    infer,
    gradient: Gradient::Stop("indices are integers"),
    kernels: &[cpu(&[("T", MOVABLE), ("TI", INDICES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "rows",
            &[
                i64s(&[3], &[1, -1, 3]),
                i32s(&[], &[3]),
                x(&[], &[5.0]),
                x(&[], &[2.0]),
            ],
            &[x(&[3, 3], &[2.0, 5.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])],
        ),
        ex_attrs(
            "columns",
            &[("axis", "0")],
            &[
                i32s(&[2], &[1, 0]),
                i32s(&[], &[2]),
                f32s(&[], &[1.0]),
                f32s(&[], &[0.0]),
            ],
            &[f32s(&[2, 2], &[0.0, 1.0, 1.0, 0.0])],
        ),
        ex_attrs(
            "between",
            &[("axis", "1")],
            &[
                of(DType::U8, &[1, 2], &[1.0, 0.0]),
                i32s(&[], &[2]),
                bools(&[], &[true]),
                bools(&[], &[false]),
            ],
            &[bools(&[1, 2, 2], &[false, true, true, false])],
        ),
        ex(
            "scalar",
            &[
                of(DType::I8, &[], &[1.0]),
                i32s(&[], &[2]),
                f32s(&[], &[1.0]),
                f32s(&[], &[0.0]),
            ],
            &[f32s(&[2], &[0.0, 1.0])],
        ),
        ex(
            "no depth",
            &[
                i64s(&[2], &[0, 1]),
                i32s(&[], &[0]),
                f32s(&[], &[1.0]),
                f32s(&[], &[0.0]),
            ],
            &[f32s(&[2, 0], &[])],
        ),
        ex_err(
            "negative depth",
            &[],
            &[
                i64s(&[1], &[0]),
                i32s(&[], &[-2]),
                f32s(&[], &[1.0]),
                f32s(&[], &[0.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "axis",
            &[("axis", "3")],
            &[
                i64s(&[1], &[0]),
                i32s(&[], &[2]),
                f32s(&[], &[1.0]),
                f32s(&[], &[0.0]),
            ],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    if let Some(dims) = ctx.input(0).dims() {
        let axis = place(ctx.attrs().int("axis")?, dims.len())?;
        let depth = match ctx.constant_ints(1).as_deref() {
            Some([depth]) => *depth,
            _ => -1,
        };
        let mut dims = dims.to_vec();
        dims.insert(axis, depth);
        ctx.set(0, PartialShape::new(&dims));
    }
    Ok(())
}

/// Where the new dimension goes.
fn place(axis: i64, rank: usize) -> Result<usize> {
    match axis {
        -1 => Ok(rank),
        axis if axis >= 0 && axis <= rank as i64 => Ok(axis as usize),
        _ => Err(invalid_argument!(
            "Expected axis to be -1 or between [0, {}).  But received: {axis}",
            rank + 1
        )),
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let axis = node.attrs.int("axis")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let indices = ctx.input(0)?;
        let axis = place(axis, indices.rank())?;
        for (index, name) in [(1, "depth"), (2, "on_value"), (3, "off_value")] {
            let shape = ctx.input(index)?.shape();
            if shape.rank() != 0 {
                return Err(invalid_argument!(
                    "{name} must be a scalar, but got: {shape}"
                ));
            }
        }
        let depth = ctx.int(1)?;
        if depth < 0 {
            return Err(invalid_argument!(
                "depth must be non-negative, got: {depth}"
            ));
        }
        let mut dims = indices.shape().to_vec();
        dims.insert(axis, depth);
        let suffix = indices.shape().elements_in(axis..indices.rank());
        let mut output = Tensor::new(ctx.input(2)?.dtype(), Shape::new(&dims)?)?;
        by_word!(output.dtype(), W => write::<W>(ctx, depth as usize, suffix, &mut output)?);
        ctx.set(0, output);
        Ok(())
    })
}

fn write<W: Word>(
    ctx: &KernelCtx<'_>,
    depth: usize,
    suffix: usize,
    output: &mut Tensor,
) -> Result<()> {
    let indices = ctx.input(0)?;
    let ([on], [off]) = (ctx.input(2)?.words::<W>()?, ctx.input(3)?.words::<W>()?) else {
        return Err(internal!("a scalar has not one element"));
    };
    let (out, par) = (output.words_mut::<W>()?, ctx.par());
    match indices.dtype() {
        DType::I64 => {
            movement::one_hot(par, indices.slice::<i64>()?, depth, suffix, (on, off), out);
        }
        DType::I32 => {
            movement::one_hot(par, indices.slice::<i32>()?, depth, suffix, (on, off), out);
        }
        // Narrow indices are rare: widened they need no loops of their own.
        DType::I8 => {
            let wide: Vec<i32> = indices
                .slice::<i8>()?
                .iter()
                .map(|i| i32::from(*i))
                .collect();
            movement::one_hot(par, &wide, depth, suffix, (on, off), out);
        }
        _ => {
            let wide: Vec<i32> = indices
                .slice::<u8>()?
                .iter()
                .map(|i| i32::from(*i))
                .collect();
            movement::one_hot(par, &wide, depth, suffix, (on, off), out);
        }
    }
    Ok(())
}
