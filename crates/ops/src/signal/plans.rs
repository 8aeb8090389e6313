//! What a transform's kernel keeps from run to run: plans of the lengths it met.

use std::sync::{Arc, Mutex, PoisonError};

use num_complex::Complex;
use tensorfleet_math::fft::{Direction, Plan, Real, RealPlan, lines};
use tensorfleet_math::par::Par;

/// A kernel that meets more lengths than these makes plans anew.
const KEPT: usize = 4;

/// The latest plans of a kernel.
pub(super) struct Plans<P>(Mutex<Vec<(usize, Arc<P>)>>);

impl<P> Plans<P> {
    pub(super) fn new() -> Plans<P> {
        Plans(Mutex::new(Vec::new()))
    }

    /// The plan for a length; made outside of the lock, as that may take as long as a transform.
    fn get(&self, len: usize, make: impl FnOnce(usize) -> P) -> Arc<P> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = lock().iter().find(|(kept, _)| *kept == len) {
            return plan.clone();
        }
        let plan = Arc::new(make(len));
        let mut kept = lock();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((len, plan.clone()));
        plan
    }
}

impl<T: Real> Plans<RealPlan<T>> {
    /// The plan for real lines.
    pub(super) fn real(&self, len: usize) -> Arc<RealPlan<T>> {
        self.get(len, RealPlan::new)
    }
}

impl<T: Real> Plans<Plan<T>> {
    /// Transforms `data`, whose last dimensions are `lengths` and then `inner`, along each of `lengths`; the first of
    /// these is done with `scale`.
    pub(super) fn transform(
        &self,
        par: &dyn Par,
        data: &mut [Complex<T>],
        (lengths, inner): (&[usize], usize),
        direction: Direction,
        scale: f64,
    ) {
        if data.is_empty() {
            // Lengths of nothing are not bounded by memory.
            return;
        }
        let mut inner = inner;
        for (axis, len) in lengths.iter().enumerate().rev() {
            let plan = self.get(*len, Plan::new);
            let scale = if axis == 0 { scale } else { 1.0 };
            lines(par, &plan, data, inner, direction, scale);
            inner *= len;
        }
    }
}
