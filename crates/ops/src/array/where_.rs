//! `Where`: the coordinates of the elements that are not zero, in row-major order.
//!
//! TensorFlow: Where(input: T) -> index: int64.

use tensorfleet_graph::example::{bools, c64s, ex, ex_err, i64s, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::{Chosen, coordinates_of};
use tensorfleet_math::par::chunks_mut;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor};

use super::moves;
use crate::by_number;
use crate::types::{COMPLEX, INTEGERS, SINGLE_AND_DOUBLE, dtypes};

/// All plain types but half, which TensorFlow refuses here.
const TYPES: &[DType] = dtypes![
    &[DType::BF16],
    SINGLE_AND_DOUBLE,
    INTEGERS,
    COMPLEX,
    &[DType::Bool]
];

/// Elements that are worth a thread of their own.
const GRAIN: usize = 16 << 10;

pub(crate) static OP: OpDef = OpDef {
    name: "Where",
    inputs: &["input: T"],
    outputs: &["index: int64"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL",
    ],
    infer,
    gradient: Gradient::None("coordinates are integers"),
    kernels: &[cpu(&[("T", TYPES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "bools",
            &[bools(&[2, 2], &[true, false, false, true])],
            &[i64s(&[2, 2], &[0, 0, 1, 1])],
        ),
        ex(
            "numbers",
            &[x(&[4], &[0.0, 3.0, 0.0, 1.0])],
            &[i64s(&[2, 1], &[1, 3])],
        ),
        ex(
            "complex",
            &[c64s(&[3], &[(0.0, 0.0), (0.0, 1.0), (2.0, 0.0)])],
            &[i64s(&[2, 1], &[1, 2])],
        ),
        ex("none", &[bools(&[2], &[false])], &[i64s(&[0, 1], &[])]),
        ex_err(
            "scalar",
            &[],
            &[bools(&[], &[true])],
            Code::InvalidArgument,
            "WhereOp : Unhandled input dimensions: 0",
        ),
        ex("empty", &[bools(&[0, 3], &[])], &[i64s(&[0, 2], &[])]),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let rank = ctx.input(0).rank().map_or(-1, |rank| rank as i64);
    ctx.set(0, PartialShape::new(&[-1, rank]));
    Ok(())
}

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        if input.rank() == 0 {
            return Err(invalid_argument!("WhereOp : Unhandled input dimensions: 0"));
        }
        let index = match input.dtype() {
            DType::Bool => find(ctx, input)?,
            dtype => {
                let mut chosen = ctx.allocate(DType::Bool, input.shape().clone())?;
                by_number!(dtype, T => choose::<T>(ctx, input, &mut chosen)?, else => {
                    return Err(internal!("no zero of dtype {dtype}"));
                });
                find(ctx, &chosen)?
            }
        };
        ctx.set(0, index);
        Ok(())
    })
}

fn choose<T: Element + PartialEq>(
    ctx: &KernelCtx<'_>,
    input: &Tensor,
    chosen: &mut Tensor,
) -> Result<()> {
    let (zero, elements) = (T::default(), input.slice::<T>()?);
    chunks_mut(ctx.par(), chosen.slice_mut()?, GRAIN, |at, chosen| {
        for (chosen, element) in chosen.iter_mut().zip(&elements[at..]) {
            *chosen = *element != zero;
        }
    });
    Ok(())
}

fn find(ctx: &KernelCtx<'_>, chosen: &Tensor) -> Result<Tensor> {
    let (dims, chosen) = (moves::extents(chosen.shape()), chosen.slice::<bool>()?);
    let count = Chosen::count(ctx.par(), chosen);
    let shape = Shape::new(&[count.total() as i64, dims.len() as i64])?;
    let mut index = ctx.allocate(DType::I64, shape)?;
    coordinates_of(ctx.par(), chosen, &count, &dims, index.slice_mut()?);
    Ok(index)
}
