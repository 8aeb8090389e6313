//! `SparseReduceSum`, `SparseReduceMax`, and both with sparse results: a sparse tensor reduced over axes.
//!
//! TensorFlow: (input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> output: T, dense and zero
//! where there was no value; or (output_indices: int64, output_values: T, output_shape: int64). Attr keep_dims. Indices
//! need not lie within the shape: what is reduced away does not count, sparse results have them as they are, and a dense one has
//! them where their strides lead, if that is a place in it (INTERNAL if not).

use tensorfleet_graph::example::{Example, ex, ex_attrs, ex_err, i32s, i64s, script, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, Output, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::{Num, Real};
use tensorfleet_status::{Code, Result, Status, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, Word, by_word};

use super::Rows;
use crate::array::grads;
use crate::room::filled;
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
        // No example, as there is no gradient then.
        scripts: &[script(
            "outside where that does not count, or leads elsewhere",
            "i = int64[4, 3]{0, 1, 9, 0, 3, 0, 1, 0, 0, 2, -1, 0}
             v = float[4]{1, 2, 4, 8}
             s = int64[3]{2, 3, 2}
             axis = int32[1]{2}
             y = SparseReduceSum(i, v, s, axis)",
            &["fetch y => float[2, 3]{0, 1, 0, 4, 0, 8}"],
        )],
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
            ex_err(
                "outside",
                &[],
                &[
                    i64s(&[1, 2], &[2, 0]),
                    x(&[1], &[1.0]),
                    i64s(&[2], &[2, 3]),
                    i32s(&[1], &[1]),
                ],
                Code::Internal,
                "Obtained a write index of ",
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
                "outside of the shape",
                &[
                    i64s(&[4, 2], &[0, 7, -2, 1, 5, 0, 5, -9]),
                    x(&[4], &[1.0, 2.0, 4.0, 8.0]),
                    i64s(&[2], &[2, 3]),
                    i32s(&[1], &[1]),
                ],
                &[
                    i64s(&[3, 1], &[-2, 0, 5]),
                    x(&[3], &[2.0, 1.0, 12.0]),
                    i64s(&[1], &[2]),
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

/// What is left of the coordinates of each value.
struct Kept {
    rows: Vec<i64>,
    dims: Vec<i64>,
    /// Which axis of the result each is, which has further ones if reduced dimensions are kept.
    axes: Vec<usize>,
    shape: Shape,
    count: usize,
}

impl Kept {
    fn of(ctx: &KernelCtx<'_>, keep_dims: bool) -> Result<Kept> {
        let found = Rows::new(ctx.input(0)?, ctx.input(1)?, ctx.input(2)?)?;
        let from = Shape::new(&ctx.ints(2)?)?;
        let axes = ctx.input(3)?;
        ensure!(
            axes.rank() <= 1,
            invalid_argument,
            "Expected reduction_axes to be a scalar or a vector; got shape: {}",
            axes.shape()
        );
        let mut is_reduced = vec![false; found.rank];
        for axis in ctx.ints(3)? {
            let at = from.axis(axis).map_err(|_| {
                invalid_argument!(
                    "Invalid reduction dimension {axis}, for input with {} dimensions.",
                    found.rank
                )
            })?;
            is_reduced[at] = true;
        }
        let (mut dims, mut axes, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for (dim, is_reduced) in from.iter().zip(&is_reduced) {
            if !is_reduced {
                axes.push(whole.len());
                dims.push(*dim);
                whole.push(*dim);
            } else if keep_dims {
                whole.push(1);
            }
        }
        let count = ctx.input(1)?.elements();
        let mut rows = Vec::with_capacity(count * dims.len());
        for at in 0..count {
            let row = found.row(at).iter().zip(&is_reduced);
            rows.extend(
                row.filter(|(_, is_reduced)| !**is_reduced)
                    .map(|(at, _)| *at),
            );
        }
        Ok(Kept {
            rows,
            dims,
            axes,
            shape: Shape::new(&whole)?,
            count,
        })
    }

    fn row(&self, value: usize) -> &[i64] {
        let rank = self.dims.len();
        &self.rows[value * rank..(value + 1) * rank]
    }

    /// The position of a row in the result, were that dense; none if there is no such place.
    fn position(&self, row: &[i64]) -> Option<usize> {
        let place = row
            .iter()
            .zip(&self.dims)
            .try_fold(0i64, |place, (at, dim)| {
                place.checked_mul(*dim)?.checked_add(*at)
            });
        let place = usize::try_from(place?).ok()?;
        (place < self.shape.elements()).then_some(place)
    }

    /// The position of each value, if all coordinates lie within the shape.
    fn positions(&self) -> Option<Vec<usize>> {
        (0..self.count)
            .map(|value| {
                let row = self.row(value);
                let mut places = row.iter().zip(&self.dims);
                let is_inside = places.all(|(at, dim)| (0..*dim).contains(at));
                self.position(row).filter(|_| is_inside)
            })
            .collect()
    }

    /// Values of equal coordinates: the group of each value, and a value of each group, in row-major order.
    fn groups(&self) -> (Vec<usize>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.count).collect();
        // One number is compared faster than a row of them.
        match self.positions() {
            Some(positions) => order.sort_by_key(|value| positions[*value]),
            None => order.sort_by_key(|value| self.row(*value)),
        }
        let (mut slots, mut firsts) = (vec![0; self.count], Vec::new());
        for group in order.chunk_by(|a, b| self.row(*a) == self.row(*b)) {
            group.iter().for_each(|value| slots[*value] = firsts.len());
            firsts.push(group[0]);
        }
        (slots, firsts)
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
    let mut is_set = filled(false, count)?;
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
        let kept = Kept::of(ctx, keep_dims)?;
        let values = ctx.input(1)?;
        let count = kept.shape.elements();
        let out = match kept.positions() {
            Some(positions) => reduced(reduction, values, &positions, count)?,
            None => {
                let (slots, firsts) = kept.groups();
                let groups = reduced(reduction, values, &slots, firsts.len())?;
                let mut sources = vec![None; count];
                for (group, first) in firsts.iter().enumerate() {
                    let place = kept.position(kept.row(*first));
                    let place = place.ok_or_else(|| outside(&kept, *first))?;
                    sources[place] = Some(group);
                }
                placed(&groups, &sources)?
            }
        };
        ctx.set(0, out.reshaped(kept.shape)?);
        Ok(())
    })
}

#[cold]
fn outside(kept: &Kept, value: usize) -> Status {
    internal!(
        "Obtained a write index of {:?} which is outside of bounds of {}",
        kept.row(value),
        kept.shape
    )
}

/// The groups at their places, zero elsewhere.
fn placed(groups: &Tensor, sources: &[Option<usize>]) -> Result<Tensor> {
    let mut out = Tensor::zeros(groups.dtype(), Shape::vector(sources.len()))?;
    by_word!(groups.dtype(), W => place::<W>(groups, sources, &mut out))?;
    Ok(out)
}

fn place<W: Word>(groups: &Tensor, sources: &[Option<usize>], out: &mut Tensor) -> Result<()> {
    let groups = groups.words::<W>()?;
    for (slot, source) in out.words_mut::<W>()?.iter_mut().zip(sources) {
        if let Some(source) = source {
            *slot = groups[*source].clone();
        }
    }
    Ok(())
}

fn build_sparse(node: &NodeInfo, reduction: Reduction) -> Result<AnyKernel> {
    let keep_dims = node.attrs.bool("keep_dims")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let kept = Kept::of(ctx, keep_dims)?;
        let (slots, firsts) = kept.groups();
        let values = reduced(reduction, ctx.input(1)?, &slots, firsts.len())?;
        let rank = kept.shape.rank();
        let mut indices = vec![0; firsts.len() * rank];
        for (group, first) in firsts.iter().enumerate() {
            for (axis, at) in kept.axes.iter().zip(kept.row(*first)) {
                indices[group * rank + axis] = *at;
            }
        }
        let matrix = Shape::matrix(firsts.len(), rank)?;
        ctx.set(0, Tensor::from_vec(matrix, indices)?);
        ctx.set(1, values);
        ctx.set(2, Tensor::vector(kept.shape.dims()));
        Ok(())
    })
}
