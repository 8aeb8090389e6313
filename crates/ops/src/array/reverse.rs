//! `ReverseV2`, `Reverse`: the order of elements turned round in some dimensions.
//!
//! TensorFlow: ReverseV2(tensor: T, axis: Tidx) -> output: T names them; Reverse(tensor: T, dims: bool) -> output: T
//! marks them.

use tensorfleet_graph::example::{Lit, bools, ex, ex_err, f32s, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::View;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::moves;
use crate::types::{INDEX, VALUES};

const REVERSE: OpDef = OpDef {
    outputs: &["output: T"],
    infer: infer::same_as_first,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const MATRIX: Lit = x(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Reverse",
        inputs: &["tensor: T", "dims: bool"],
        attrs: &[
            "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, complex128, string}",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "Reverse")),
        kernels: &[cpu(&[("T", VALUES)], build_marked)],
        examples: &[
            ex(
                "columns",
                &[MATRIX, bools(&[2], &[false, true])],
                &[x(&[2, 3], &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0])],
            ),
            ex(
                "scalar",
                &[f32s(&[], &[1.0]), bools(&[1], &[true])],
                &[f32s(&[], &[1.0])],
            ),
            ex_err(
                "no rows",
                &[],
                &[f32s(&[0, 2], &[]), bools(&[2], &[false, true])],
                Code::InvalidArgument,
                "Invalid input first dimension. Found 0.",
            ),
            ex_err(
                "number of marks",
                &[],
                &[f32s(&[2], &[1.0]), bools(&[2], &[true, false])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..REVERSE
    },
    OpDef {
        name: "ReverseV2",
        inputs: &["tensor: T", "axis: Tidx"],
        attrs: &[
            "Tidx: {int32, int64} = DT_INT32",
            "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, complex128, string}",
        ],
        gradient: Gradient::Rule(|g| gradient(g, "ReverseV2")),
        kernels: &[cpu(&[("T", VALUES), ("Tidx", INDEX)], build_named)],
        examples: &[
            ex(
                "rows",
                &[MATRIX, i32s(&[1], &[0])],
                &[x(&[2, 3], &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0])],
            ),
            ex(
                "all, from behind",
                &[MATRIX, i64s(&[2], &[-1, -2])],
                &[x(&[2, 3], &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0])],
            ),
            ex(
                "strings",
                &[strs(&[2], &["a", "b"]), i32s(&[1], &[0])],
                &[strs(&[2], &["b", "a"])],
            ),
            ex(
                "scalar",
                &[f32s(&[], &[1.0]), i32s(&[0], &[])],
                &[f32s(&[], &[1.0])],
            ),
            ex(
                "empty",
                &[f32s(&[0, 2], &[]), i32s(&[1], &[0])],
                &[f32s(&[0, 2], &[])],
            ),
            ex_err(
                "twice",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[2], &[0, -1])],
                Code::InvalidArgument,
                "axis 0 specified more than once.",
            ),
            ex_err(
                "out of range",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[1], &[1])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..REVERSE
    },
];

fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let grad = g.apply(op, &[grad, g.input(1)])?;
    Ok(vec![Some(Grad::Dense(grad)), None])
}

fn build_marked(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (rank, dims) = (ctx.input(0)?.rank(), ctx.input(1)?);
        // As in TensorFlow the marks do not matter where nothing can change.
        if rank == 0 {
            let tensor = ctx.take(0)?;
            ctx.set(0, tensor);
            return Ok(());
        }
        // TensorFlow's own rule, not that of the op by names.
        ensure!(
            ctx.input(0)?.shape().dim(0) > 0,
            invalid_argument,
            "Invalid input first dimension. Found 0."
        );
        if dims.rank() != 1 || dims.elements() != rank {
            return Err(invalid_argument!(
                "'dims' must have the same number of values as 'input' has dimensions. 'input' has {rank}'dims' has {} values",
                dims.elements()
            ));
        }
        let marks = dims.slice::<bool>()?.to_vec();
        let output = reversed(ctx, &marks)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn build_named(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (rank, axes) = (ctx.input(0)?.rank(), ctx.input(1)?);
        // As in TensorFlow the axes do not matter where nothing can change.
        if rank == 0 || ctx.input(0)?.is_empty() {
            let tensor = ctx.take(0)?;
            ctx.set(0, tensor);
            return Ok(());
        }
        if axes.rank() != 1 {
            return Err(invalid_argument!(
                "'dims' must be 1-dimension, not {}",
                axes.rank()
            ));
        }
        let mut marks = vec![false; rank];
        for (index, axis) in ctx.ints(1)?.iter().enumerate() {
            let front = if *axis < 0 { axis + rank as i64 } else { *axis };
            match usize::try_from(front)
                .ok()
                .and_then(|axis| marks.get_mut(axis))
            {
                Some(mark) if !*mark => *mark = true,
                Some(_) => {
                    return Err(invalid_argument!("axis {front} specified more than once."));
                }
                None => {
                    return Err(invalid_argument!(
                        "'axis'[{index}] = {axis} is out of valid range [0, {}]",
                        rank as i64 - 1
                    ));
                }
            }
        }
        let output = reversed(ctx, &marks)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn reversed(ctx: &mut KernelCtx<'_>, marks: &[bool]) -> Result<Tensor> {
    let tensor = ctx.input(0)?;
    let dims = moves::extents(tensor.shape());
    if !marks.iter().zip(&dims).any(|(mark, dim)| *mark && *dim > 1) {
        return ctx.take(0);
    }
    let view = View::reversed(&dims, marks);
    moves::copy_view(ctx.par(), tensor, &view, tensor.shape().clone())
}
