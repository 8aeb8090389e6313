//! Activations with a parameter, and the bias of a layer. The others are [`crate::unary::Unary`] ops, their gradients
//! [`crate::binary::Binary`] ops.
//!
//! ```
//! use tensorfleet_math::{activation::{self, Channels}, par::Serial};
//! let mut y = [0.0f32; 2];
//! activation::leaky_relu(&Serial, &[-1.0, 2.0], 0.2, &mut y);
//! assert_eq!(y, [-0.2, 2.0]);
//! let x = [1.0f32, 2.0, 3.0, 4.0];
//! let mut y = [0.0; 4];
//! activation::bias_add(&Serial, Channels::last(2), &x, &[10.0, 20.0], &mut y);
//! assert_eq!(y, [11.0, 22.0, 13.0, 24.0]);
//! let mut db = [0.0; 2];
//! activation::bias_add_grad(&Serial, Channels { count: 2, inner: 2 }, &x, &mut db);
//! assert_eq!(db, [3.0, 7.0]);
//! ```

#[cfg(test)]
mod tests;

use crate::binary::{self, Binary, BinaryElement};
use crate::broadcast::Broadcast;
use crate::num::Real;
use crate::num::isa::multiversion;
use crate::par::{Par, chunks_mut};
use crate::reduce::{self, Layout, Reduce, ReduceElement};

const GRAIN: usize = 32 << 10;

/// Writes `x` where positive, else `alpha x`.
///
/// # Panics
/// If the lengths differ.
pub fn leaky_relu<T: Real>(par: &dyn Par, x: &[T], alpha: f32, out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "lengths of input and output differ");
    let alpha = T::from_f64(f64::from(alpha));
    chunks_mut(par, out, GRAIN, |at, out| {
        leaky_run(&x[at..at + out.len()], alpha, out)
    });
}

#[inline(always)]
fn leaky_loop<T: Real>(x: &[T], alpha: T, out: &mut [T]) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = if x > T::ZERO { x } else { x.mul(alpha) };
    }
}

multiversion! { fn leaky_run<T: Real>(x: &[T], alpha: T, out: &mut [T]) = leaky_loop; }

/// Writes `dy` where `x` is positive, else `alpha dy`.
///
/// # Panics
/// If the lengths differ.
pub fn leaky_relu_grad<T: Real>(par: &dyn Par, dy: &[T], x: &[T], alpha: f32, out: &mut [T]) {
    assert!(
        dy.len() == out.len() && x.len() == out.len(),
        "lengths of inputs and output differ"
    );
    let alpha = T::from_f64(f64::from(alpha));
    chunks_mut(par, out, GRAIN, |at, out| {
        let end = at + out.len();
        leaky_grad_run(&dy[at..end], &x[at..end], alpha, out);
    });
}

#[inline(always)]
fn leaky_grad_loop<T: Real>(dy: &[T], x: &[T], alpha: T, out: &mut [T]) {
    for ((out, &dy), &x) in out.iter_mut().zip(dy).zip(x) {
        *out = if x > T::ZERO { dy } else { dy.mul(alpha) };
    }
}

multiversion! { fn leaky_grad_run<T: Real>(dy: &[T], x: &[T], alpha: T, out: &mut [T]) = leaky_grad_loop; }

/// Where the channels of an input stand: `[anything, count, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Number of channels.
    pub count: usize,
    /// Elements of one channel that stand together: 1 for `NHWC`, height times width for `NCHW`.
    pub inner: usize,
}

impl Channels {
    /// Channels in the last dimension: `NHWC`, and matrices.
    pub fn last(count: usize) -> Self {
        Self { count, inner: 1 }
    }

    fn shape(self, len: usize) -> [usize; 3] {
        let one = self.count * self.inner;
        let outer = len.checked_div(one).unwrap_or(0);
        assert_eq!(
            outer * one,
            len,
            "{len} elements are no whole number of {} channels of {}",
            self.count,
            self.inner
        );
        [outer, self.count, self.inner]
    }

    fn broadcast(self, len: usize, bias: usize) -> Broadcast {
        assert_eq!(
            bias, self.count,
            "the bias has another length than there are channels"
        );
        Broadcast::new(&self.shape(len), &[self.count, 1])
            .expect("a bias broadcasts over its channels")
    }
}

/// Writes `x` plus the bias of its channel.
///
/// # Panics
/// If the lengths do not fit together.
pub fn bias_add<T: BinaryElement>(
    par: &dyn Par,
    channels: Channels,
    x: &[T],
    bias: &[T],
    out: &mut [T],
) {
    let plan = channels.broadcast(x.len(), bias.len());
    binary::apply(par, Binary::Add, &plan, x, bias, out).expect("numbers add");
}

/// Adds the bias of its channel to each of `x`.
///
/// # Panics
/// If the lengths do not fit together.
pub fn bias_add_in_place<T: BinaryElement>(
    par: &dyn Par,
    channels: Channels,
    x: &mut [T],
    bias: &[T],
) {
    let plan = channels.broadcast(x.len(), bias.len());
    binary::apply_lhs(par, Binary::Add, &plan, x, bias).expect("numbers add");
}

/// Writes the sum of each channel of `dy`.
///
/// # Panics
/// If the lengths do not fit together.
pub fn bias_add_grad<T: ReduceElement>(par: &dyn Par, channels: Channels, dy: &[T], out: &mut [T]) {
    let layout = Layout::new(&channels.shape(dy.len()), &[0, 2]);
    reduce::apply(par, Reduce::Sum, &layout, dy, out);
}
