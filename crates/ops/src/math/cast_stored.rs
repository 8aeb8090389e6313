//! Casts from and to types that are only stored: quantized types, floats of eight bits and integers of four.
//!
//! | type | seen as | from | to |
//! |---|---|---|---|
//! | quantized | the integers of its width | all that those are cast from | all that those are cast to |
//! | float8 | `float`; `int32` on the way to integers of up to 32 bits, which wrap | floats and float8 | all but int4 and uint4 |
//! | int4, uint4 | `int8`, whatever the upper four bits of the byte are | integers and quantized types | integers and quantized types |

use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::cast::Float8;
use tensorfleet_math::map::map;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, unimplemented};
use tensorfleet_tensor::{DType, Element, Tensor};

use super::cast::convert;
use crate::types::{FLOATS, FLOATS8, INTEGERS, INTEGERS4, PLAIN};

/// A kernel that casts between two different types of which one is only stored.
pub(super) fn build(from: DType, to: DType, truncate: bool) -> Result<AnyKernel> {
    let (source, target) = (unquantized(from), unquantized(to));
    let possible = if FLOATS8.contains(&target) {
        FLOATS.contains(&source) || FLOATS8.contains(&source)
    } else if INTEGERS4.contains(&source) || INTEGERS4.contains(&target) {
        let whole = |dtype| INTEGERS.contains(&dtype) || INTEGERS4.contains(&dtype);
        whole(source) && whole(target)
    } else {
        PLAIN.contains(&target) && (PLAIN.contains(&source) || FLOATS8.contains(&source))
    };
    if !possible {
        return Err(unimplemented!("Cast {from} to {to} is not supported"));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.take(0)?;
        let wide = load(ctx.par(), input, source, target)?;
        let out = store(ctx.par(), &wide, target, truncate)?;
        let out = if out.dtype() == to {
            out
        } else {
            out.reinterpreted(to)?
        };
        ctx.set(0, out);
        Ok(())
    })
}

/// The integers that a quantized type is stored as; any other type itself.
fn unquantized(dtype: DType) -> DType {
    match dtype {
        DType::QI8 => DType::I8,
        DType::QU8 => DType::U8,
        DType::QI16 => DType::I16,
        DType::QU16 => DType::U16,
        DType::QI32 => DType::I32,
        other => other,
    }
}

/// The elements in a type with arithmetic.
fn load(par: &dyn Par, input: Tensor, source: DType, target: DType) -> Result<Tensor> {
    if let Some(kind) = float8(source) {
        let wide = mapped(par, &input, |bits: u8| kind.widen(bits))?;
        let wraps = INTEGERS.contains(&target) && target.size() <= DType::I32.size();
        return if wraps {
            convert(par, &wide, DType::I32, false)
        } else {
            Ok(wide)
        };
    }
    match source {
        DType::I4 => mapped(par, &input, |bits: u8| (bits << 4) as i8 >> 4),
        DType::U4 => mapped(par, &input, |bits: u8| (bits & 15) as i8),
        DType::Bool => Ok(input),
        plain => input.reinterpreted(plain),
    }
}

/// The elements as `target`, which may still be called by the name of the integers it is stored as.
fn store(par: &dyn Par, wide: &Tensor, target: DType, truncate: bool) -> Result<Tensor> {
    if let Some(kind) = float8(target) {
        // Every other float is a `float` without loss, and a `double` would lose by becoming one.
        return if wide.dtype() == DType::F64 {
            mapped(par, wide, |x: f64| kind.narrow(x, truncate))
        } else {
            let wide = convert(par, wide, DType::F32, false)?;
            mapped(par, &wide, |x: f32| kind.narrow(f64::from(x), truncate))
        };
    }
    match target {
        // The upper bits mean nothing; like TensorFlow's they are zero.
        DType::I4 | DType::U4 => {
            mapped(par, &convert(par, wide, DType::I8, false)?, |x: i8| x & 15)
        }
        plain => convert(par, wide, plain, truncate),
    }
}

fn float8(dtype: DType) -> Option<Float8> {
    match dtype {
        DType::F8E5M2 => Some(Float8::E5M2),
        DType::F8E4M3Fn => Some(Float8::E4M3Fn),
        _ => None,
    }
}

/// `each` of every element; elements of a byte without arithmetic are read as `u8`.
fn mapped<S, D>(
    par: &dyn Par,
    input: &Tensor,
    each: impl Fn(S) -> D + Copy + Sync,
) -> Result<Tensor>
where
    S: Element + Copy,
    D: Element + Copy,
{
    let stored = input.clone().reinterpreted(S::DTYPE)?;
    let mut out = Tensor::new(D::DTYPE, input.shape().clone())?;
    map(par, stored.slice::<S>()?, out.slice_mut::<D>()?, each);
    Ok(out)
}
