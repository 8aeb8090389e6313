//! `SparseReduceSum`, `SparseReduceMax`, and both with sparse results: a sparse tensor reduced over axes.
//!
//! TensorFlow: (input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> output: T, dense and zero
//! where there was no value; or (output_indices: int64, output_values: T, output_shape: int64). Attr keep_dims.

use tensorfleet_graph::example::{Example, ex, ex_attrs, ex_err, i32s, i64s, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::{Num, Real};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::coordinates;
use super::parts::unravel;
use crate::array::grads;
use crate::types::{NUMBERS, REAL_NUMBERS};
use crate::{by_number, by_real};

const REDUCE: OpDef = OpDef {
    inputs: &[
        "input_indices: int64",
        "input_values: T",
        "input_shape: int64",
        "reduction_axes: int32",
    ],
    outputs: &["output: T"],
    exactness: Exactness::Rounding,
    ..OpDef::BLANK
};

const SPARSE_OUTPUTS: &[&str] = &[
    "output_indices: int64",
    "output_values: T",
    "output_shape: int64",
];

const OF_NUMBERS: &[&str] = &[
    "keep_dims: bool = false",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
];

const OF_REALS: &[&str] = &[
    "keep_dims: bool = false",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
];

const NO_AXIS: Example = ex_err(
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
);

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "SparseReduceMax",
        attrs: OF_REALS,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build(node, Reduction::Max)
        })],
        examples: &[
            ex(
                "rows",
                &[
                    i64s(&[3, 2], &[0, 0, 0, 2, 2, 1]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2], &[3, 3]),
                    i32s(&[1], &[1]),
                ],
                &[x(&[3], &[2.0, 0.0, 3.0])],
            ),
            ex_attrs(
                "columns kept",
                &[("keep_dims", "true")],
                &[
                    i64s(&[3, 2], &[0, 0, 0, 2, 1, 2]),
                    x(&[3], &[1.0, 4.0, 3.0]),
                    i64s(&[2], &[2, 3]),
                    i32s(&[], &[-2]),
                ],
                &[x(&[1, 3], &[1.0, 0.0, 4.0])],
            ),
            NO_AXIS,
        ],
        ..REDUCE
    },
    OpDef {
        name: "SparseReduceMaxSparse",
        outputs: SPARSE_OUTPUTS,
        attrs: OF_REALS,
        kernels: &[cpu(&[("T", REAL_NUMBERS)], |node| {
            build_sparse(node, Reduction::Max)
        })],
        examples: &[
            ex(
                "rows",
                &[
                    i64s(&[3, 2], &[0, 0, 0, 2, 2, 1]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2], &[3, 3]),
                    i32s(&[1], &[1]),
                ],
                &[
                    i64s(&[2, 1], &[0, 2]),
                    x(&[2], &[2.0, 3.0]),
                    i64s(&[1], &[3]),
                ],
            ),
            NO_AXIS,
        ],
        ..REDUCE
    },
    OpDef {
        name: "SparseReduceSum",
        attrs: OF_NUMBERS,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", NUMBERS)], |node| build(node, Reduction::Sum))],
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
            NO_AXIS,
        ],
        ..REDUCE
    },
    OpDef {
        name: "SparseReduceSumSparse",
        outputs: SPARSE_OUTPUTS,
        attrs: OF_NUMBERS,
        kernels: &[cpu(&[("T", NUMBERS)], |node| {
            build_sparse(node, Reduction::Sum)
        })],
        examples: &[
            ex_attrs(
                "columns kept",
                &[("keep_dims", "true")],
                &[
                    i64s(&[3, 2], &[0, 0, 0, 2, 1, 2]),
                    x(&[3], &[1.0, 2.0, 3.0]),
                    i64s(&[2], &[2, 3]),
                    i32s(&[1], &[-2]),
                ],
                &[
                    i64s(&[2, 2], &[0, 0, 0, 2]),
                    x(&[2], &[1.0, 5.0]),
                    i64s(&[2], &[1, 3]),
                ],
            ),
            ex(
                "all of it",
                &[
                    i64s(&[2, 1], &[0, 4]),
                    x(&[2], &[1.0, 2.0]),
                    i64s(&[1], &[5]),
                    i32s(&[1], &[0]),
                ],
                &[i64s(&[1, 0], &[]), x(&[1], &[3.0]), i64s(&[0], &[])],
            ),
            ex(
                "nothing",
                &[
                    i64s(&[0, 2], &[]),
                    x(&[0], &[]),
                    i64s(&[2], &[5, 2]),
                    i32s(&[1], &[0]),
                ],
                &[i64s(&[0, 1], &[]), x(&[0], &[]), i64s(&[1], &[2])],
            ),
            NO_AXIS,
        ],
        ..REDUCE
    },
];

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

#[derive(Clone, Copy)]
enum Reduction {
    Sum,
    Max,
}

/// The position of each value in the result, if that were dense.
struct Places {
    places: Vec<usize>,
    shape: Shape,
}

impl Places {
    fn of(ctx: &KernelCtx<'_>, keep_dims: bool) -> Result<Places> {
        let found = coordinates(ctx, 0)?;
        let axes = ctx.input(3)?;
        ensure!(
            axes.rank() <= 1,
            invalid_argument,
            "Expected reduction_axes to be a scalar or a vector; got shape: {}",
            axes.shape()
        );
        let mut is_reduced = vec![false; found.rank];
        for axis in ctx.ints(3)? {
            let at = found.shape.axis(axis).map_err(|_| {
                invalid_argument!(
                    "Invalid reduction dimension {axis}, for input with {} dimensions.",
                    found.rank
                )
            })?;
            is_reduced[at] = true;
        }
        let mut dims = Vec::with_capacity(found.rank);
        for (dim, is_reduced) in found.shape.iter().zip(&is_reduced) {
            match (is_reduced, keep_dims) {
                (false, _) => dims.push(*dim),
                (true, true) => dims.push(1),
                (true, false) => {}
            }
        }
        let place = |row: &[i64]| {
            let axes = row.iter().zip(found.shape.iter()).zip(&is_reduced);
            let kept = axes.filter(|(_, is_reduced)| !**is_reduced);
            kept.fold(0, |place, ((at, dim), _)| {
                place * *dim as usize + *at as usize
            })
        };
        let shape = Shape::new(&dims)?;
        let places = (0..found.len()).map(|at| place(found.row(at))).collect();
        Ok(Places { places, shape })
    }
}

/// `count` numbers, each made of the values whose slot it is; zero where there are none.
fn reduced(reduction: Reduction, values: &Tensor, slots: &[usize], count: usize) -> Result<Tensor> {
    let dtype = values.dtype();
    let other = || Err(internal!("sparse tensors of {dtype} are not reduced"));
    match reduction {
        Reduction::Sum => {
            by_number!(dtype, T => joined::<T>(values, slots, count, T::add), else => other())
        }
        Reduction::Max => {
            by_real!(dtype, T => joined::<T>(values, slots, count, T::larger), else => other())
        }
    }
}

fn joined<T: Element + Num>(
    values: &Tensor,
    slots: &[usize],
    count: usize,
    join: fn(T, T) -> T,
) -> Result<Tensor> {
    let mut tensor = Tensor::zeros(T::DTYPE, Shape::vector(count))?;
    let out = tensor.slice_mut::<T>()?;
    let mut is_set = vec![false; count];
    for (value, slot) in values.slice::<T>()?.iter().zip(slots) {
        out[*slot] = match std::mem::replace(&mut is_set[*slot], true) {
            true => join(out[*slot], *value),
            false => *value,
        };
    }
    Ok(tensor)
}

fn build(node: &NodeInfo, reduction: Reduction) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let Places { places, shape } = Places::of(ctx, keep_dims)?;
        let out = reduced(reduction, ctx.input(1)?, &places, shape.elements())?;
        ctx.set(0, out.reshaped(shape)?);
        Ok(())
    })
}

fn build_sparse(node: &NodeInfo, reduction: Reduction) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let Places { places, shape } = Places::of(ctx, keep_dims)?;
        let mut taken = places.clone();
        taken.sort_unstable();
        taken.dedup();
        let slot = |place: &usize| taken.partition_point(|taken| taken < place);
        let slots: Vec<usize> = places.iter().map(slot).collect();
        let values = reduced(reduction, ctx.input(1)?, &slots, taken.len())?;
        let indices = taken.iter().flat_map(|place| unravel(*place, &shape));
        let indices: Vec<i64> = indices.collect();
        let matrix = Shape::matrix(taken.len(), shape.rank())?;
        ctx.set(0, Tensor::from_vec(matrix, indices)?);
        ctx.set(1, values);
        ctx.set(2, Tensor::vector(shape.dims()));
        Ok(())
    })
}
