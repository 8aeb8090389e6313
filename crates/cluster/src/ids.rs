//! Random numbers that name things: sessions, steps, requests, incarnations.
//!
//! They must differ between processes and restarts, so they start from the system's entropy.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A random number, never zero.
pub fn random() -> u64 {
    // Each thread of each process hashes with keys from the system's entropy.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(NEXT.fetch_add(1, Ordering::Relaxed));
    hasher.finish().max(1)
}

/// The id of a step: positive, and clear in the bits that TensorFlow keeps for itself.
pub(crate) fn step_id() -> i64 {
    (random() >> 7).max(1) as i64
}

/// The id of a request, which a retry repeats.
pub(crate) fn request_id() -> i64 {
    random() as i64
}

/// The handle of a session.
pub(crate) fn session_handle() -> String {
    format!("{:016x}", random())
}
