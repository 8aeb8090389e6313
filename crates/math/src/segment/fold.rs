//! The segment operations by type.

use half::{bf16, f16};
use num_complex::Complex;

use super::Segment;
use crate::num::isa::multiversion;
use crate::num::{Num, Real};

/// One operation of one type.
#[doc(hidden)]
pub struct Fold<T: Num> {
    /// What a combination starts from.
    pub(super) start: T::Acc,
    /// What a sorted segment without rows is.
    pub(super) empty: T,
    /// What an unsorted segment starts from, and is without rows.
    pub(super) bound: T,
    /// Combines rows, one behind the other, into accumulators.
    pub(super) widened: fn(&mut [T::Acc], &[T]),
    /// Combines a row into a row.
    pub(super) in_place: fn(&mut [T], &[T]),
}

/// A type with segment operations.
pub trait SegmentElement: Num {
    #[doc(hidden)]
    fn fold(op: Segment) -> Option<Fold<Self>>;

    /// Whether the type has the operation.
    fn supports(op: Segment) -> bool {
        Self::fold(op).is_some()
    }
}

/// Columns that are summed up together, in registers.
const COLUMNS: usize = 16;

#[inline(always)]
fn add_body<T: Num>(acc: &mut [T::Acc], rows: &[T]) {
    let row_len = acc.len();
    let (strips, rest) = acc.as_chunks_mut::<COLUMNS>();
    let begin = row_len - rest.len();
    for (strip, acc) in strips.iter_mut().enumerate() {
        let mut sums = *acc;
        for row in rows.chunks_exact(row_len) {
            let Some(row) = row[strip * COLUMNS..].first_chunk::<COLUMNS>() else {
                continue;
            };
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum = sum.add(x.to_acc());
            }
        }
        *acc = sums;
    }
    for row in rows.chunks_exact(row_len) {
        for (acc, x) in rest.iter_mut().zip(&row[begin..]) {
            *acc = acc.add(x.to_acc());
        }
    }
}

#[inline(always)]
fn add_in_place_body<T: Num>(into: &mut [T], row: &[T]) {
    for (into, x) in into.iter_mut().zip(row) {
        *into = T::from_acc(into.to_acc().add(x.to_acc()));
    }
}

multiversion! { fn add<T: Num>(acc: &mut [T::Acc], row: &[T]) = add_body; }
multiversion! { fn add_in_place<T: Num>(into: &mut [T], row: &[T]) = add_in_place_body; }

fn multiply<T: Num>(acc: &mut [T::Acc], rows: &[T]) {
    for row in rows.chunks_exact(acc.len()) {
        for (acc, x) in acc.iter_mut().zip(row) {
            *acc = acc.mul(x.to_acc());
        }
    }
}

fn multiply_in_place<T: Num>(into: &mut [T], row: &[T]) {
    for (into, x) in into.iter_mut().zip(row) {
        *into = T::from_acc(into.to_acc().mul(x.to_acc()));
    }
}

/// Accumulators of the largest are exact, whatever they are carried in.
fn raise<T: Real>(acc: &mut [T::Acc], rows: &[T]) {
    for row in rows.chunks_exact(acc.len()) {
        for (acc, x) in acc.iter_mut().zip(row) {
            *acc = T::from_acc(*acc).larger(*x).to_acc();
        }
    }
}

fn raise_in_place<T: Real>(into: &mut [T], row: &[T]) {
    for (into, x) in into.iter_mut().zip(row) {
        *into = into.larger(*x);
    }
}

fn lower<T: Real>(acc: &mut [T::Acc], rows: &[T]) {
    for row in rows.chunks_exact(acc.len()) {
        for (acc, x) in acc.iter_mut().zip(row) {
            *acc = T::from_acc(*acc).smaller(*x).to_acc();
        }
    }
}

fn lower_in_place<T: Real>(into: &mut [T], row: &[T]) {
    for (into, x) in into.iter_mut().zip(row) {
        *into = into.smaller(*x);
    }
}

fn sums<T: Num>(op: Segment) -> Option<Fold<T>> {
    match op {
        Segment::Sum | Segment::Mean | Segment::SqrtN => Some(Fold {
            start: T::Acc::ZERO,
            empty: T::ZERO,
            bound: T::ZERO,
            widened: add::<T>,
            in_place: add_in_place::<T>,
        }),
        Segment::Prod => Some(Fold {
            start: T::Acc::ONE,
            empty: T::ONE,
            bound: T::ONE,
            widened: multiply::<T>,
            in_place: multiply_in_place::<T>,
        }),
        _ => None,
    }
}

fn extremes<T: Real>(op: Segment, lowest: T, highest: T) -> Option<Fold<T>> {
    match op {
        Segment::Max => Some(Fold {
            start: T::LOWEST.to_acc(),
            empty: T::ZERO,
            bound: lowest,
            widened: raise::<T>,
            in_place: raise_in_place::<T>,
        }),
        Segment::Min => Some(Fold {
            start: T::HIGHEST.to_acc(),
            empty: T::ZERO,
            bound: highest,
            widened: lower::<T>,
            in_place: lower_in_place::<T>,
        }),
        _ => sums(op),
    }
}

macro_rules! real {
    ($($t:ty),*) => {$(
        impl SegmentElement for $t {
            fn fold(op: Segment) -> Option<Fold<Self>> {
                extremes(op, <$t>::MIN, <$t>::MAX)
            }
        }
    )*};
}

real!(f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl SegmentElement for Complex<$t> {
            fn fold(op: Segment) -> Option<Fold<Self>> {
                sums(op)
            }
        }
    )*};
}

complex!(f32, f64);
