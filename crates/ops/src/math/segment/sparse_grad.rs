//! Gradients of the sparse segment ops, for the whole table or, in the `V2` forms, for the picked rows only.
//!
//! TensorFlow: Op(grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32) -> output: T; V2 calls the last input
//! dense_output_dim0 and adds sorted_unique_indices: Tidx. Without indices all is zero, where TensorFlow leaves memory as it was.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, i32s, of, x};
use tensorfleet_graph::{Exactness, Gradient, KernelDef, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::check_indices;
use tensorfleet_math::num::Float;
use tensorfleet_math::segment::{self, Segment};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::sparse::picked;
use crate::by_float;
use crate::math::elementwise::{input_dtype, no_function};
use crate::room::filled;
use crate::types::{FLOATS, INDEX};

const GRAD: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

const fn kernels(build: fn(&NodeInfo) -> Result<AnyKernel>) -> KernelDef {
    cpu(
        &[("T", FLOATS), ("Tidx", INDEX), ("Tsegmentids", INDEX)],
        build,
    )
}

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "SparseSegmentSumGrad",
        kernels: &[kernels(|node| build(node, Segment::Sum))],
        examples: &[
            ex(
                "rows of their segments",
                &[
                    x(&[3, 2], GRAD),
                    i32s(&[4], &[0, 3, 1, 3]),
                    i32s(&[4], &[0, 0, 2, 2]),
                    i32s(&[], &[4]),
                ],
                &[x(&[4, 2], &[1.0, 2.0, 5.0, 6.0, 0.0, 0.0, 6.0, 8.0])],
            ),
            ex(
                "no rows",
                &[
                    f32s(&[3, 2], GRAD),
                    i32s(&[2], &[4, -1]),
                    i32s(&[2], &[0, 9]),
                    i32s(&[], &[0]),
                ],
                &[f32s(&[0, 2], &[])],
            ),
            ex_err(
                "index out of range",
                &[],
                &[
                    x(&[3, 2], GRAD),
                    i32s(&[1], &[4]),
                    i32s(&[1], &[0]),
                    i32s(&[], &[4]),
                ],
                Code::InvalidArgument,
                "Index 4 out of range [0, 4)",
            ),
            ex_err(
                "segment out of range",
                &[],
                &[
                    x(&[3, 2], GRAD),
                    i32s(&[1], &[0]),
                    i32s(&[1], &[3]),
                    i32s(&[], &[4]),
                ],
                Code::InvalidArgument,
                "Invalid number of segments",
            ),
            ex_err(
                "segment that is not the last out of range",
                &[],
                &[
                    f32s(&[1, 2], &[1.0]),
                    i32s(&[4], &[3, 3, 0, 2]),
                    i32s(&[4], &[0, 1, 2, 0]),
                    i32s(&[], &[4]),
                ],
                Code::InvalidArgument,
                "Segment id 1 out of range [0, 1).",
            ),
            ex_err(
                "no segments",
                &[],
                &[
                    f32s(&[0, 2], &[]),
                    i32s(&[2], &[3, 0]),
                    i32s(&[2], &[0, -1]),
                    i32s(&[], &[4]),
                ],
                Code::InvalidArgument,
                "Segment id 0 out of range [0, 0).",
            ),
        ],
        ..DENSE
    },
    OpDef {
        name: "SparseSegmentMeanGrad",
        kernels: &[kernels(|node| build(node, Segment::Mean))],
        examples: &[ex(
            "divided by the rows of the segment",
            &[
                x(&[3, 2], GRAD),
                i32s(&[3], &[0, 3, 1]),
                i32s(&[3], &[0, 0, 2]),
                i32s(&[], &[4]),
            ],
            &[x(&[4, 2], &[0.5, 1.0, 5.0, 6.0, 0.0, 0.0, 0.5, 1.0])],
        )],
        ..DENSE
    },
    OpDef {
        name: "SparseSegmentSqrtNGrad",
        kernels: &[kernels(|node| build(node, Segment::SqrtN))],
        examples: &[ex_ref(
            "divided by the root of the rows of the segment",
            &[],
            &[
                x(&[3, 2], GRAD),
                i32s(&[3], &[0, 3, 0]),
                i32s(&[3], &[0, 0, 2]),
                i32s(&[], &[4]),
            ],
        )],
        ..DENSE
    },
    OpDef {
        name: "SparseSegmentSumGradV2",
        kernels: &[kernels(|node| build_rows(node, Segment::Sum))],
        examples: &[
            ex(
                "picked rows only",
                &[
                    x(&[3, 2], GRAD),
                    of(DType::I64, &[3], &[3.0, 1.0, 3.0]),
                    i32s(&[3], &[0, 0, 2]),
                    i32s(&[], &[4]),
                ],
                &[
                    x(&[2, 2], &[1.0, 2.0, 6.0, 8.0]),
                    of(DType::I64, &[2], &[1.0, 3.0]),
                ],
            ),
            ex(
                "nothing picked",
                &[
                    x(&[3, 2], GRAD),
                    i32s(&[0], &[]),
                    i32s(&[0], &[]),
                    i32s(&[], &[4]),
                ],
                &[x(&[0, 2], &[]), i32s(&[0], &[])],
            ),
        ],
        ..ROWS
    },
    OpDef {
        name: "SparseSegmentMeanGradV2",
        kernels: &[kernels(|node| build_rows(node, Segment::Mean))],
        examples: &[ex(
            "picked rows only",
            &[
                x(&[3, 2], GRAD),
                i32s(&[3], &[3, 1, 3]),
                i32s(&[3], &[0, 0, 2]),
                i32s(&[], &[4]),
            ],
            &[x(&[2, 2], &[0.5, 1.0, 5.5, 7.0]), i32s(&[2], &[1, 3])],
        )],
        ..ROWS
    },
    OpDef {
        name: "SparseSegmentSqrtNGradV2",
        kernels: &[kernels(|node| build_rows(node, Segment::SqrtN))],
        examples: &[ex_ref(
            "picked rows only",
            &[],
            &[
                x(&[3, 2], GRAD),
                i32s(&[3], &[3, 1, 3]),
                i32s(&[3], &[0, 0, 2]),
                i32s(&[], &[4]),
            ],
        )],
        ..ROWS
    },
];

const DENSE: OpDef = OpDef {
    inputs: &[
        "grad: T",
        "indices: Tidx",
        "segment_ids: Tsegmentids",
        "output_dim0: int32",
    ],
    outputs: &["output: T"],
    attrs: &[
        "T: {bfloat16, half, float, double}",
        "Tidx: {int32, int64} = DT_INT32",
        "Tsegmentids: {int32, int64} = DT_INT32",
    ],
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

const ROWS: OpDef = OpDef {
    inputs: &[
        "grad: T",
        "indices: Tidx",
        "segment_ids: Tsegmentids",
        "dense_output_dim0: int32",
    ],
    outputs: &["output: T", "sorted_unique_indices: Tidx"],
    ..DENSE
};

fn build(node: &NodeInfo, op: Segment) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_float!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        // For no rows TensorFlow does not look at what would go there.
        let is_none = ctx.input(3)?.rank() == 0 && ctx.int(3)? == 0;
        let (indices, ids, rows) = match is_none && ctx.input(0)?.rank() > 0 {
            true => picked(ctx).map(|_| Default::default())?,
            false => checked(ctx)?,
        };
        let out = spread::<T>(ctx, op, &ids, &indices, rows)?;
        ctx.set(0, out);
        Ok(())
    }), else => Err(no_function(&node.op, dtype)))
}

fn build_rows(node: &NodeInfo, op: Segment) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_float!(dtype, T => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (indices, ids, _) = checked(ctx)?;
        let mut unique = indices.clone();
        unique.sort_unstable();
        unique.dedup();
        // Each index is in the sorted list, so the search finds its place.
        let places: Vec<usize> = indices
            .iter()
            .map(|index| unique.partition_point(|other| other < index))
            .collect();
        let out = spread::<T>(ctx, op, &ids, &places, unique.len())?;
        ctx.set(0, out);
        ctx.set(1, unique_indices(&unique, ctx.input(1)?.dtype()));
        Ok(())
    }), else => Err(no_function(&node.op, dtype)))
}

fn unique_indices(unique: &[usize], dtype: DType) -> Tensor {
    match dtype {
        DType::I64 => Tensor::vector(&unique.iter().map(|v| *v as i64).collect::<Vec<_>>()),
        _ => Tensor::vector(&unique.iter().map(|v| *v as i32).collect::<Vec<_>>()),
    }
}

/// Indices, segment ids and the number of rows of the table, all in range.
fn checked(ctx: &KernelCtx<'_>) -> Result<(Vec<usize>, Vec<usize>, usize)> {
    let (grad, rows) = (ctx.input(0)?.shape(), ctx.input(3)?.shape());
    if rows.rank() != 0 {
        return Err(invalid_argument!(
            "output_dim0 should be a scalar, not {rows}"
        ));
    }
    if grad.rank() == 0 {
        return Err(invalid_argument!("grad must be at least rank 1"));
    }
    let rows = ctx.int(3)?;
    let rows = usize::try_from(rows)
        .map_err(|_| invalid_argument!("Expected a non-negative size, got {rows}"))?;
    let (indices, ids) = picked(ctx)?;
    // Like TensorFlow: the last id says how many segments there are, and only then each is looked at.
    let segments = grad.dim(0);
    if ids
        .last()
        .is_some_and(|last| *last as i64 >= segments as i64)
    {
        return Err(invalid_argument!("Invalid number of segments"));
    }
    if let Some(id) = ids.iter().find(|id| **id >= segments) {
        return Err(invalid_argument!(
            "Segment id {} out of range [0, {segments}).",
            *id as i64
        ));
    }
    check_indices(&indices, rows)
        .map_err(|bad| invalid_argument!("Index {} out of range [0, {rows}).", bad.value))?;
    Ok((indices, ids, rows))
}

fn spread<T: Element + Float>(
    ctx: &KernelCtx<'_>,
    op: Segment,
    ids: &[usize],
    indices: &[usize],
    rows: usize,
) -> Result<Tensor> {
    let grad = ctx.input(0)?;
    let shape: Shape = grad.shape().with_dim(0, rows as i64)?;
    let row = shape.elements_in(1..shape.rank());
    let mut counts = filled(0usize, grad.shape().dim(0))?;
    for id in ids {
        counts[*id] += 1;
    }
    let scale = |count: &usize| match op {
        Segment::Mean => 1.0 / (*count).max(1) as f64,
        Segment::SqrtN => 1.0 / ((*count).max(1) as f64).sqrt(),
        _ => 1.0,
    };
    let scales: Vec<T::Acc> = counts
        .iter()
        .map(|count| tensorfleet_math::num::Num::from_f64(scale(count)))
        .collect();
    let mut out = ctx.allocate(T::DTYPE, shape)?;
    let (from, into) = (grad.slice::<T>()?, out.slice_mut::<T>()?);
    segment::spread(ctx.par(), from, &scales, (ids, indices), row, into);
    Ok(out)
}
