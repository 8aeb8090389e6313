//! FarmHash's 64-bit fingerprint: the hash behind `StringToHashBucketFast`, the same everywhere for ever.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The fingerprint of some bytes.
pub(crate) fn fingerprint64(data: &[u8]) -> u64 {
    match data.len() {
        0..=16 => up_to_16(data),
        17..=32 => up_to_32(data),
        33..=64 => up_to_64(data),
        _ => long(data),
    }
}

fn word(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&data[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn half_word(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&data[at..at + 4]);
    u64::from(u32::from_le_bytes(bytes))
}

fn shift_mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

fn mix(u: u64, v: u64, multiplier: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(multiplier));
    shift_mix((v ^ a).wrapping_mul(multiplier)).wrapping_mul(multiplier)
}

fn multiplier(len: usize) -> u64 {
    K2.wrapping_add(2 * len as u64)
}

fn up_to_16(data: &[u8]) -> u64 {
    let len = data.len();
    let mul = multiplier(len);
    if len >= 8 {
        let a = word(data, 0).wrapping_add(K2);
        let b = word(data, len - 8);
        let c = b.rotate_right(37).wrapping_mul(mul).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(mul);
        return mix(c, d, mul);
    }
    if len >= 4 {
        let a = half_word(data, 0);
        return mix(
            (len as u64).wrapping_add(a << 3),
            half_word(data, len - 4),
            mul,
        );
    }
    if len > 0 {
        let (a, b, c) = (
            u32::from(data[0]),
            u32::from(data[len >> 1]),
            u32::from(data[len - 1]),
        );
        let y = u64::from(a.wrapping_add(b << 8));
        let z = u64::from((len as u32).wrapping_add(c << 2));
        return shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2);
    }
    K2
}

fn up_to_32(data: &[u8]) -> u64 {
    let len = data.len();
    let mul = multiplier(len);
    let a = word(data, 0).wrapping_mul(K1);
    let b = word(data, 8);
    let c = word(data, len - 8).wrapping_mul(mul);
    let d = word(data, len - 16).wrapping_mul(K2);
    mix(
        a.wrapping_add(b)
            .rotate_right(43)
            .wrapping_add(c.rotate_right(30))
            .wrapping_add(d),
        a.wrapping_add(b.wrapping_add(K2).rotate_right(18))
            .wrapping_add(c),
        mul,
    )
}

fn up_to_64(data: &[u8]) -> u64 {
    let len = data.len();
    let mul = multiplier(len);
    let a = word(data, 0).wrapping_mul(K2);
    let b = word(data, 8);
    let c = word(data, len - 8).wrapping_mul(mul);
    let d = word(data, len - 16).wrapping_mul(K2);
    let y = a
        .wrapping_add(b)
        .rotate_right(43)
        .wrapping_add(c.rotate_right(30))
        .wrapping_add(d);
    let z = mix(
        y,
        a.wrapping_add(b.wrapping_add(K2).rotate_right(18))
            .wrapping_add(c),
        mul,
    );
    let e = word(data, 16).wrapping_mul(mul);
    let f = word(data, 24);
    let g = y.wrapping_add(word(data, len - 32)).wrapping_mul(mul);
    let h = z.wrapping_add(word(data, len - 24)).wrapping_mul(mul);
    mix(
        e.wrapping_add(f)
            .rotate_right(43)
            .wrapping_add(g.rotate_right(30))
            .wrapping_add(h),
        e.wrapping_add(f.wrapping_add(a).rotate_right(18))
            .wrapping_add(g),
        mul,
    )
}

/// Hashes 32 bytes at `at` with two seeds.
fn weak(data: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let (w, x, y, z) = (
        word(data, at),
        word(data, at + 8),
        word(data, at + 16),
        word(data, at + 24),
    );
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let c = a;
    let a = a.wrapping_add(x).wrapping_add(y);
    let b = b.wrapping_add(a.rotate_right(44));
    (a.wrapping_add(z), b.wrapping_add(c))
}

fn long(data: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let len = data.len();
    let mut x = SEED.wrapping_mul(K2).wrapping_add(word(data, 0));
    let mut y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut z = shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let (mut v, mut w) = ((0u64, 0u64), (0u64, 0u64));
    let end = (len - 1) / 64 * 64;
    let last = len - 64;
    for at in (0..end).step_by(64) {
        x = x
            .wrapping_add(y)
            .wrapping_add(v.0)
            .wrapping_add(word(data, at + 8))
            .rotate_right(37)
            .wrapping_mul(K1);
        y = y
            .wrapping_add(v.1)
            .wrapping_add(word(data, at + 48))
            .rotate_right(42)
            .wrapping_mul(K1);
        x ^= w.1;
        y = y.wrapping_add(v.0).wrapping_add(word(data, at + 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = weak(data, at, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        w = weak(
            data,
            at + 32,
            z.wrapping_add(w.1),
            y.wrapping_add(word(data, at + 16)),
        );
        std::mem::swap(&mut z, &mut x);
    }
    let mul = K1.wrapping_add((z & 0xff) << 1);
    w.0 = w.0.wrapping_add((len as u64 - 1) & 63);
    v.0 = v.0.wrapping_add(w.0);
    w.0 = w.0.wrapping_add(v.0);
    x = x
        .wrapping_add(y)
        .wrapping_add(v.0)
        .wrapping_add(word(data, last + 8))
        .rotate_right(37)
        .wrapping_mul(mul);
    y = y
        .wrapping_add(v.1)
        .wrapping_add(word(data, last + 48))
        .rotate_right(42)
        .wrapping_mul(mul);
    x ^= w.1.wrapping_mul(9);
    y = y
        .wrapping_add(v.0.wrapping_mul(9))
        .wrapping_add(word(data, last + 40));
    z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(mul);
    v = weak(data, last, v.1.wrapping_mul(mul), x.wrapping_add(w.0));
    w = weak(
        data,
        last + 32,
        z.wrapping_add(w.1),
        y.wrapping_add(word(data, last + 16)),
    );
    std::mem::swap(&mut z, &mut x);
    mix(
        mix(v.0, w.0, mul)
            .wrapping_add(shift_mix(y).wrapping_mul(K0))
            .wrapping_add(z),
        mix(v.1, w.1, mul).wrapping_add(x),
        mul,
    )
}
