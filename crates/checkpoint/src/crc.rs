//! crc32c as TensorFlow's files store it: Castagnoli, then masked.
//!
//! Checksums are *masked* on disk because a checksum of data that itself contains checksums has weak
//! spots. Long inputs can be split, summed apart and joined again with [`combine`].

/// What masking adds after the rotation.
const MASK_DELTA: u32 = 0xa282_ead8;

/// The crc32c of some bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The crc32c of `A ‖ bytes` where `crc` is that of `A`.
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

/// The crc32c of `A ‖ B` from the sums of both and the length of `B`.
pub fn combine(crc_a: u32, crc_b: u32, len_b: usize) -> u32 {
    // Joining takes some ten microseconds; nothing before, the most common case, needs none of them.
    if crc_a == 0 {
        return crc_b;
    }
    ::crc32c::crc32c_combine(crc_a, crc_b, len_b)
}

/// The form a checksum has on disk.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The checksum behind its form on disk.
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// The masked crc32c of some bytes.
pub fn masked(bytes: &[u8]) -> u32 {
    mask(crc32c(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_match_published_vectors() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked(b""), 0xa282_ead8);
    }

    #[test]
    fn mask_is_undone_by_unmask() {
        for crc in [0, 1, 0xffff_ffff, 0x1234_5678, 0x8000_0000] {
            assert_eq!(unmask(mask(crc)), crc);
            assert_ne!(mask(crc), crc);
        }
    }

    #[test]
    fn parts_join_to_the_whole() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7 + i / 13) as u8).collect();
        let whole = crc32c(&bytes);
        for split in [0, 1, 17, 4096, 9_999, 10_000] {
            let (a, b) = bytes.split_at(split);
            assert_eq!(extend(crc32c(a), b), whole);
            assert_eq!(combine(crc32c(a), crc32c(b), b.len()), whole);
        }
    }
}
