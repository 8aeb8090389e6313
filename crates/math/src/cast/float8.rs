//! Floats of eight bits: a sign, an exponent and two or three bits of fraction.
//!
//! They are storage: nothing is computed with them, they are only widened to `f32`, which loses nothing, and narrowed from `f64`,
//! which rounds once.

use half::f16;

/// How the eight bits are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float8 {
    /// Five bits of exponent, two of fraction; the upper half of a `f16`.
    E5M2,
    /// Four bits of exponent, three of fraction; no infinities, and one NaN of each sign.
    E4M3Fn,
}

impl Float8 {
    /// Bits of the fraction.
    const fn fraction(self) -> u32 {
        match self {
            Float8::E5M2 => 2,
            Float8::E4M3Fn => 3,
        }
    }

    const fn bias(self) -> i32 {
        match self {
            Float8::E5M2 => 15,
            Float8::E4M3Fn => 7,
        }
    }

    /// The largest finite number, what is beyond it, and NaN.
    const fn limits(self) -> (u8, u8, u8) {
        match self {
            Float8::E5M2 => (0x7b, 0x7c, 0x7e),
            Float8::E4M3Fn => (0x7e, 0x7f, 0x7f),
        }
    }

    /// The number that the bits stand for.
    pub fn widen(self, bits: u8) -> f32 {
        if self == Float8::E5M2 {
            return f16::from_bits(u16::from(bits) << 8).to_f32();
        }
        let (exponent, fraction) = (bits >> 3 & 15, bits & 7);
        let size = match (exponent, fraction) {
            (15, 7) => f32::NAN,
            (0, _) => f32::from(fraction) / 512.0,
            // Eight times the number is a small integer times a power of two: exact.
            _ => f32::from(8 + fraction) * (1u32 << exponent) as f32 / 1024.0,
        };
        if bits & 0x80 == 0 { size } else { -size }
    }

    /// The nearest number, even in doubt; with `truncate` the bits of the fraction that have no room are dropped first, which is
    /// TensorFlow's rounding towards zero and leaves numbers below the smallest exponent to be rounded.
    pub fn narrow(self, x: f64, truncate: bool) -> u8 {
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        let (largest, beyond, nan) = self.limits();
        if x.is_nan() {
            return sign | nan;
        }
        let mut size = x.abs();
        if truncate {
            size = f64::from_bits(size.to_bits() & (u64::MAX << (52 - self.fraction())));
        }
        let lowest = 1 - self.bias();
        let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(lowest);
        if exponent > self.bias() + 1 {
            return sign | beyond;
        }
        // What counts the smallest steps at this exponent has its leading bit where the exponent's lowest one is: a carry from
        // rounding goes where it belongs.
        let steps = (size * 2f64.powi(self.fraction() as i32 - exponent)).round_ties_even();
        let bits = ((exponent - lowest) << self.fraction()) + steps as i32;
        if bits > i32::from(largest) {
            return sign | beyond;
        }
        sign | bits as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Float8; 2] = [Float8::E5M2, Float8::E4M3Fn];

    #[test]
    fn widening_and_narrowing_keeps_every_number() {
        for kind in KINDS {
            for bits in 0..=u8::MAX {
                let wide = kind.widen(bits);
                let back = kind.narrow(f64::from(wide), false);
                if wide.is_nan() {
                    assert_eq!(back & 0x7f, kind.limits().2, "{kind:?} {bits}");
                } else {
                    assert_eq!(back, bits, "{kind:?} {wide}");
                    assert_eq!(kind.narrow(f64::from(wide), true), bits);
                }
            }
        }
    }

    #[test]
    fn between_two_numbers_the_nearest_is_taken_and_the_even_one_in_doubt() {
        for kind in KINDS {
            for bits in 0..kind.limits().0 {
                let low = f64::from(kind.widen(bits));
                let high = f64::from(kind.widen(bits + 1));
                let middle = (low + high) / 2.0;
                let even = bits + (bits & 1);
                assert_eq!(kind.narrow(middle, false), even, "{kind:?} {middle}");
                assert_eq!(kind.narrow(middle * (1.0 - 1e-12), false), bits);
                assert_eq!(
                    kind.narrow(-middle * (1.0 + 1e-12), false),
                    (bits + 1) | 0x80
                );
            }
        }
    }

    /// Values of TensorFlow 2.21.
    #[test]
    fn limits_are_tensorflows() {
        let x = [
            464.0,
            465.0,
            -1e6,
            61439.0,
            61440.0,
            2e-5,
            f64::NEG_INFINITY,
        ];
        let of = |kind: Float8, truncate| x.map(|x| kind.narrow(x, truncate));
        assert_eq!(of(Float8::E5M2, false), [95, 95, 252, 123, 124, 1, 252]);
        assert_eq!(of(Float8::E5M2, true), [95, 95, 252, 123, 123, 1, 252]);
        assert_eq!(of(Float8::E4M3Fn, false), [126, 127, 255, 127, 127, 0, 255]);
        assert_eq!(of(Float8::E4M3Fn, true), [126, 126, 255, 127, 127, 0, 255]);
        for kind in KINDS {
            assert_eq!(kind.narrow(f64::MIN_POSITIVE / 2.0, false), 0);
            assert_eq!(kind.narrow(f64::MAX, true), kind.limits().1);
        }
    }
}
