//! `SparseSegmentSum`, `SparseSegmentMean`, `SparseSegmentSqrtN`, plain and `WithNumSegments`: rows picked from a table by index
//! and combined by segment.
//!
//! TensorFlow: Op(data: T, indices: Tidx, segment_ids: Tsegmentids[, num_segments: Tnumsegments]) -> output: T, attr
//! sparse_gradient. Segment ids ascend; without num_segments their last says how many there are. A segment without rows is 0.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, KernelDef, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement::check_indices;
use tensorfleet_math::segment::{self, Rows, Segment, SegmentElement};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::Element;

use super::{count_sorted, positions};
use crate::by_real;
use crate::math::elementwise::{input_dtype, no_function};
use crate::types::{FLOATS, INDEX, REAL_NUMBERS};

const REAL: &str =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
const FLOAT: &str = "T: {bfloat16, half, float, double}";
const INDICES: &str = "Tidx: {int32, int64} = DT_INT32";
const IDS: &str = "Tsegmentids: {int32, int64} = DT_INT32";
const COUNT: &str = "Tnumsegments: {int32, int64} = DT_INT32";
const SPARSE: &str = "sparse_gradient: bool = false";

const SUM: &[KernelDef] = &[cpu(
    &[("T", REAL_NUMBERS), ("Tidx", INDEX), ("Tsegmentids", INDEX)],
    |node| build(node, Segment::Sum),
)];
const MEAN: &[KernelDef] = &[cpu(
    &[("T", FLOATS), ("Tidx", INDEX), ("Tsegmentids", INDEX)],
    |node| build(node, Segment::Mean),
)];
const SQRT_N: &[KernelDef] = &[cpu(
    &[("T", FLOATS), ("Tidx", INDEX), ("Tsegmentids", INDEX)],
    |node| build(node, Segment::SqrtN),
)];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "SparseSegmentSum",
        attrs: &[REAL, INDICES, IDS, SPARSE],
        gradient: Gradient::Rule(|g| gradient(g, "SparseSegmentSumGrad")),
        kernels: SUM,
        examples: &[
            ex(
                "two segments",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[3], &[0, 3, 1]),
                    i32s(&[3], &[0, 0, 1]),
                ],
                &[x(&[2, 2], &[8.0, 10.0, 3.0, 4.0])],
            ),
            ex_attrs(
                "with a gap, long indices, sparse gradient",
                &[("sparse_gradient", "true")],
                &[
                    ramp(&[3, 1], 1.0, 1.0),
                    i64s(&[3], &[2, 2, 0]),
                    i64s(&[3], &[0, 0, 2]),
                ],
                &[x(&[3, 1], &[6.0, 0.0, 1.0])],
            ),
            ex(
                "nothing picked",
                &[ramp(&[2, 2], 1.0, 1.0), i32s(&[0], &[]), i32s(&[0], &[])],
                &[x(&[0, 2], &[])],
            ),
            ex_err(
                "index out of range",
                &[],
                &[
                    ramp(&[4], 1.0, 1.0),
                    i32s(&[2], &[0, 4]),
                    i32s(&[2], &[0, 0]),
                ],
                Code::InvalidArgument,
                "indices[1] == 4 out of range [0, 4)",
            ),
            ex_err(
                "segments not sorted",
                &[],
                &[
                    ramp(&[4], 1.0, 1.0),
                    i32s(&[3], &[0]),
                    i32s(&[3], &[0, 1, 0]),
                ],
                Code::InvalidArgument,
                "segment ids are not increasing",
            ),
            ex_err(
                "another number of segment ids",
                &[],
                &[ramp(&[4], 1.0, 1.0), i32s(&[2], &[0]), i32s(&[3], &[0])],
                Code::InvalidArgument,
                "segment_ids and indices should have same size",
            ),
        ],
        ..PLAIN
    },
    OpDef {
        name: "SparseSegmentMean",
        attrs: &[FLOAT, INDICES, IDS, SPARSE],
        gradient: Gradient::Rule(|g| gradient(g, "SparseSegmentMeanGrad")),
        kernels: MEAN,
        examples: &[
            ex(
                "two segments",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[3], &[0, 3, 1]),
                    i32s(&[3], &[0, 0, 1]),
                ],
                &[x(&[2, 2], &[4.0, 5.0, 3.0, 4.0])],
            ),
            ex_attrs(
                "sparse gradient",
                &[("sparse_gradient", "true")],
                &[
                    ramp(&[4, 1], 1.0, 1.0),
                    i32s(&[3], &[3, 3, 1]),
                    i32s(&[3], &[0, 1, 1]),
                ],
                &[x(&[2, 1], &[4.0, 3.0])],
            ),
        ],
        ..PLAIN
    },
    OpDef {
        name: "SparseSegmentSqrtN",
        attrs: &[FLOAT, INDICES, IDS, SPARSE],
        gradient: Gradient::Rule(|g| gradient(g, "SparseSegmentSqrtNGrad")),
        kernels: SQRT_N,
        examples: &[ex(
            "four rows and one",
            &[
                ramp(&[4], 1.0, 1.0),
                i32s(&[5], &[0, 1, 2, 3, 1]),
                i32s(&[5], &[0, 0, 0, 0, 1]),
            ],
            &[x(&[2], &[5.0, 2.0])],
        )],
        ..PLAIN
    },
    OpDef {
        name: "SparseSegmentSumWithNumSegments",
        attrs: &[REAL, INDICES, COUNT, IDS, SPARSE],
        gradient: Gradient::Rule(|g| gradient(g, "SparseSegmentSumGrad")),
        kernels: SUM,
        examples: &[
            ex(
                "empty segments",
                &[
                    ramp(&[4, 2], 1.0, 1.0),
                    i32s(&[3], &[0, 3, 1]),
                    i32s(&[3], &[0, 0, 2]),
                    i32s(&[], &[4]),
                ],
                &[x(&[4, 2], &[8.0, 10.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0])],
            ),
            ex(
                "nothing picked",
                &[
                    ramp(&[2], 1.0, 1.0),
                    i32s(&[0], &[]),
                    i32s(&[0], &[]),
                    i64s(&[], &[2]),
                ],
                &[x(&[2], &[0.0, 0.0])],
            ),
            ex_err(
                "too few segments",
                &[],
                &[
                    ramp(&[4], 1.0, 1.0),
                    i32s(&[1], &[0]),
                    i32s(&[1], &[2]),
                    i32s(&[], &[2]),
                ],
                Code::InvalidArgument,
                "segment ids must be < num_segments",
            ),
        ],
        ..COUNTED
    },
    OpDef {
        name: "SparseSegmentMeanWithNumSegments",
        attrs: &[FLOAT, INDICES, COUNT, IDS, SPARSE],
        gradient: Gradient::Rule(|g| gradient(g, "SparseSegmentMeanGrad")),
        kernels: MEAN,
        examples: &[ex(
            "empty segments",
            &[
                ramp(&[4, 1], 1.0, 1.0),
                i32s(&[3], &[0, 2, 1]),
                i32s(&[3], &[0, 0, 2]),
                i32s(&[], &[4]),
            ],
            &[x(&[4, 1], &[2.0, 0.0, 2.0, 0.0])],
        )],
        ..COUNTED
    },
    OpDef {
        name: "SparseSegmentSqrtNWithNumSegments",
        attrs: &[FLOAT, INDICES, COUNT, IDS, SPARSE],
        gradient: Gradient::Rule(|g| gradient(g, "SparseSegmentSqrtNGrad")),
        kernels: SQRT_N,
        examples: &[ex(
            "four rows",
            &[
                ramp(&[4], 1.0, 1.0),
                i32s(&[4], &[0, 1, 2, 3]),
                i32s(&[4], &[1, 1, 1, 1]),
                i32s(&[], &[2]),
            ],
            &[x(&[2], &[0.0, 5.0])],
        )],
        ..COUNTED
    },
];

const PLAIN: OpDef = OpDef {
    inputs: &["data: T", "indices: Tidx", "segment_ids: Tsegmentids"],
    outputs: &["output: T"],
    infer: super::sorted::infer,
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

const COUNTED: OpDef = OpDef {
    inputs: &[
        "data: T",
        "indices: Tidx",
        "segment_ids: Tsegmentids",
        "num_segments: Tnumsegments",
    ],
    ..PLAIN
};

/// By the op's own gradient op, for the whole table or for the picked rows only.
fn gradient(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let (data, indices, ids, grad) = (g.input(0), g.input(1), g.input(2), g.grad(0)?);
    let dense_shape = g.shape(data)?;
    let (zero, one) = (g.ints(&[0])?, g.ints(&[1])?);
    let first = g.builder().op("StridedSlice").input(dense_shape);
    let first = first.input(zero).input(one).input(one);
    let first = first.attr("shrink_axis_mask", 1i64).output()?;
    let grad = if g.attrs().bool("sparse_gradient")? {
        let node = g.builder().op(&format!("{op}V2"));
        let node = node.input(grad).input(indices).input(ids).input(first);
        let node = node.build()?;
        Grad::Rows {
            values: node.output(0),
            indices: node.output(1),
            dense_shape,
        }
    } else {
        Grad::Dense(g.apply(op, &[grad, indices, ids, first])?)
    };
    let mut grads = vec![None; g.num_inputs()];
    grads[0] = Some(grad);
    Ok(grads)
}

fn build(node: &NodeInfo, op: Segment) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_real!(dtype, T => build_of::<T>(op), else => Err(no_function(op, dtype)))
}

fn build_of<T: Element + SegmentElement>(op: Segment) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let data = ctx.input(0)?;
        if data.rank() == 0 {
            return Err(invalid_argument!("Shape must be at least rank 1"));
        }
        let (indices, ids) = picked(ctx)?;
        let limit = match ctx.num_inputs() {
            4 => Some(segment_limit(ctx)?),
            _ => None,
        };
        let count = count_sorted(&ids, limit)?;
        // A shape that is too large is told before indices that are wrong, as TensorFlow does.
        let shape = data.shape().with_dim(0, count as i64)?;
        check_indices(&indices, data.shape().dim(0)).map_err(|bad| {
            invalid_argument!(
                "Bad: indices[{}] == {} out of range [0, {})",
                bad.position,
                bad.value,
                data.shape().dim(0)
            )
        })?;
        let row = shape.elements_in(1..shape.rank());
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        let rows = Rows::Picked(data.slice::<T>()?, &indices);
        segment::reduce(ctx.par(), op, &ids, rows, row, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}

/// Indices and segment ids, as many of each.
pub(super) fn picked(ctx: &KernelCtx<'_>) -> Result<(Vec<usize>, Vec<usize>)> {
    let (indices, ids) = (ctx.input(1)?, ctx.input(2)?);
    for (name, tensor) in [("indices", indices), ("segment_ids", ids)] {
        if tensor.rank() != 1 {
            return Err(invalid_argument!(
                "{name} should be a vector, got shape {}",
                tensor.shape()
            ));
        }
    }
    if indices.elements() != ids.elements() {
        return Err(invalid_argument!(
            "segment_ids and indices should have same size, got {} and {}",
            ids.shape(),
            indices.shape()
        ));
    }
    Ok((positions(indices)?, positions(ids)?))
}

fn segment_limit(ctx: &KernelCtx<'_>) -> Result<usize> {
    let shape = ctx.input(3)?.shape();
    if shape.rank() != 0 {
        return Err(invalid_argument!(
            "num_segments should be a scalar, not shape {shape}"
        ));
    }
    let count = ctx.int(3)?;
    usize::try_from(count)
        .map_err(|_| invalid_argument!("segment ids must be >= 0, num_segments is {count}"))
}
