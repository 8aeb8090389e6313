//! Running sums and products along one axis.

use half::{bf16, f16};

use super::Axis;
use crate::num::Num;
use crate::par::{Par, rows_mut};

/// What a scan carries along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// `Cumsum`
    Sum,
    /// `Cumprod`
    Prod,
    /// `CumulativeLogsumexp`; floats only
    LogSumExp,
}

/// A type with scans.
pub trait ScanElement: Num {
    /// `ln(e^a + e^b)`, if the type has it.
    #[doc(hidden)]
    const LOG_ADD_EXP: Option<fn(Self, Self) -> Self>;
    /// The start of a scan by logarithms.
    #[doc(hidden)]
    const LOG_ZERO: Self;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        impl ScanElement for $t {
            const LOG_ADD_EXP: Option<fn(Self, Self) -> Self> = None;
            const LOG_ZERO: Self = <$t as Num>::ZERO;
        }
    )*};
}

plain!(
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    num_complex::Complex<f32>,
    num_complex::Complex<f64>
);

impl ScanElement for f64 {
    const LOG_ADD_EXP: Option<fn(Self, Self) -> Self> = Some(|a, b| {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        // Two equal infinities have no difference.
        if low == high {
            high + std::f64::consts::LN_2
        } else {
            high + (low - high).exp().ln_1p()
        }
    });
    const LOG_ZERO: Self = f64::NEG_INFINITY;
}

macro_rules! narrow {
    ($($t:ty),*) => {$(
        impl ScanElement for $t {
            const LOG_ADD_EXP: Option<fn(Self, Self) -> Self> = Some(|a, b| {
                let (a, b) = (<$t as crate::num::Real>::to_f64(a), <$t as crate::num::Real>::to_f64(b));
                f64::LOG_ADD_EXP.map_or(<$t as Num>::ZERO, |f| <$t as Num>::from_f64(f(a, b)))
            });
            const LOG_ZERO: Self = <$t>::NEG_INFINITY;
        }
    )*};
}

narrow!(f32, f16, bf16);

/// Writes the running `scan` of `x` along `axis`; `exclusive` leaves out the element itself, `reverse` runs from the end.
///
/// # Panics
/// If the lengths are not those of `axis`, or the type has no such scan.
pub fn cumulate<T: ScanElement>(
    par: &dyn Par,
    scan: Scan,
    (exclusive, reverse): (bool, bool),
    axis: Axis,
    x: &[T],
    out: &mut [T],
) {
    assert_eq!(
        axis.elements(),
        x.len(),
        "the input's length is not that of the axis"
    );
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    let (start, f): (T, fn(T, T) -> T) = match scan {
        Scan::Sum => (T::ZERO, T::add),
        Scan::Prod => (T::ONE, T::mul),
        Scan::LogSumExp => (
            T::LOG_ZERO,
            T::LOG_ADD_EXP.expect("a scan by logarithms needs floats"),
        ),
    };
    let piece = axis.len * axis.inner;
    if piece == 0 {
        return;
    }
    let grain = 16_384usize.div_ceil(piece);
    rows_mut(par, out, piece, grain, |first, out| {
        let mut carry = vec![start; axis.inner];
        for (x, out) in x[first * piece..].chunks(piece).zip(out.chunks_mut(piece)) {
            carry.fill(start);
            for step in 0..axis.len {
                let at = if reverse { axis.len - 1 - step } else { step } * axis.inner;
                let row = x[at..].iter().zip(&mut out[at..]);
                for (carry, (&x, out)) in carry.iter_mut().zip(row) {
                    let next = f(*carry, x);
                    *out = if exclusive { *carry } else { next };
                    *carry = next;
                }
            }
        }
    });
}
