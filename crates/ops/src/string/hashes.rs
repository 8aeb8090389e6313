//! Hashes of bytes that are the same everywhere: SipHash with a key, and the one that TensorFlow used before FarmHash.

/// SipHash-2-4.
pub(crate) fn sip_hash(key: [u64; 2], data: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = data.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = data.len() as u8;
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        state[3] ^= word;
        (0..2).for_each(|_| sip_round(&mut state));
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn sip_round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32).wrapping_add(d);
    c = c.wrapping_add(b);
    d = d.rotate_left(21) ^ a;
    b = b.rotate_left(17) ^ c;
    *state = [a, b, c.rotate_left(32), d];
}

/// MurmurHash64A with TensorFlow's seed.
pub(crate) fn murmur(data: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0x00de_cafc_affe;
    let mixed = |word: u64| {
        let word = word.wrapping_mul(MULTIPLIER);
        (word ^ (word >> 47)).wrapping_mul(MULTIPLIER)
    };
    let (words, rest) = data.as_chunks::<8>();
    let mut hash = SEED ^ (data.len() as u64).wrapping_mul(MULTIPLIER);
    for word in words {
        hash = (hash ^ mixed(u64::from_le_bytes(*word))).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 47)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sip_hash_of_its_authors_is_met() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let data: Vec<u8> = (0..15).collect();
        assert_eq!(sip_hash(key, &data), 0xa129_ca61_49be_45e5);
    }
}
