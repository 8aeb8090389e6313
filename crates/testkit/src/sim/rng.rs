//! [`Rng`]: everything a seed decides is drawn from here.

use std::time::Duration;

/// A sequence of numbers that a seed repeats.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// SplitMix64.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `limit`, which is not zero.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    /// One of `low..=high`.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True so many times in a thousand.
    pub(super) fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < per_mille as usize
    }

    pub(super) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(low + self.next() % (high - low + 1))
    }

    /// A sequence of its own.
    pub(super) fn fork(&mut self) -> Rng {
        Rng(self.next())
    }
}
