//! `SparseReduceSum`: a sparse tensor summed over axes, as a dense tensor.
//!
//! TensorFlow: SparseReduceSum(input_indices, input_values: T, input_shape, reduction_axes: int32) -> output: T, with keep_dims.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::{Coordinates, coordinates};
use crate::array::grads;
use crate::by_number;
use crate::types::NUMBERS;

pub(crate) static OP: OpDef = OpDef {
    name: "SparseReduceSum",
    inputs: &[
        "input_indices: int64",
        "input_values: T",
        "input_shape: int64",
        "reduction_axes: int32",
    ],
    outputs: &["output: T"],
    attrs: &[
        "keep_dims: bool = false",
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
    ],
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", NUMBERS)], build)],
    exactness: Exactness::Rounding,
    examples: &[
        ex(
            "rows",
            &[
                i64s(&[3, 2], &[0, 0, 0, 2, 1, 1]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i64s(&[2], &[2, 3]),
                i32s(&[1], &[1]),
            ],
            &[x(&[2], &[3.0, 3.0])],
        ),
        ex_attrs(
            "columns kept",
            &[("keep_dims", "true")],
            &[
                i64s(&[3, 2], &[0, 0, 0, 2, 1, 2]),
                x(&[3], &[1.0, 2.0, 3.0]),
                i64s(&[2], &[2, 3]),
                i32s(&[1], &[-2]),
            ],
            &[x(&[1, 3], &[1.0, 0.0, 5.0])],
        ),
        ex(
            "no axes",
            &[
                i64s(&[2, 1], &[0, 4]),
                x(&[2], &[1.0, 2.0]),
                i64s(&[1], &[5]),
                i32s(&[0], &[]),
            ],
            &[x(&[5], &[1.0, 0.0, 0.0, 0.0, 2.0])],
        ),
        ex_err(
            "no such axis",
            &[],
            &[
                i64s(&[1, 1], &[0]),
                x(&[1], &[1.0]),
                i64s(&[1], &[5]),
                i32s(&[1], &[1]),
            ],
            Code::InvalidArgument,
            "1",
        ),
    ],
    ..OpDef::BLANK
};

/// Every value gets the gradient of its sum: the one at its indices, those of reduced dimensions set to zero.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (grad, indices, shape) = (g.grad(0)?, g.input(0), g.input(2));
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let rank = g.apply("Size", &[shape])?;
    let all = g.apply("Range", &[zero, rank, one])?;
    let flat = g.ints(&[-1])?;
    let axes = g.apply("Reshape", &[g.input(3), flat])?;
    let axes = g.apply("FloorMod", &[axes, rank])?;
    let axes_like = g.cast(axes, DType::I64)?;
    let with_axes = |g: &mut GradCtx<'_>, others: Output, op: &str| {
        let reduced = g.apply(op, &[axes_like])?;
        let node = g.builder().op("DynamicStitch");
        node.list(&[all, axes]).list(&[others, reduced]).output()
    };
    let kept_shape = with_axes(g, shape, "OnesLike")?;
    let grad = g.apply("Reshape", &[grad, kept_shape])?;
    let ones = g.apply("OnesLike", &[shape])?;
    let is_kept = with_axes(g, ones, "ZerosLike")?;
    let indices = g.apply("Mul", &[indices, is_kept])?;
    let to_values = g.apply("GatherNd", &[grad, indices])?;
    Ok(vec![None, Some(Grad::Dense(to_values)), None, None])
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let coordinates = coordinates(ctx, 0)?;
        let rank = coordinates.rank;
        let mut reduced = vec![false; rank];
        let axes = ctx.ints(3)?;
        for axis in &axes {
            let at = coordinates.shape.axis(*axis).map_err(|_| {
                invalid_argument!(
                    "Invalid reduction dimension {axis}, for input with {rank} dimensions."
                )
            })?;
            reduced[at] = true;
        }
        let dims = (0..rank).filter_map(|axis| match (reduced[axis], keep_dims) {
            (false, _) => Some(coordinates.shape[axis]),
            (true, true) => Some(1),
            (true, false) => None,
        });
        let shape = Shape::new(&dims.collect::<Vec<i64>>())?;
        let mut out = Tensor::zeros(dtype, shape)?;
        let values = ctx.input(1)?;
        by_number!(dtype, T => sum::<T>(&coordinates, &reduced, values, &mut out), else => Err(internal!("sparse tensors of {dtype} are not summed")))?;
        ctx.set(0, out);
        Ok(())
    })
}

fn sum<T: Element + Copy + std::ops::Add<Output = T>>(
    coordinates: &Coordinates,
    reduced: &[bool],
    values: &Tensor,
    out: &mut Tensor,
) -> Result<()> {
    let values = values.slice::<T>()?;
    let dense = out.slice_mut::<T>()?;
    for (index, value) in values.iter().enumerate() {
        let mut place = 0;
        for (axis, at) in coordinates.row(index).iter().enumerate() {
            if !reduced[axis] {
                place = place * coordinates.shape.dim(axis) + *at as usize;
            }
        }
        dense[place] = dense[place] + *value;
    }
    Ok(())
}
