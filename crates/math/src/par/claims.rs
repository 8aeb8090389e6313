//! Ranges for whoever asks next.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Par;

/// Cuts `0..len` for several threads as they ask: large ranges at first, smaller ones towards the end, so that a delayed thread
/// is made up for by the others.
pub(crate) struct Claims {
    /// First index not claimed yet.
    next: AtomicUsize,
    len: usize,
    grain: usize,
    threads: usize,
}

impl Claims {
    /// Ranges begin at multiples of `grain`, which is at least 1.
    pub(crate) fn new(len: usize, grain: usize, threads: usize) -> Self {
        Self {
            next: AtomicUsize::new(0),
            len,
            grain,
            threads,
        }
    }

    /// Whether all has been claimed.
    pub(crate) fn are_over(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.len
    }
}

/// The ranges that nobody else gets.
impl Iterator for &Claims {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let mut begin = self.next.load(Ordering::Relaxed);
        while begin < self.len {
            let left = self.len - begin;
            let size = if self.threads > 1 {
                (left / (2 * self.threads) / self.grain).max(1) * self.grain
            } else {
                left
            };
            let end = begin.saturating_add(size).min(self.len);
            match self
                .next
                .compare_exchange_weak(begin, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Some(begin..end),
                Err(now) => begin = now,
            }
        }
        None
    }
}

/// Runs `body` on every thread that comes to help with `0..len`: it takes ranges until none is left, and what it prepares for
/// the first serves it for all.
pub(crate) fn crew(par: &dyn Par, len: usize, grain: usize, body: &(dyn Fn(&Claims) + Sync)) {
    let grain = grain.max(1);
    let threads = par.threads().min(len.div_ceil(grain));
    let claims = Claims::new(len, grain, threads);
    par.for_each(threads, 1, &|members| {
        for _ in members {
            body(&claims);
        }
    });
}
