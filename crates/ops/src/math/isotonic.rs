//! `IsotonicRegression`: the nearest numbers that do not rise.
//!
//! TensorFlow: IsotonicRegression(input: T[..., N]) -> (output: output_dtype[..., N], segments: int32[..., N]): each row with the
//! smallest sum of squares of differences among the rows that fall or stay; places with one value are a segment. Floats keep their
//! type, small integers become floats, the others doubles.

use tensorfleet_graph::example::{ex, ex_attrs, ex_ref, f32s, i32s, of};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::infer;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::{Float, Real};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{DType, Element, bf16, f16};

use crate::array::grads;
use crate::math::calculus::Calculus;

pub(crate) static OP: OpDef = OpDef {
    name: "IsotonicRegression",
    inputs: &["input: T"],
    outputs: &["output: output_dtype", "segments: int32"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        "output_dtype: {half, bfloat16, float, double} = DT_FLOAT",
    ],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[
        cpu(
            &[("T", &[DType::F16]), ("output_dtype", &[DType::F16])],
            build,
        ),
        cpu(
            &[("T", &[DType::BF16]), ("output_dtype", &[DType::BF16])],
            build,
        ),
        cpu(
            &[
                ("T", &[DType::F32, DType::I8, DType::I16]),
                ("output_dtype", &[DType::F32]),
            ],
            build,
        ),
        cpu(
            &[
                ("T", &[DType::F64, DType::I32, DType::I64]),
                ("output_dtype", &[DType::F64]),
            ],
            build,
        ),
    ],
    exactness: Exactness::Rounding,
    examples: &[
        ex(
            "rows",
            &[f32s(&[2, 4], &[3.0, 1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0])],
            &[
                f32s(&[2, 4], &[3.0, 1.5, 1.5, 0.0, 2.5, 2.5, 2.5, 2.5]),
                i32s(&[2, 4], &[0, 1, 1, 2, 0, 0, 0, 0]),
            ],
        ),
        ex_ref(
            "double",
            &[("output_dtype", "double")],
            &[of(DType::F64, &[5], &[1.0, 4.0, 2.25, 2.0, 0.5])],
        ),
        ex_ref(
            "half",
            &[("output_dtype", "half")],
            &[of(DType::F16, &[3], &[1.0, 4.0, 2.0])],
        ),
        ex_attrs(
            "integers",
            &[("output_dtype", "double")],
            &[i32s(&[3], &[1, 2, 0])],
            &[
                of(DType::F64, &[3], &[1.5, 1.5, 0.0]),
                i32s(&[3], &[0, 0, 1]),
            ],
        ),
        ex(
            "nothing",
            &[f32s(&[0], &[])],
            &[f32s(&[0], &[]), i32s(&[0], &[])],
        ),
    ],
    ..OpDef::BLANK
};

/// The mean over each segment.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (segments, grad) = (g.output(1), g.grad(0)?);
    let (zero, one) = (grads::int(g, 0)?, grads::int(g, 1)?);
    let minus_one = grads::int(g, -1)?;
    // Segments of different rows get different numbers.
    let shape = g.shape(segments)?;
    let width = grads::part(g, shape, minus_one, None)?;
    let size = g.f("Size", segments)?;
    let any = g.ints(&[-1])?;
    let wide = grads::join(g, &[any, width])?;
    let by_row = g.apply("Reshape", &[segments, wide])?;
    let width = g.apply("Squeeze", &[width])?;
    let first = g.apply("Range", &[zero, size, width])?;
    let first = g.apply("ExpandDims", &[first, one])?;
    let ids = g.add(by_row, first)?;
    let ids = g.apply("Reshape", &[ids, any])?;
    let flat = g.apply("Reshape", &[grad, any])?;
    let sums = g.apply("UnsortedSegmentSum", &[flat, ids, size])?;
    let ones = g.f("OnesLike", flat)?;
    let counts = g.apply("UnsortedSegmentSum", &[ones, ids, size])?;
    let sums = g.apply("GatherV2", &[sums, ids, zero])?;
    let counts = g.apply("GatherV2", &[counts, ids, zero])?;
    let means = g.div(sums, counts)?;
    dense(g.reshape_like(means, grad)?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match node.attrs.dtype("T")? {
        DType::F16 => AnyKernel::sync(run::<f16, f16>),
        DType::BF16 => AnyKernel::sync(run::<bf16, bf16>),
        DType::F32 => AnyKernel::sync(run::<f32, f32>),
        DType::F64 => AnyKernel::sync(run::<f64, f64>),
        DType::I8 => AnyKernel::sync(run::<i8, f32>),
        DType::I16 => AnyKernel::sync(run::<i16, f32>),
        DType::I32 => AnyKernel::sync(run::<i32, f64>),
        DType::I64 => AnyKernel::sync(run::<i64, f64>),
        other => Err(internal!("no regression of {other}")),
    }
}

fn run<T: Element + Real, O: Element + Float>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let input = ctx.input(0)?;
    let shape = input.shape().clone();
    let width = match shape.rank() {
        0 => 1,
        rank => shape.dim(rank - 1),
    };
    let mut values = Vec::with_capacity(input.elements());
    values.extend(input.slice::<T>()?.iter().map(|x| O::from_f64(x.to_f64())));
    let mut out = ctx.allocate(O::DTYPE, shape.clone())?;
    let mut segments = ctx.allocate(DType::I32, shape)?;
    if !values.is_empty() {
        let rows = values.chunks_exact(width);
        let to = out.slice_mut::<O>()?.chunks_exact_mut(width);
        let ids = segments.slice_mut::<i32>()?.chunks_exact_mut(width);
        for ((row, to), ids) in rows.zip(to).zip(ids) {
            fall(row, to, ids);
        }
    }
    ctx.set(0, out);
    ctx.set(1, segments);
    Ok(())
}

/// A run of places with one value.
struct Pool<O> {
    count: usize,
    sum: O,
    mean: O,
}

/// Neighbours that rise are put together until none do.
fn fall<O: Float>(row: &[O], to: &mut [O], ids: &mut [i32]) {
    let mut pools: Vec<Pool<O>> = Vec::new();
    for value in row {
        let mut last = Pool {
            count: 1,
            sum: *value,
            mean: *value,
        };
        while let Some(before) = pools.pop_if(|before| last.mean > before.mean) {
            let count = before.count + last.count;
            let sum = before.sum.add(last.sum);
            last = Pool {
                count,
                sum,
                mean: sum.div(O::from_f64(count as f64)),
            };
        }
        pools.push(last);
    }
    let mut at = 0;
    for (id, pool) in (0..).zip(&pools) {
        to[at..at + pool.count].fill(pool.mean);
        ids[at..at + pool.count].fill(id);
        at += pool.count;
    }
}
