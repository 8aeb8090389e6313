//! Updates of rows by number, instantiated once for each dtype: what scattering ops on tensors and on
//! variables share.

use std::borrow::Cow;

use tensorfleet_math::movement::{self, Updates};
use tensorfleet_math::num::{Num, Real};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Status, unimplemented};
use tensorfleet_tensor::{DType, Element, TString, Tensor};

use super::moves::{self, RowsError};
use crate::{by_number, by_real};

/// Indices as row numbers. One type of them is enough for all loops; the common one need not be copied for it.
pub(crate) fn row_numbers(indices: &Tensor) -> Result<Cow<'_, [i64]>, Status> {
    macro_rules! widened {
        ($($dtype:ident => $type:ty),*) => {
            match indices.dtype() {
                $(DType::$dtype => Cow::Owned(indices.slice::<$type>()?.iter().map(|index| i64::from(*index)).collect()),)*
                _ => Cow::Borrowed(indices.slice::<i64>()?),
            }
        };
    }
    Ok(widened!(I32 => i32, I16 => i16, U16 => u16))
}

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

/// Applies row `i` of `updates` to row `rows[i]` of `dst`, in order; nothing if a row number is bad.
pub(crate) fn apply(
    par: &dyn Par,
    update: Update,
    dst: &mut Tensor,
    row_len: usize,
    rows: &[i64],
    updates: &Tensor,
) -> Result<(), RowsError> {
    let dtype = dst.dtype();
    let unknown = || Err(unimplemented!("no {update:?} of rows of dtype {dtype}").into());
    match (update, dtype) {
        (Update::Assign, _) => moves::scatter_rows(par, dst, row_len, rows, updates),
        (Update::Add, DType::Bool) => {
            run::<bool>(par, dst, row_len, rows, updates, |element, update| {
                *element |= *update;
            })
        }
        (Update::Add, DType::String) => run::<TString>(par, dst, row_len, rows, updates, append),
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
    rows: &[i64],
    updates: &Tensor,
    update: impl Fn(&mut T, &T) + Sync,
) -> Result<(), RowsError> {
    let updates = Updates::Rows(updates.slice::<T>()?);
    movement::scatter(par, dst.slice_mut::<T>()?, row_len, rows, updates, update)?;
    Ok(())
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

fn append(element: &mut TString, update: &TString) {
    *element = [element.as_ref(), update.as_ref()].concat().into();
}
