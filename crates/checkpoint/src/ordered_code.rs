//! Order-preserving encoding of strings and integers, used in the keys of tensor slices.
//!
//! Encoded values compare bytewise as the values themselves do. A slice of tensor `name` is stored
//! under: number 0 · string `name` · number of dimensions · (signed start, signed length) per dimension.

use crate::slice::TensorSlice;

/// Length that stands for "the whole dimension".
const FULL_EXTENT: i64 = -1;

/// The table key of a slice.
pub fn slice_key(name: &[u8], slice: &TensorSlice) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 4 + 4 * slice.rank());
    put_unsigned(&mut key, 0);
    put_string(&mut key, name);
    put_unsigned(&mut key, slice.rank() as u64);
    for extent in slice.extents() {
        put_signed(&mut key, extent.start);
        put_signed(&mut key, extent.length.unwrap_or(FULL_EXTENT));
    }
    key
}

/// The tensor name in a slice key; `None` if the key is no slice key.
pub fn slice_key_name(key: &[u8]) -> Option<Vec<u8>> {
    let mut rest = key.strip_prefix(&[0])?;
    let mut name = Vec::new();
    loop {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        if byte != 0 && byte != u8::MAX {
            name.push(byte);
            continue;
        }
        let (&second, tail) = rest.split_first()?;
        rest = tail;
        match (byte, second) {
            (0, 1) => return Some(name),
            (0, 0xff) => name.push(0),
            (0xff, 0) => name.push(0xff),
            _ => return None,
        }
    }
}

/// Length byte, then the big-endian bytes without leading zeros.
fn put_unsigned(out: &mut Vec<u8>, value: u64) {
    let skip = value.leading_zeros() as usize / 8;
    out.push((8 - skip) as u8);
    out.extend(value.to_be_bytes().iter().skip(skip));
}

/// Bytes 0 and 255 are escaped; `00 01` ends the string.
fn put_string(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        match byte {
            0 => out.extend_from_slice(&[0, 0xff]),
            0xff => out.extend_from_slice(&[0xff, 0]),
            _ => out.push(byte),
        }
    }
    out.extend_from_slice(&[0, 1]);
}

/// A unary length prefix of one bits, then the sign and the value in two's complement: `n` bytes hold
/// `7n - 1` bits of value and sign. Negative values have every bit inverted.
fn put_signed(out: &mut Vec<u8>, value: i64) {
    let positive = if value < 0 { !value } else { value } as u64;
    // Bits needed with the sign bit: 1 byte for 6 value bits, each further byte adds 7.
    let value_bits = 64 - positive.leading_zeros() as usize;
    let len = (value_bits / 7 + 1).min(10);
    // 128 bits: the value sign-extended, headed by the mark of `len` one bits.
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&u128::from(positive).to_be_bytes());
    let Some(tail) = bytes.get_mut(16 - len..) else {
        return;
    };
    for (byte, mark) in tail.iter_mut().zip(header(len)) {
        *byte ^= mark;
    }
    if value < 0 {
        for byte in tail.iter_mut() {
            *byte = !*byte;
        }
    }
    out.extend_from_slice(tail);
}

/// `len` one bits followed by a zero bit, as the first two bytes.
fn header(len: usize) -> [u8; 2] {
    let ones = 0xffffu32 << (16 - len);
    [(ones >> 8) as u8, ones as u8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signed(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put_signed(&mut out, value);
        out
    }

    #[test]
    fn numbers_have_their_known_bytes() {
        let mut out = Vec::new();
        put_unsigned(&mut out, 0);
        put_unsigned(&mut out, 2);
        put_unsigned(&mut out, 0x1234);
        assert_eq!(out, [0, 1, 2, 2, 0x12, 0x34]);
        assert_eq!(signed(0), [0x80]);
        assert_eq!(signed(3), [0x83]);
        assert_eq!(signed(63), [0xbf]);
        assert_eq!(signed(64), [0xc0, 0x40]);
        assert_eq!(signed(-1), [0x7f]);
        assert_eq!(signed(-64), [0x40]);
        assert_eq!(signed(-65), [0x3f, 0xbf]);
        assert_eq!(signed(8191), [0xdf, 0xff]);
        assert_eq!(signed(8192), [0xe0, 0x20, 0x00]);
        assert_eq!(
            signed(i64::MAX),
            [0xff, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]
        );
    }

    #[test]
    fn key_of_the_fact_sheet() {
        let slice = TensorSlice::parse("0,3:0,2").unwrap();
        let key = slice_key(b"pv", &slice);
        assert_eq!(key, [0, b'p', b'v', 0, 1, 1, 2, 0x80, 0x83, 0x80, 0x82]);
        assert_eq!(slice_key_name(&key).as_deref(), Some(&b"pv"[..]));
        assert_eq!(slice_key_name(b"pv"), None);
        assert_eq!(slice_key_name(&[0, 1]), None);
    }

    proptest! {
        #[test]
        fn encoding_keeps_the_order(a in any::<i64>(), b in any::<i64>(), shift_a in 0u32..64, shift_b in 0u32..64) {
            let (a, b) = (a >> shift_a, b >> shift_b);
            prop_assert_eq!(signed(a).cmp(&signed(b)), a.cmp(&b));
        }

        #[test]
        fn names_come_back(name in proptest::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..20)) {
            let key = slice_key(&name, &TensorSlice::parse("1,2:-").unwrap());
            prop_assert_eq!(slice_key_name(&key), Some(name));
        }
    }
}
