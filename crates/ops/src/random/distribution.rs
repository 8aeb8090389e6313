//! Which numbers to draw: one function per distribution and dtype.

use tensorfleet_math::par::Par;
use tensorfleet_math::random::{
    Philox, fill_full_int, fill_normal, fill_truncated_normal, fill_uniform, fill_uniform_int,
};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Tensor};

use crate::by_float;

/// Fills a whole tensor from a place in a stream.
pub(super) type Fill = fn(&dyn Par, Philox, &mut Tensor) -> Result<()>;

/// A distribution without parameters.
#[derive(Clone, Copy)]
pub(super) enum Distribution {
    Uniform,
    Normal,
    TruncatedNormal,
    /// All integers of the type.
    FullInt,
}

impl Distribution {
    pub(super) fn fill(self, dtype: DType) -> Result<Fill> {
        let unsupported = || internal!("random numbers of {dtype} are not drawn");
        Ok(match self {
            Distribution::Uniform => {
                by_float!(dtype, T => |par, philox, out| { fill_uniform(par, philox, out.slice_mut::<T>()?); Ok(()) }, else => return Err(unsupported()))
            }
            Distribution::Normal => {
                by_float!(dtype, T => |par, philox, out| { fill_normal(par, philox, out.slice_mut::<T>()?); Ok(()) }, else => return Err(unsupported()))
            }
            Distribution::TruncatedNormal => {
                by_float!(dtype, T => |par, philox, out| { fill_truncated_normal(par, philox, out.slice_mut::<T>()?); Ok(()) }, else => return Err(unsupported()))
            }
            Distribution::FullInt => match dtype {
                DType::I32 => full_int::<i32>,
                DType::I64 => full_int::<i64>,
                DType::U32 => full_int::<u32>,
                DType::U64 => full_int::<u64>,
                _ => return Err(unsupported()),
            },
        })
    }
}

fn full_int<T: Element + tensorfleet_math::random::FullInt>(
    par: &dyn Par,
    philox: Philox,
    out: &mut Tensor,
) -> Result<()> {
    fill_full_int(par, philox, out.slice_mut::<T>()?);
    Ok(())
}

fn check_scalars(low: &Tensor, high: &Tensor) -> Result<()> {
    for (name, bound) in [("minval", low), ("maxval", high)] {
        if bound.rank() != 0 {
            return Err(invalid_argument!(
                "{name} must be 0-D, got shape {}",
                bound.shape()
            ));
        }
    }
    Ok(())
}

/// Refuses a range that is empty.
pub(super) fn check_range(low: &Tensor, high: &Tensor) -> Result<()> {
    check_scalars(low, high)?;
    let (from, to) = match low.dtype() {
        DType::I32 => (
            low.to_scalar::<i32>()?.into(),
            high.to_scalar::<i32>()?.into(),
        ),
        _ => (low.to_scalar::<i64>()?, high.to_scalar::<i64>()?),
    };
    if from >= to {
        return Err(invalid_argument!(
            "Need minval < maxval, got {from} >= {to}"
        ));
    }
    Ok(())
}

/// Integers of `low..high`, which must not be empty unless the output is.
pub(super) fn fill_range(
    par: &dyn Par,
    philox: Philox,
    low: &Tensor,
    high: &Tensor,
    out: &mut Tensor,
) -> Result<()> {
    check_scalars(low, high)?;
    match out.dtype() {
        DType::I32 => range::<i32>(par, philox, low, high, out),
        DType::I64 => range::<i64>(par, philox, low, high, out),
        other => Err(internal!("random integers of {other} are not drawn")),
    }
}

fn range<T>(
    par: &dyn Par,
    philox: Philox,
    low: &Tensor,
    high: &Tensor,
    out: &mut Tensor,
) -> Result<()>
where
    T: Element + tensorfleet_math::random::UniformInt + Sync + std::fmt::Display + Copy,
{
    let (low, high) = (low.to_scalar::<T>()?, high.to_scalar::<T>()?);
    if out.is_empty() {
        return Ok(());
    }
    if low >= high {
        return Err(invalid_argument!(
            "Need minval < maxval, got {low} >= {high}"
        ));
    }
    fill_uniform_int(par, philox, low, high, out.slice_mut::<T>()?);
    Ok(())
}
