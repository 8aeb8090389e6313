//! `SparseSplit`, `SparseSlice`, `SparseConcat`: parts of a sparse tensor, and one of parts.
//!
//! TensorFlow: SparseSplit(split_dim: int64, indices, values: T, shape) -> num_split of each, the first ones longer if the
//! dimension cannot be divided; SparseSlice(indices, values: T, shape, start: int64, size: int64) -> one of each;
//! SparseConcat(indices: N * int64, values: N * T, shapes: N * int64) -> one of each in row-major order, attr concat_dim.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s, strs, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::Shape;

use super::parts::{Part, joined, picked};

const PARTS: OpDef = OpDef {
    gradient: Gradient::None("not needed by training so far"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const OUT: &[&str] = &[
    "output_indices: int64",
    "output_values: T",
    "output_shape: int64",
];

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "SparseConcat",
        inputs: &["indices: N * int64", "values: N * T", "shapes: N * int64"],
        outputs: OUT,
        attrs: &["concat_dim: int", "N: int >= 2", "T: type"],
        kernels: &[cpu(&[], build_concat)],
        examples: &[
            ex_attrs(
                "side by side",
                &[("concat_dim", "1"), ("N", "2")],
                &[
                    i64s(&[3, 2], &[0, 0, 0, 3, 3, 4]),
                    i64s(&[2, 2], &[0, 1, 3, 0]),
                    strs(&[3], &["a", "b", "c"]),
                    strs(&[2], &["d", "e"]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[2], &[4, 2]),
                ],
                &[
                    i64s(&[5, 2], &[0, 0, 0, 3, 0, 6, 3, 4, 3, 5]),
                    strs(&[5], &["a", "b", "d", "c", "e"]),
                    i64s(&[2], &[4, 7]),
                ],
            ),
            ex_attrs(
                "one below the other",
                &[("concat_dim", "-2"), ("N", "2")],
                &[
                    i64s(&[1, 2], &[1, 1]),
                    i64s(&[1, 2], &[0, 1]),
                    i32s(&[1], &[5]),
                    i32s(&[1], &[6]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[2], &[2, 5]),
                ],
                &[
                    i64s(&[2, 2], &[1, 1, 4, 1]),
                    i32s(&[2], &[5, 6]),
                    i64s(&[2], &[6, 5]),
                ],
            ),
            ex_err(
                "other dimensions",
                &[("concat_dim", "1"), ("N", "2")],
                &[
                    i64s(&[1, 2], &[1, 1]),
                    i64s(&[1, 2], &[0, 1]),
                    i32s(&[1], &[5]),
                    i32s(&[1], &[6]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[2], &[3, 5]),
                ],
                Code::InvalidArgument,
                "Input shapes must match: expected 4 for dimension 0 but got 3 at position 1",
            ),
            ex_err(
                "axis",
                &[("concat_dim", "2"), ("N", "2")],
                &[
                    i64s(&[1, 2], &[1, 1]),
                    i64s(&[1, 2], &[0, 1]),
                    i32s(&[1], &[5]),
                    i32s(&[1], &[6]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[2], &[4, 5]),
                ],
                Code::InvalidArgument,
                "Concat dimension must be in range [-2, 2), got 2",
            ),
        ],
        ..PARTS
    },
    OpDef {
        name: "SparseSlice",
        inputs: &[
            "indices: int64",
            "values: T",
            "shape: int64",
            "start: int64",
            "size: int64",
        ],
        outputs: OUT,
        attrs: &["T: type"],
        gradient: Gradient::Rule(slice_gradient),
        kernels: &[cpu(&[], build_slice)],
        examples: &[
            ex(
                "a corner",
                &[
                    i64s(&[4, 2], &[0, 0, 0, 3, 1, 2, 3, 4]),
                    x(&[4], &[1.0, 2.0, 3.0, 4.0]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[2], &[0, 2]),
                    i64s(&[2], &[2, 9]),
                ],
                &[
                    i64s(&[2, 2], &[0, 1, 1, 0]),
                    x(&[2], &[2.0, 3.0]),
                    i64s(&[2], &[2, 3]),
                ],
            ),
            ex(
                "behind the end",
                &[
                    i64s(&[1, 2], &[0, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[2], &[5, 2]),
                    i64s(&[2], &[2, 9]),
                ],
                &[i64s(&[0, 2], &[]), i32s(&[0], &[]), i64s(&[2], &[0, 3])],
            ),
            ex_err(
                "three starts",
                &[],
                &[
                    i64s(&[1, 2], &[0, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[4, 5]),
                    i64s(&[3], &[5, 2, 0]),
                    i64s(&[2], &[2, 9]),
                ],
                Code::InvalidArgument,
                "Expected start to be a vector of length 2 but got length 3",
            ),
        ],
        ..PARTS
    },
    OpDef {
        name: "SparseSplit",
        inputs: &[
            "split_dim: int64",
            "indices: int64",
            "values: T",
            "shape: int64",
        ],
        outputs: &[
            "output_indices: num_split * int64",
            "output_values: num_split * T",
            "output_shape: num_split * int64",
        ],
        attrs: &["num_split: int >= 1", "T: type"],
        kernels: &[cpu(&[], build_split)],
        examples: &[
            ex_attrs(
                "in two",
                &[("num_split", "2")],
                &[
                    i64s(&[], &[-1]),
                    i64s(&[4, 2], &[0, 0, 0, 3, 1, 2, 3, 4]),
                    x(&[4], &[1.0, 2.0, 3.0, 4.0]),
                    i64s(&[2], &[4, 5]),
                ],
                &[
                    i64s(&[2, 2], &[0, 0, 1, 2]),
                    i64s(&[2, 2], &[0, 0, 3, 1]),
                    x(&[2], &[1.0, 3.0]),
                    x(&[2], &[2.0, 4.0]),
                    i64s(&[2], &[4, 3]),
                    i64s(&[2], &[4, 2]),
                ],
            ),
            ex_err(
                "axis",
                &[("num_split", "2")],
                &[
                    i64s(&[], &[2]),
                    i64s(&[1, 2], &[0, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[4, 5]),
                ],
                Code::InvalidArgument,
                "Input axis should be in range [-2, 2), got 2",
            ),
            ex_err(
                "too many",
                &[("num_split", "5")],
                &[
                    i64s(&[], &[0]),
                    i64s(&[1, 2], &[0, 0]),
                    i32s(&[1], &[1]),
                    i64s(&[2], &[4, 5]),
                ],
                Code::InvalidArgument,
                "Input num_split should be between 1 and the splitting dimension size (4), got 5",
            ),
        ],
        ..PARTS
    },
];

/// Each value inside gets its gradient back, the others get none.
fn slice_gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.grad(1)?, g.input(0), g.input(3), g.output(0)];
    let to_values = g.apply("SparseSliceGrad", &inputs)?;
    Ok(vec![None, Some(Grad::Dense(to_values)), None, None, None])
}

/// The part from `start`, of at most `size`.
fn sliced(part: &Part, start: &[i64], size: &[i64]) -> Result<Part> {
    let range = |axis: usize| {
        let end = start[axis].saturating_add(size[axis]);
        start[axis]..end
    };
    let rank = part.rank();
    let is_inside = |at: &usize| (0..rank).all(|axis| range(axis).contains(&part.row(*at)[axis]));
    let places: Vec<usize> = (0..part.len()).filter(is_inside).collect();
    let indices = places.iter().flat_map(|at| {
        part.row(*at)
            .iter()
            .zip(start)
            .map(|(at, start)| at - start)
    });
    let dims = part.shape.iter().zip(start).zip(size);
    Ok(Part {
        indices: indices.collect(),
        values: picked(&part.values, &places)?,
        shape: dims
            .map(|((dim, start), size)| (*size).min(dim.saturating_sub(*start)).max(0))
            .collect(),
    })
}

fn build_slice(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let part = Part::of(ctx, 0)?;
        for (name, input) in [("start", 3), ("size", 4)] {
            let tensor = ctx.input(input)?;
            ensure!(
                tensor.rank() == 1,
                invalid_argument,
                "Input {name} should be a vector but received shape {}",
                tensor.shape()
            );
            ensure!(
                tensor.elements() == part.rank(),
                invalid_argument,
                "Expected {name} to be a vector of length {} but got length {}",
                part.rank(),
                tensor.elements()
            );
        }
        let out = sliced(&part, &ctx.ints(3)?, &ctx.ints(4)?)?;
        out.set(ctx, 0)
    })
}

fn build_split(node: &NodeInfo) -> Result<AnyKernel> {
    let count = node.attrs.int("num_split")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        ensure!(
            ctx.input(0)?.rank() == 0,
            invalid_argument,
            "axis should be a scalar, got shape {}",
            ctx.input(0)?.shape()
        );
        let part = Part::of(ctx, 1)?;
        part.check_bounds()?;
        let (axis, rank) = (ctx.int(0)?, part.rank() as i64);
        ensure!(
            (-rank..rank).contains(&axis),
            invalid_argument,
            "Input axis should be in range [{}, {rank}), got {axis}",
            -rank
        );
        let axis = axis.rem_euclid(rank) as usize;
        let dim = part.shape[axis];
        ensure!(
            (1..=dim).contains(&count),
            invalid_argument,
            "Input num_split should be between 1 and the splitting dimension size ({dim}), got {count}"
        );
        let (least, longer) = (dim / count, dim % count);
        let (mut start, mut size) = (vec![0; part.rank()], part.shape.clone());
        for index in 0..count {
            size[axis] = least + i64::from(index < longer);
            let [indices, values, shape] = sliced(&part, &start, &size)?.tensors()?;
            let (index, count) = (index as usize, count as usize);
            ctx.set(index, indices);
            ctx.set(count + index, values);
            ctx.set(2 * count + index, shape);
            start[axis] += size[axis];
        }
        Ok(())
    })
}

fn build_concat(node: &NodeInfo) -> Result<AnyKernel> {
    let axis = node.attrs.int("concat_dim")?;
    let count = usize::try_from(node.attrs.int("N")?).unwrap_or(0);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut parts = Vec::with_capacity(count);
        for index in 0..count {
            parts.push(Part::new(
                ctx.input(index)?,
                ctx.input(count + index)?,
                ctx.input(2 * count + index)?,
            )?);
        }
        concat(parts, axis)?.set(ctx, 0)
    })
}

fn concat(parts: Vec<Part>, axis: i64) -> Result<Part> {
    let Some(first) = parts.first() else {
        return Err(invalid_argument!("nothing to concatenate"));
    };
    let rank = first.rank() as i64;
    ensure!(
        (-rank..rank).contains(&axis),
        invalid_argument,
        "Concat dimension must be in range [{}, {rank}), got {axis}",
        -rank
    );
    let axis = axis.rem_euclid(rank) as usize;
    let mut shape = first.shape.clone();
    shape[axis] = 0;
    let count: usize = parts.iter().map(|part| part.indices.len()).sum();
    let mut indices: Vec<i64> = Vec::with_capacity(count);
    for (position, part) in parts.iter().enumerate() {
        ensure!(
            part.rank() as i64 == rank,
            invalid_argument,
            "Ranks of all input tensors must match: expected {rank} but got {} at position {position}",
            part.rank()
        );
        for (dim, (wanted, found)) in first.shape.iter().zip(&part.shape).enumerate() {
            ensure!(
                dim == axis || wanted == found,
                invalid_argument,
                "Input shapes must match: expected {wanted} for dimension {dim} but got {found} at position {position}"
            );
        }
        ensure!(
            part.len() == 0 || part.shape.iter().all(|dim| *dim != 0),
            invalid_argument,
            "SparseTensor cannot have non-zero indices if dense shape has zero volume, got {} values",
            part.len()
        );
        let begin = indices.len();
        indices.extend_from_slice(&part.indices);
        for row in indices[begin..].chunks_exact_mut(rank as usize) {
            row[axis] = row[axis].saturating_add(shape[axis]);
        }
        shape[axis] = shape[axis]
            .checked_add(part.shape[axis])
            .ok_or_else(|| invalid_argument!("the concatenated dimension {axis} overflowed"))?;
    }
    Shape::new(&shape).map_err(|_| invalid_argument!("dense_elements overflowed in {shape:?}"))?;
    let values: Vec<_> = parts.iter().map(|part| &part.values).collect();
    let values = joined(first.values.dtype(), &values)?;
    let rank = first.rank();
    // One behind the other they mostly are in order.
    if indices.chunks_exact(rank).is_sorted() {
        return Ok(Part {
            indices,
            values,
            shape,
        });
    }
    let row = |at: usize| &indices[at * rank..(at + 1) * rank];
    let mut order: Vec<usize> = (0..values.elements()).collect();
    order.sort_by(|a, b| row(*a).cmp(row(*b)));
    Ok(Part {
        indices: order.iter().flat_map(|at| row(*at)).copied().collect(),
        values: picked(&values, &order)?,
        shape,
    })
}
