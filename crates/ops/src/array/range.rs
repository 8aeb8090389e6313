//! `Range`: `start, start + delta, …` up to but without `limit`.
//!
//! TensorFlow: Range(start: Tidx, limit: Tidx, delta: Tidx) -> output: Tidx. Element `i` is `start + i · delta`, each
//! step rounded to the dtype.

use tensorfleet_graph::example::{ex, ex_err, ex_ref, f32s, i32s, of, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::map::fill_by;
use tensorfleet_math::num::Real;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor, bf16, f16};

use crate::types::{FLOATS, INDEX, dtypes};

const TYPES: &[DType] = dtypes![FLOATS, INDEX];

pub(crate) static OP: OpDef = OpDef {
    name: "Range",
    inputs: &["start: Tidx", "limit: Tidx", "delta: Tidx"],
    outputs: &["output: Tidx"],
    attrs: &[
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = DT_INT32",
    ],
    infer,
    gradient: Gradient::Stop("TensorFlow says so"),
    kernels: &[cpu(&[("Tidx", TYPES)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "up",
            &[x(&[], &[3.0]), x(&[], &[12.0]), x(&[], &[3.0])],
            &[x(&[3], &[3.0, 6.0, 9.0])],
        ),
        ex(
            "down",
            &[x(&[], &[3.0]), x(&[], &[-2.0]), x(&[], &[-2.0])],
            &[x(&[3], &[3.0, 1.0, -1.0])],
        ),
        ex(
            "nothing",
            &[x(&[], &[3.0]), x(&[], &[3.0]), x(&[], &[1.0])],
            &[x(&[0], &[])],
        ),
        ex_ref(
            "tenths",
            &[],
            &[f32s(&[], &[0.5]), f32s(&[], &[9.3]), f32s(&[], &[0.1])],
        ),
        ex_ref(
            "tenths of half",
            &[],
            &[
                of(DType::F16, &[], &[1.0]),
                of(DType::F16, &[], &[4.0]),
                of(DType::F16, &[], &[0.1]),
            ],
        ),
        ex_ref(
            "tenths of bfloat16",
            &[],
            &[
                of(DType::BF16, &[], &[1.0]),
                of(DType::BF16, &[], &[4.0]),
                of(DType::BF16, &[], &[0.1]),
            ],
        ),
        ex_err(
            "no step",
            &[],
            &[i32s(&[], &[0]), i32s(&[], &[1]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "wrong way",
            &[],
            &[i32s(&[], &[0]), i32s(&[], &[-1]), i32s(&[], &[1])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let ends = (
        ctx.constant_ints(0),
        ctx.constant_ints(1),
        ctx.constant_ints(2),
    );
    let size = match ends {
        (Some(start), Some(limit), Some(delta)) => match (&start[..], &limit[..], &delta[..]) {
            ([start], [limit], [delta]) => integer_size(*start, *limit, *delta)?,
            _ => -1,
        },
        _ => -1,
    };
    ctx.set(0, PartialShape::new(&[size]));
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("Tidx")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        for (index, name) in ["start", "limit", "delta"].into_iter().enumerate() {
            let shape = ctx.input(index)?.shape();
            // Like TensorFlow's kernel: a vector of one element will do.
            if shape.rank() > 1 || shape.elements() != 1 {
                return Err(invalid_argument!(
                    "{name} must be a scalar, not shape {shape}"
                ));
            }
        }
        let output = match dtype {
            DType::I32 | DType::I64 => integers(ctx, dtype)?,
            DType::F32 => floats::<f32>(ctx)?,
            DType::F64 => floats::<f64>(ctx)?,
            DType::F16 => floats::<f16>(ctx)?,
            _ => floats::<bf16>(ctx)?,
        };
        ctx.set(0, output);
        Ok(())
    })
}

fn integers(ctx: &KernelCtx<'_>, dtype: DType) -> Result<Tensor> {
    let (start, limit, delta) = (ctx.int(0)?, ctx.int(1)?, ctx.int(2)?);
    let size = integer_size(start, limit, delta)?;
    let mut output = Tensor::new(dtype, Shape::new(&[size])?)?;
    let value = |i: usize| start.wrapping_add(delta.wrapping_mul(i as i64));
    if dtype == DType::I64 {
        fill_by(ctx.par(), output.slice_mut::<i64>()?, value);
    } else {
        // Wrapping sums and products of the low halves are the low halves of the results.
        let (start, delta) = (start as i32, delta as i32);
        fill_by(ctx.par(), output.slice_mut::<i32>()?, |i| {
            start.wrapping_add(delta.wrapping_mul(i as i32))
        });
    }
    Ok(output)
}

fn integer_size(start: i64, limit: i64, delta: i64) -> Result<i64> {
    if delta == 0 {
        return Err(invalid_argument!("Requires delta != 0: {delta}"));
    }
    if delta > 0 && start > limit {
        return Err(invalid_argument!(
            "Requires start <= limit when delta > 0: {start}/{limit}"
        ));
    }
    if delta < 0 && start < limit {
        return Err(invalid_argument!(
            "Requires start >= limit when delta < 0: {start}/{limit}"
        ));
    }
    let steps = start.abs_diff(limit).div_ceil(delta.unsigned_abs());
    i64::try_from(steps)
        .map_err(|_| invalid_argument!("Requires ((limit - start) / delta) <= {}", i64::MAX))
}

fn floats<T: Real + Element>(ctx: &KernelCtx<'_>) -> Result<Tensor> {
    let (start, limit, delta) = (
        ctx.scalar::<T>(0)?,
        ctx.scalar::<T>(1)?,
        ctx.scalar::<T>(2)?,
    );
    let [from, to, by] = [start, limit, delta].map(Real::to_f64);
    if by == 0.0 {
        return Err(invalid_argument!("Requires delta != 0: {by}"));
    }
    if by > 0.0 && from > to {
        return Err(invalid_argument!(
            "Requires start <= limit when delta > 0: {from}/{to}"
        ));
    }
    if by < 0.0 && from < to {
        return Err(invalid_argument!(
            "Requires start >= limit when delta < 0: {from}/{to}"
        ));
    }
    let steps = limit.sub(start).div(delta).to_f64().abs().ceil();
    if steps.is_nan() || steps >= i64::MAX as f64 {
        return Err(invalid_argument!(
            "Requires ((limit - start) / delta) <= {}: {from}/{to}/{by}",
            i64::MAX
        ));
    }
    let mut output = Tensor::new(T::DTYPE, Shape::new(&[steps as i64])?)?;
    fill_by(ctx.par(), output.slice_mut::<T>()?, |i| {
        start.add(T::from_f64(i as f64).mul(delta))
    });
    Ok(output)
}
