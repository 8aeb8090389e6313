//! Ids of frames: part of rendezvous keys.

/// TensorFlow's id of a child frame: sender and receiver of a tensor compute it independently.
pub(super) fn child_frame_id(parent_id: u64, parent_iteration: i64, name: &str) -> u64 {
    combine(
        parent_id,
        combine(
            parent_iteration as u64,
            hash64(name.as_bytes(), 0x00DE_CAFC_AFFE),
        ),
    )
}

fn combine(a: u64, b: u64) -> u64 {
    a ^ b
        .wrapping_add(0x9e37_79b9_7f4a_7800)
        .wrapping_add(a << 10)
        .wrapping_add(a >> 4)
}

/// MurmurHash64A.
fn hash64(data: &[u8], seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (data.len() as u64).wrapping_mul(MULTIPLIER);
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let mut k = u64::from_le_bytes(word.try_into().unwrap_or_default());
        k = k.wrapping_mul(MULTIPLIER);
        k ^= k >> SHIFT;
        k = k.wrapping_mul(MULTIPLIER);
        hash ^= k;
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let mut word = [0u8; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash ^= u64::from_le_bytes(word);
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_ids_are_tensorflows() {
        // Seen on the wire: frame "loop/while_context" entered from the top level.
        assert_eq!(
            child_frame_id(0, 0, "loop/while_context"),
            6_339_987_812_709_914_503
        );
    }
}
