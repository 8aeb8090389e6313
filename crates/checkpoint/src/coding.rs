//! Little-endian and varint coding shared by the file formats. Decoders never read past their input.

/// The longest encoding of a 64-bit varint.
pub const MAX_VARINT64: usize = 10;

/// Appends `value` in base-128, low groups first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a 64-bit varint off the front; `None` if it is cut short or too long.
pub fn take_varint64(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in input.iter().enumerate().take(MAX_VARINT64) {
        let group = u64::from(byte & 0x7f);
        if index == 9 && group > 1 {
            return None;
        }
        value |= group << (7 * index);
        if byte & 0x80 == 0 {
            *input = input.get(index + 1..)?;
            return Some(value);
        }
    }
    None
}

/// Takes a 32-bit varint off the front; `None` if it is cut short or does not fit.
pub fn take_varint32(input: &mut &[u8]) -> Option<u32> {
    let mut rest = *input;
    let value = u32::try_from(take_varint64(&mut rest)?).ok()?;
    *input = rest;
    Some(value)
}

/// Takes `len` bytes off the front.
pub fn take_bytes<'a>(input: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = input.split_at_checked(len)?;
    *input = tail;
    Some(head)
}

/// Takes a little-endian `u32` off the front.
pub fn take_u32(input: &mut &[u8]) -> Option<u32> {
    let (head, tail) = input.split_first_chunk::<4>()?;
    *input = tail;
    Some(u32::from_le_bytes(*head))
}

/// Takes a little-endian `u64` off the front.
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    let (head, tail) = input.split_first_chunk::<8>()?;
    *input = tail;
    Some(u64::from_le_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 40, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            out.push(9);
            let mut input = &out[..];
            assert_eq!(take_varint64(&mut input), Some(value));
            assert_eq!(input, [9]);
            let mut input = &out[..];
            assert_eq!(take_varint32(&mut input), u32::try_from(value).ok());
        }
    }

    #[test]
    fn bad_varints_are_refused() {
        assert_eq!(take_varint64(&mut &[][..]), None);
        assert_eq!(take_varint64(&mut &[0x80][..]), None);
        assert_eq!(take_varint64(&mut &[0xff; 11][..]), None);
        assert_eq!(
            take_varint64(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2][..]),
            None
        );
        let mut input = &[1u8, 2, 3][..];
        assert_eq!(take_u32(&mut input), None);
        assert_eq!(take_bytes(&mut input, 4), None);
        assert_eq!(input, [1, 2, 3]);
    }
}
