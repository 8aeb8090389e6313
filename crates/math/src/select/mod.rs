//! Picking elements by a mask, and clipping.
//!
//! ```
//! use tensorfleet_math::{par::Serial, select::{self, Select}};
//! let mut out = [0; 4];
//! let plan = Select::new(&[2, 1], &[2, 2], &[])?;
//! select::select(&Serial, &plan, &[true, false], &[1, 2, 3, 4], &[9], &mut out);
//! assert_eq!(out, [1, 2, 9, 9]);
//! select::clip(&Serial, &[1, 2, 3, 9], &[2], &[3], &mut out);
//! assert_eq!(out, [2, 2, 3, 3]);
//! # Ok::<(), tensorfleet_math::broadcast::Incompatible>(())
//! ```

#[cfg(test)]
mod tests;

use num_complex::Complex;

use crate::broadcast::{Incompatible, Reader, View, out_shape};
use crate::num::Real;
use crate::num::isa::multiversion;
use crate::par::{Par, chunks_mut};

const GRAIN: usize = 32 << 10;

/// How a mask and two inputs are read for an output of their common shape.
#[derive(Clone, Debug)]
pub struct Select {
    len: usize,
    mask: View,
    yes: View,
    no: View,
}

impl Select {
    /// For a mask and inputs of these shapes.
    ///
    /// `Select` with a vector as mask for the rows of a tensor is a mask of shape `[n, 1, …]` here.
    ///
    /// # Errors
    /// [`Incompatible`] if they do not broadcast.
    pub fn new(mask: &[usize], yes: &[usize], no: &[usize]) -> Result<Self, Incompatible> {
        let out = out_shape(&[mask, yes, no])?;
        Ok(Self {
            len: out.iter().product(),
            mask: View::new(mask, &out)?,
            yes: View::new(yes, &out)?,
            no: View::new(no, &out)?,
        })
    }

    /// Elements of the output.
    #[expect(clippy::len_without_is_empty, reason = "a plan, not a collection")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Writes `yes` where `mask` is true, else `no`. Any plain type will do: callers may go by element size.
///
/// # Panics
/// If the lengths are not those of `plan`.
pub fn select<T: Copy + Send + Sync>(
    par: &dyn Par,
    plan: &Select,
    mask: &[bool],
    yes: &[T],
    no: &[T],
    out: &mut [T],
) {
    assert_eq!(
        plan.len,
        out.len(),
        "the output's length is not that of the plan"
    );
    chunks_mut(par, out, GRAIN, |mut at, mut out| {
        let mut mask = Reader::new(&plan.mask, mask, out.len());
        let mut yes = Reader::new(&plan.yes, yes, out.len());
        let mut no = Reader::new(&plan.no, no, out.len());
        while !out.is_empty() {
            let run = out.len().min(mask.run(at)).min(yes.run(at)).min(no.run(at));
            let (now, later) = out.split_at_mut(run);
            select_run(mask.get(at, run), yes.get(at, run), no.get(at, run), now);
            at += run;
            out = later;
        }
    });
}

#[inline(always)]
fn select_loop<T: Copy>(mask: &[bool], yes: &[T], no: &[T], out: &mut [T]) {
    for (((out, &mask), &yes), &no) in out.iter_mut().zip(mask).zip(yes).zip(no) {
        *out = if mask { yes } else { no };
    }
}

multiversion! { fn select_run<T: Copy>(mask: &[bool], yes: &[T], no: &[T], out: &mut [T]) = select_loop; }

/// Writes `max(min(x, high), low)`; NaN stays. Each limit is one value or one per element.
///
/// # Panics
/// If the lengths do not fit together.
pub fn clip<T: Real>(par: &dyn Par, x: &[T], low: &[T], high: &[T], out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    let view = |limit: &[T]| {
        if limit.len() == x.len() {
            return View::FULL;
        }
        assert_eq!(
            limit.len(),
            1,
            "a limit is one value or as many as the input"
        );
        View::SCALAR
    };
    let (low_view, high_view) = (view(low), view(high));
    chunks_mut(par, out, GRAIN, |mut at, mut out| {
        let mut low = Reader::new(&low_view, low, out.len());
        let mut high = Reader::new(&high_view, high, out.len());
        while !out.is_empty() {
            let run = out.len().min(low.run(at)).min(high.run(at));
            let (now, later) = out.split_at_mut(run);
            clip_run(&x[at..at + run], low.get(at, run), high.get(at, run), now);
            at += run;
            out = later;
        }
    });
}

/// As [`clip`], the real and the imaginary parts each between those of the limits.
///
/// # Panics
/// As [`clip`].
pub fn clip_complex<T: Real>(
    par: &dyn Par,
    x: &[Complex<T>],
    low: &[Complex<T>],
    high: &[Complex<T>],
    out: &mut [Complex<T>],
) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    for limit in [low, high] {
        assert!(
            limit.len() == 1 || limit.len() == x.len(),
            "a limit is one value or as many as the input"
        );
    }
    let part = |x: T, low: T, high: T| {
        let x = if high < x { high } else { x };
        if x < low { low } else { x }
    };
    let at_of = |limit: &[Complex<T>], at: usize| limit[if limit.len() == 1 { 0 } else { at }];
    chunks_mut(par, out, GRAIN, |start, out| {
        for (at, out) in (start..).zip(out) {
            let (x, low, high) = (x[at], at_of(low, at), at_of(high, at));
            *out = Complex::new(part(x.re, low.re, high.re), part(x.im, low.im, high.im));
        }
    });
}

#[inline(always)]
fn clip_loop<T: Real>(x: &[T], low: &[T], high: &[T], out: &mut [T]) {
    for (((out, &x), &low), &high) in out.iter_mut().zip(x).zip(low).zip(high) {
        let x = if high < x { high } else { x };
        *out = if x < low { low } else { x };
    }
}

multiversion! { fn clip_run<T: Real>(x: &[T], low: &[T], high: &[T], out: &mut [T]) = clip_loop; }
