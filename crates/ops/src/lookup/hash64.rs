//! TensorFlow's hash of bytes, MurmurHash64A with a seed of its own: dense tables place string keys by it, and
//! checkpoints hold their buckets as they are.

const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SEED: u64 = 0x00de_cafc_affe;

/// The hash of some bytes.
pub(super) fn hash64(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> 47;
        hash = (hash ^ mixed.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        for (slot, byte) in last.iter_mut().zip(rest) {
            *slot = *byte;
        }
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 47)
}

/// A hash of several, one after the other.
pub(super) fn combine(so_far: u64, next: u64) -> u64 {
    let mixed = next
        .wrapping_add(0x9e37_79b9_7f4a_7800)
        .wrapping_add(so_far << 10)
        .wrapping_add(so_far >> 4);
    so_far ^ mixed
}
