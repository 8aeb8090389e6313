//! `RandomIndexShuffle`: a permutation by a small cipher of the Simon kind, evaluated at single places.

/// A permutation of `0..=most`.
pub struct IndexShuffle {
    most: u64,
    /// Bits of half a block.
    width: u32,
    keys: Vec<u64>,
}

impl IndexShuffle {
    /// The permutation of a key; `rounds` must be even and at least 4.
    pub fn new(key: [u32; 3], most: u64, rounds: usize) -> IndexShuffle {
        // TensorFlow's block has as many bits as the logarithm says, an even number of at least 16.
        let bits = (most.max(1) as f64).log2().ceil() as u32;
        let width = (bits + bits % 2).clamp(16, 64) / 2;
        let mask = (1 << width) - 1;
        let mut keys: Vec<u64> = key.iter().map(|word| u64::from(*word) & mask).collect();
        let mut sequence = 0x7369_f885_192c_0ef5u64 & mask;
        for at in 3..rounds {
            let last = keys[at - 1];
            let turned = rotated(last, width - 3, width) ^ rotated(last, width - 4, width);
            keys.push((0xffff_fffc & mask) ^ (sequence & 1) ^ keys[at - 3] ^ turned);
            sequence >>= 1;
        }
        IndexShuffle { most, width, keys }
    }

    /// Where `index`, which must not be beyond the last place, goes.
    pub fn place(&self, index: u64) -> u64 {
        if self.most == 0 {
            return 0;
        }
        // Blocks may have more places than there are; a cycle of the cipher comes back to one of ours.
        let mut place = index;
        loop {
            place = self.encrypted(place);
            if place <= self.most {
                return place;
            }
        }
    }

    fn encrypted(&self, value: u64) -> u64 {
        let width = self.width;
        let mask = (1 << width) - 1;
        let mix = |x: u64| rotated(x, 1, width) & rotated(x, 8, width) ^ rotated(x, 2, width);
        let (mut left, mut right) = (value >> width & mask, value & mask);
        for pair in self.keys.chunks_exact(2) {
            left ^= mix(right) ^ pair[0];
            right ^= mix(left) ^ pair[1];
        }
        left << width | right
    }
}

/// `x`, of `width` bits, turned to the left.
fn rotated(x: u64, by: u32, width: u32) -> u64 {
    let mask = (1 << width) - 1;
    (x << by) & mask | x >> (width - by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_taken_once() {
        for most in [0u64, 1, 5, 1000, 70_000] {
            let shuffle = IndexShuffle::new([1, 2, 3], most, 4);
            let mut found: Vec<u64> = (0..=most).map(|at| shuffle.place(at)).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(0..=most));
        }
    }
}
