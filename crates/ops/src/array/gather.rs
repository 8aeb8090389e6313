//! `GatherV2`, `Gather`: rows of a tensor by index along an axis.
//!
//! TensorFlow: GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> output: Tparams, with attr
//! batch_dims: int; Gather(params, indices) is the same along axis 0. The result has the shape
//! params[..axis] + indices[batch_dims..] + params[axis + 1..].

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s, i64s, of, strs, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::{BadIndex, Gather};
use tensorfleet_status::{Code, Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor};

use super::gather_grad;
use super::moves::{self, RowsError};
use crate::types::MOVABLE;

const INDICES: &[DType] = &[DType::I16, DType::I32, DType::I64];

const GATHER: OpDef = OpDef {
    outputs: &["output: Tparams"],
    infer,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const TABLE: Lit = x(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Gather",
        inputs: &["params: Tparams", "indices: Tindices"],
        attrs: &[
            "validate_indices: bool = true",
            "Tparams: type",
            "Tindices: {int32, int64}",
        ],
        gradient: Gradient::Rule(gather_grad::rows),
        kernels: &[cpu(&[("Tparams", MOVABLE), ("Tindices", INDICES)], build)],
        examples: &[
            ex(
                "rows",
                &[TABLE, i32s(&[2], &[2, 0])],
                &[x(&[2, 2], &[5.0, 6.0, 1.0, 2.0])],
            ),
            ex_err(
                "index",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[1], &[2])],
                Code::InvalidArgument,
                "indices[0] = 2 is not in [0, 2)",
            ),
        ],
        ..GATHER
    },
    OpDef {
        name: "GatherV2",
        inputs: &["params: Tparams", "indices: Tindices", "axis: Taxis"],
        attrs: &[
            "batch_dims: int = 0",
            "Tparams: type",
            "Tindices: {int16, int32, int64}",
            "Taxis: {int32, int64}",
        ],
        gradient: Gradient::Rule(gather_grad::along_axis),
        kernels: &[cpu(&[("Tparams", MOVABLE), ("Tindices", INDICES)], build)],
        examples: &[
            ex(
                "rows",
                &[TABLE, i32s(&[1, 2], &[2, 0]), i32s(&[], &[0])],
                &[x(&[1, 2, 2], &[5.0, 6.0, 1.0, 2.0])],
            ),
            ex(
                "columns",
                &[TABLE, i64s(&[1], &[1]), i64s(&[], &[-1])],
                &[x(&[3, 1], &[2.0, 4.0, 6.0])],
            ),
            ex(
                "one of strings",
                &[
                    strs(&[2], &["a", "b"]),
                    of(DType::I16, &[], &[1.0]),
                    i32s(&[], &[0]),
                ],
                &[strs(&[], &["b"])],
            ),
            ex_attrs(
                "in batches",
                &[("batch_dims", "1")],
                &[
                    f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
                    i32s(&[2, 2], &[0, 2, 1, 1]),
                    i32s(&[], &[1]),
                ],
                &[f32s(&[2, 2], &[1.0, 3.0, 5.0, 5.0])],
            ),
            ex_attrs(
                "in batches, counted from behind",
                &[("batch_dims", "-1")],
                &[
                    x(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[2, 1], &[1, 0]),
                    i32s(&[], &[1]),
                ],
                &[x(&[2, 1, 1], &[2.0, 3.0])],
            ),
            ex(
                "no indices",
                &[f32s(&[0, 3], &[]), i32s(&[0], &[]), i32s(&[], &[0])],
                &[f32s(&[0, 3], &[])],
            ),
            ex(
                "empty rows",
                &[f32s(&[3, 0], &[]), i32s(&[1], &[7]), i32s(&[], &[0])],
                &[f32s(&[1, 0], &[])],
            ),
            ex_err(
                "index",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[2, 1], &[0, 2]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "indices[1,0] = 2 is not in [0, 2)",
            ),
            ex_err(
                "negative",
                &[],
                &[f32s(&[2], &[1.0]), i64s(&[], &[-1]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "indices = -1 is not in [0, 2)",
            ),
            ex_err(
                "scalar",
                &[],
                &[f32s(&[], &[1.0]), i32s(&[], &[0]), i32s(&[], &[0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "axis",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[], &[0]), i32s(&[], &[1])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "batches differ",
                &[("batch_dims", "1")],
                &[f32s(&[2, 1], &[1.0]), i32s(&[1], &[0]), i32s(&[], &[1])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..GATHER
    },
];

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let batch_dims = batch_dims(ctx.attrs())?;
    let axis = match (ctx.num_inputs(), ctx.constant_ints(2).as_deref()) {
        (2, _) => 0,
        (_, Some([axis])) => *axis,
        _ => return Ok(()),
    };
    if let (Some(params), Some(indices)) = (ctx.input(0).dims(), ctx.input(1).dims())
        && let Ok(place) = Place::new(params.len(), indices.len(), axis, batch_dims)
    {
        ctx.set(0, PartialShape::new(&place.dims(params, indices)));
    }
    Ok(())
}

fn batch_dims(attrs: &tensorfleet_kernel::Attrs) -> Result<i64> {
    match attrs.get("batch_dims") {
        Some(_) => attrs.int("batch_dims"),
        None => Ok(0),
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let batch_dims = batch_dims(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let output = gather(ctx, batch_dims)?;
        ctx.set(0, output);
        Ok(())
    })
}

fn gather(ctx: &KernelCtx<'_>, batch_dims: i64) -> Result<Tensor> {
    let (params, indices) = (ctx.input(0)?, ctx.input(1)?);
    let axis = if ctx.num_inputs() > 2 {
        if ctx.input(2)?.rank() != 0 {
            return Err(invalid_argument!("axis must be scalar"));
        }
        ctx.int(2)?
    } else {
        0
    };
    gather_rows(ctx, params, indices, axis, batch_dims)
}

/// Rows of `params` along `axis`, for other gathering ops too.
pub(crate) fn gather_rows(
    ctx: &KernelCtx<'_>,
    params: &Tensor,
    indices: &Tensor,
    axis: i64,
    batch_dims: i64,
) -> Result<Tensor> {
    let place = Place::new(params.rank(), indices.rank(), axis, batch_dims)?;
    for i in 0..place.batch_dims {
        let (of_params, of_indices) = (params.shape()[i], indices.shape()[i]);
        if of_params != of_indices {
            return Err(invalid_argument!(
                "params.shape[{i}]: {of_params} should be equal to indices.shape[{i}]: {of_indices}"
            ));
        }
    }
    let shape = Shape::new(&place.dims(params.shape(), indices.shape()))?;
    let gather = place.gather(params.shape(), indices.shape());
    let mut out = Tensor::new(params.dtype(), shape)?;
    if out.is_empty() {
        return Ok(out);
    }
    let gathered = match indices.dtype() {
        DType::I64 => moves::gather(ctx.par(), gather, params, indices.slice::<i64>()?, &mut out),
        DType::I32 => moves::gather(ctx.par(), gather, params, indices.slice::<i32>()?, &mut out),
        _ => {
            let indices = indices.slice::<i16>()?.iter();
            let wide: Vec<i32> = indices.map(|index| i32::from(*index)).collect();
            moves::gather(ctx.par(), gather, params, &wide, &mut out)
        }
    };
    match gathered {
        Ok(()) => Ok(out),
        Err(RowsError::Index(bad)) => Err(bad_index("indices", indices.shape(), bad, gather.limit)),
        Err(RowsError::Status(status)) => Err(status),
    }
}

/// The error for a bad index: `indices[1,0] = 2 is not in [0, 2)`.
#[cold]
pub(crate) fn bad_index(name: &str, shape: &Shape, bad: BadIndex, limit: usize) -> Status {
    let place = coordinates(shape, bad.position);
    invalid_argument!("{name}{place} = {} is not in [0, {limit})", bad.value)
}

/// `[1,0]` for a position in a tensor of this shape; nothing for a scalar.
pub(crate) fn coordinates(shape: &Shape, position: usize) -> String {
    if shape.rank() == 0 {
        return String::new();
    }
    let mut rest = position;
    let mut indices: Vec<String> = Vec::new();
    for dim in shape.iter().rev() {
        let extent = (*dim as usize).max(1);
        indices.push((rest % extent).to_string());
        rest /= extent;
    }
    indices.reverse();
    format!("[{}]", indices.join(","))
}

/// Axis and batch dimensions, checked and counted from the front.
struct Place {
    axis: usize,
    batch_dims: usize,
}

impl Place {
    fn new(params: usize, indices: usize, axis: i64, batch_dims: i64) -> Result<Place> {
        let (rank, index_rank) = (params as i64, indices as i64);
        if rank == 0 {
            return Err(invalid_argument!("params must be at least 1 dimensional"));
        }
        if axis < -rank || axis >= rank {
            return Err(invalid_argument!(
                "Expected axis in the range [{}, {rank}), but got {axis}",
                -rank
            ));
        }
        if batch_dims < -index_rank || batch_dims > index_rank {
            return Err(invalid_argument!(
                "Expected batch_dims in the range [{}, {index_rank}], but got {batch_dims}",
                -index_rank
            ));
        }
        let axis = if axis < 0 { axis + rank } else { axis };
        let batch_dims = if batch_dims < 0 {
            batch_dims + index_rank
        } else {
            batch_dims
        };
        if batch_dims >= rank {
            return Err(invalid_argument!(
                "batch_dims ({batch_dims}) must be less than rank(params) ({rank})."
            ));
        }
        if axis < batch_dims {
            return Err(invalid_argument!(
                "batch_dims ({batch_dims}) must be less than or equal to axis ({axis})."
            ));
        }
        Ok(Place {
            axis: axis as usize,
            batch_dims: batch_dims as usize,
        })
    }

    fn dims(&self, params: &[i64], indices: &[i64]) -> Vec<i64> {
        let mut dims = params[..self.axis].to_vec();
        dims.extend_from_slice(&indices[self.batch_dims..]);
        dims.extend_from_slice(&params[self.axis + 1..]);
        dims
    }

    fn gather(&self, params: &Shape, indices: &Shape) -> Gather {
        Gather {
            batch: params.elements_in(0..self.batch_dims),
            outer: params.elements_in(self.batch_dims..self.axis),
            limit: params.dim(self.axis),
            inner: params.elements_in(self.axis + 1..params.rank()),
            count: indices.elements_in(self.batch_dims..indices.rank()),
        }
    }
}
