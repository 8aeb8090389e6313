//! Random numbers that name things: sessions, steps, requests, incarnations.
//!
//! They must differ between processes and restarts, so a server draws them from the system's entropy; a simulation
//! draws them from its seed.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A random number of the system, never zero.
pub fn random() -> u64 {
    // Each thread of each process hashes with keys from the system's entropy.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(NEXT.fetch_add(1, Ordering::Relaxed));
    hasher.finish().max(1)
}

/// Where a task's names come from.
pub struct Ids(Option<AtomicU64>);

impl Ids {
    /// Names that nobody can foresee.
    pub fn system() -> Ids {
        Ids(None)
    }

    /// The same names for the same seed.
    pub fn seeded(seed: u64) -> Ids {
        Ids(Some(AtomicU64::new(seed)))
    }

    /// A random number, never zero.
    pub fn random(&self) -> u64 {
        let Some(state) = &self.0 else {
            return random();
        };
        // SplitMix64.
        let step = 0x9e37_79b9_7f4a_7c15u64;
        let mut z = state.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).max(1)
    }

    /// The id of a step: positive, and clear in the bits that TensorFlow keeps for itself.
    pub(crate) fn step_id(&self) -> i64 {
        (self.random() >> 7).max(1) as i64
    }

    /// The id of a request, which a retry repeats.
    pub(crate) fn request_id(&self) -> i64 {
        self.random() as i64
    }

    /// The handle of a session.
    pub(crate) fn session_handle(&self) -> String {
        format!("{:016x}", self.random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_the_system_does_not() {
        let draw = |ids: Ids| -> Vec<u64> { (0..8).map(|_| ids.random()).collect() };
        assert_eq!(draw(Ids::seeded(7)), draw(Ids::seeded(7)));
        assert_ne!(draw(Ids::seeded(7)), draw(Ids::seeded(8)));
        assert_ne!(draw(Ids::system()), draw(Ids::system()));
    }
}
