//! Updates of rows by number, instantiated once for each dtype: what scattering ops on tensors and on
//! variables share.

use tensorfleet_math::movement::{self, Updates};
use tensorfleet_math::num::{Num, Real};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, internal, unimplemented};
use tensorfleet_tensor::{Bytes, DType, Element, Tensor};

use super::moves;
use crate::{by_number, by_real};

/// What an update does to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Assign,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// Applies row `i` of `updates` to row `rows[i]` of `dst`, in order. The row numbers must be good.
pub(crate) fn apply(
    par: &dyn Par,
    update: Update,
    dst: &mut Tensor,
    row_len: usize,
    rows: &[usize],
    updates: &Tensor,
) -> Result<()> {
    let dtype = dst.dtype();
    let unknown = || Err(unimplemented!("no {update:?} of rows of dtype {dtype}"));
    match (update, dtype) {
        (Update::Assign, _) => moves::scatter_rows(par, dst, row_len, rows, updates),
        (Update::Add, DType::Bool) => {
            run::<bool>(par, dst, row_len, rows, updates, |element, update| {
                *element |= *update;
            })
        }
        (Update::Add, DType::String) => run::<Bytes>(par, dst, row_len, rows, updates, append),
        (Update::Add, _) => {
            by_number!(dtype, T => run::<T>(par, dst, row_len, rows, updates, add), else => unknown())
        }
        (Update::Sub, DType::Bool) => {
            run::<bool>(par, dst, row_len, rows, updates, |element, update| {
                *element ^= *update;
            })
        }
        (Update::Sub, _) => {
            by_number!(dtype, T => run::<T>(par, dst, row_len, rows, updates, sub), else => unknown())
        }
        (Update::Mul, _) => {
            by_number!(dtype, T => run::<T>(par, dst, row_len, rows, updates, mul), else => unknown())
        }
        (Update::Div, _) => {
            by_number!(dtype, T => run::<T>(par, dst, row_len, rows, updates, div), else => unknown())
        }
        (Update::Min, _) => {
            by_real!(dtype, T => run::<T>(par, dst, row_len, rows, updates, min), else => unknown())
        }
        (Update::Max, _) => {
            by_real!(dtype, T => run::<T>(par, dst, row_len, rows, updates, max), else => unknown())
        }
    }
}

fn run<T: Element>(
    par: &dyn Par,
    dst: &mut Tensor,
    row_len: usize,
    rows: &[usize],
    updates: &Tensor,
    update: impl Fn(&mut T, &T) + Sync,
) -> Result<()> {
    let updates = Updates::Rows(updates.slice::<T>()?);
    movement::scatter(par, dst.slice_mut::<T>()?, row_len, rows, updates, update)
        .map_err(|bad| internal!("row {} is out of range", bad.value))
}

fn add<T: Num>(element: &mut T, update: &T) {
    *element = element.add(*update);
}

fn sub<T: Num>(element: &mut T, update: &T) {
    *element = element.sub(*update);
}

fn mul<T: Num>(element: &mut T, update: &T) {
    *element = element.mul(*update);
}

fn div<T: Num>(element: &mut T, update: &T) {
    *element = element.div(*update);
}

// Comparisons with NaN fail, so that the element stays: as in TensorFlow.
fn min<T: Real>(element: &mut T, update: &T) {
    if *update < *element {
        *element = *update;
    }
}

fn max<T: Real>(element: &mut T, update: &T) {
    if *update > *element {
        *element = *update;
    }
}

fn append(element: &mut Bytes, update: &Bytes) {
    *element = [element.as_ref(), update.as_ref()].concat().into();
}
