//! `TopKV2`, `ApproxTopK`: the largest elements of each row and their columns.
//!
//! TensorFlow: TopKV2(input: T, k: Tk) -> (values: T, indices: index_type). Of equal elements the one with the lower
//! column comes first. The results are sorted even if `sorted` is false. (The older `TopK` has no kernel that
//! TensorFlow 2.21 would run.) ApproxTopK(input: T) -> (values: T, indices: int32), with attr k, is exact here, along any
//! dimension, for the largest or (`is_max_k` false) the smallest.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s, i64s, of, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::movement;
use tensorfleet_math::num::Real;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Tensor};

use super::top_k_grad;
use crate::by_order;
use crate::math::cast::{comparable, converted};
use crate::types::REAL_NUMBERS;

const INDICES: &[DType] = &[DType::I16, DType::I32, DType::I64];

const MATRIX: Lit = x(&[2, 4], &[1.0, 5.0, 2.0, 4.0, 7.0, 8.0, 6.0, 3.0]);

pub(crate) static OPS: [OpDef; 2] = [APPROX, TOP_K];

const APPROX: OpDef = OpDef {
    name: "ApproxTopK",
    inputs: &["input: T"],
    outputs: &["values: T", "indices: int32"],
    attrs: &[
        "k: int >= 0",
        "reduction_dimension: int = -1",
        "recall_target: float = 0.95",
        "is_max_k: bool = true",
        "reduction_input_size_override: int = -1",
        "aggregate_to_topk: bool = true",
        "T: {half, bfloat16, float}",
    ],
    kernels: &[cpu(&[("T", APPROX_TYPES)], build_approx)],
    examples: &[
        ex_attrs(
            "two",
            &[("k", "2")],
            &[MATRIX],
            &[
                x(&[2, 2], &[5.0, 4.0, 8.0, 7.0]),
                i32s(&[2, 2], &[1, 3, 1, 0]),
            ],
        ),
        ex_attrs(
            "smallest of columns",
            &[
                ("k", "1"),
                ("reduction_dimension", "0"),
                ("is_max_k", "false"),
            ],
            &[MATRIX],
            &[
                x(&[1, 4], &[1.0, 5.0, 2.0, 3.0]),
                i32s(&[1, 4], &[0, 0, 0, 1]),
            ],
        ),
        ex_err(
            "too many",
            &[("k", "5")],
            &[f32s(&[4], &[1.0])],
            Code::InvalidArgument,
            "input must have at least k columns. Had 4, needed 5",
        ),
    ],
    gradient: Gradient::Rule(top_k_grad::approx),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const APPROX_TYPES: &[DType] = &[DType::F16, DType::BF16, DType::F32];

const TOP_K: OpDef = OpDef {
    name: "TopKV2",
    inputs: &["input: T", "k: Tk"],
    outputs: &["values: T", "indices: index_type"],
    attrs: &[
        "sorted: bool = true",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        "Tk: {int16, int32, int64} = DT_INT32",
        "index_type: {int16, int32, int64} = DT_INT32",
    ],
    kernels: &[cpu(&[("T", REAL_NUMBERS), ("index_type", INDICES)], build)],
    examples: &[
        ex(
            "two",
            &[MATRIX, i32s(&[], &[2])],
            &[
                x(&[2, 2], &[5.0, 4.0, 8.0, 7.0]),
                i32s(&[2, 2], &[1, 3, 1, 0]),
            ],
        ),
        ex_attrs(
            "int64 indices",
            &[("index_type", "int64")],
            &[f32s(&[3], &[1.0, 3.0, 2.0]), i64s(&[], &[1])],
            &[f32s(&[1], &[3.0]), i64s(&[1], &[1])],
        ),
        ex_attrs(
            "int16 indices",
            &[("index_type", "int16")],
            &[f32s(&[3], &[1.0, 3.0, 2.0]), of(DType::I16, &[], &[3.0])],
            &[
                f32s(&[3], &[3.0, 2.0, 1.0]),
                of(DType::I16, &[3], &[1.0, 2.0, 0.0]),
            ],
        ),
        // In int32: at equal elements there is no gradient to check.
        ex(
            "equal ones",
            &[i32s(&[4], &[1, 5, 2, 5]), i32s(&[], &[3])],
            &[i32s(&[3], &[5, 5, 2]), i32s(&[3], &[1, 3, 2])],
        ),
        ex(
            "none",
            &[f32s(&[2, 3], &[1.0]), i32s(&[], &[0])],
            &[f32s(&[2, 0], &[]), i32s(&[2, 0], &[])],
        ),
        ex_err(
            "too many",
            &[],
            &[f32s(&[4], &[1.0]), i32s(&[], &[5])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "negative",
            &[],
            &[f32s(&[4], &[1.0]), i32s(&[], &[-1])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "scalar",
            &[],
            &[f32s(&[], &[1.0]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    gradient: Gradient::Rule(top_k_grad::top_k),
    exactness: Exactness::Bits,
    infer,
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let k = match ctx.constant_ints(1).as_deref() {
        Some([k]) => *k,
        _ => -1,
    };
    if let Some([outer @ .., _]) = ctx.input(0).dims() {
        let shape = PartialShape::new(&[outer, &[k]].concat());
        ctx.set(0, shape.clone());
        ctx.set(1, shape);
    }
    Ok(())
}

fn build_approx(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = &node.attrs;
    let (k, axis) = (attrs.int("k")?, attrs.int("reduction_dimension")?);
    let is_max = attrs.bool("is_max_k")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        if input.rank() == 0 {
            return Err(invalid_argument!("input must be >= 1-D, got shape []"));
        }
        let axis = input.shape().axis(axis)?;
        let columns = input.shape()[axis];
        if k < 0 || columns < k || columns > i64::from(i32::MAX) {
            return Err(invalid_argument!(
                "input must have at least k columns. Had {columns}, needed {k}"
            ));
        }
        let shape = input.shape().with_dim(axis, k)?;
        let mut values = Tensor::new(DType::F32, shape.clone())?;
        let mut indices = Tensor::new(DType::I32, shape)?;
        if !values.is_empty() {
            let floats = comparable(ctx.par(), input)?;
            along(
                ctx.par(),
                &floats,
                axis,
                is_max,
                (&mut values, &mut indices),
            )?;
        }
        let values = converted(ctx.par(), &values, input.dtype())?;
        ctx.set(0, values);
        ctx.set(1, indices);
        Ok(())
    })
}

/// The `k` extremes of every line along `axis`, as many as the outputs have.
fn along(
    par: &dyn Par,
    input: &Tensor,
    axis: usize,
    is_max: bool,
    (values, indices): (&mut Tensor, &mut Tensor),
) -> Result<()> {
    let (n, k) = (input.shape().dim(axis), values.shape().dim(axis));
    let inner = input.shape().elements_in(axis + 1..input.rank());
    let source = input.slice::<f32>()?;
    let lines = source.len() / n.max(1);
    // Line `l` begins at (l / inner) * n * inner + l % inner and has a stride of `inner`.
    let start = |line: usize, length: usize| line / inner * length * inner + line % inner;
    let mut rows = Vec::with_capacity(source.len());
    for line in 0..lines {
        rows.extend((0..n).map(|at| source[start(line, n) + at * inner]));
    }
    let mut best = vec![0.0; lines * k];
    let mut places = vec![0i32; lines * k];
    let order = if is_max {
        |a: f32, b: f32| a > b
    } else {
        |a: f32, b: f32| a < b
    };
    movement::top_k(par, &rows, n, k, &mut best, &mut places, order);
    let (values, indices) = (values.slice_mut::<f32>()?, indices.slice_mut::<i32>()?);
    for line in 0..lines {
        for at in 0..k {
            let place = start(line, k) + at * inner;
            values[place] = best[line * k + at];
            indices[place] = places[line * k + at];
        }
    }
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let index_type = node
        .output_types
        .get(1)
        .map_or(DType::I32, |port| port.dtype);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let shape = ctx.input(1)?.shape();
        if shape.rank() != 0 {
            return Err(invalid_argument!("k must be scalar, got shape {shape}"));
        }
        let k = ctx.int(1)?;
        if k < 0 {
            return Err(invalid_argument!("Need k >= 0, got {k}"));
        }
        let input = ctx.input(0)?;
        let Some(last) = input.rank().checked_sub(1) else {
            return Err(invalid_argument!(
                "input must be >= 1-D, got shape {}",
                input.shape()
            ));
        };
        let columns = input.shape()[last];
        if columns < k {
            return Err(invalid_argument!(
                "input must have at least k columns. Had {columns}, needed {k}"
            ));
        }
        if columns > i64::from(i32::MAX) {
            return Err(invalid_argument!(
                "{columns} columns are too many for int32 indices"
            ));
        }
        let shape = input.shape().with_dim(last, k)?;
        let dtype = input.dtype();
        let input = comparable(ctx.par(), input)?;
        let mut values = Tensor::new(input.dtype(), shape.clone())?;
        let mut indices = Tensor::new(DType::I32, shape)?;
        if !values.is_empty() {
            by_order!(input.dtype(), T => select::<T>(ctx.par(), &input, &mut values, &mut indices)?, else => {
                return Err(internal!("no order for dtype {dtype}"));
            });
        }
        let values = converted(ctx.par(), &values, dtype)?;
        ctx.set(0, values);
        ctx.set(1, narrowed(indices, index_type)?);
        Ok(())
    })
}

fn select<T: Real + Element>(
    par: &dyn Par,
    input: &Tensor,
    values: &mut Tensor,
    indices: &mut Tensor,
) -> Result<()> {
    let last = input.rank() - 1;
    let (columns, k) = (input.shape().dim(last), values.shape().dim(last));
    movement::top_k(
        par,
        input.slice::<T>()?,
        columns,
        k,
        values.slice_mut::<T>()?,
        indices.slice_mut::<i32>()?,
        |a, b| a > b,
    );
    Ok(())
}

fn narrowed(indices: Tensor, dtype: DType) -> Result<Tensor> {
    let shape = indices.shape().clone();
    let values = indices.slice::<i32>()?.iter();
    match dtype {
        DType::I64 => Tensor::from_vec(shape, values.map(|value| i64::from(*value)).collect()),
        // TensorFlow too lets columns beyond int16 wrap.
        DType::I16 => Tensor::from_vec(shape, values.map(|value| *value as i16).collect()),
        _ => Ok(indices),
    }
}
