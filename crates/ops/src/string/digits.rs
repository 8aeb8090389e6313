//! Numbers as decimal digits: the forms that AsString writes most.

use std::io::Write;

/// Appends a number.
pub(super) fn integer(mut value: u64, text: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[begin..]);
}

/// Appends a finite number with so many digits behind the point, as printf's `%f`: rounded exactly, ties to even.
pub(super) fn fixed(value: f64, precision: usize, text: &mut Vec<u8>) {
    let Some(scaled) = scaled(value.abs(), precision) else {
        // Writing to a vector does not fail.
        let _ = write!(text, "{value:.precision$}");
        return;
    };
    if value.is_sign_negative() {
        text.push(b'-');
    }
    // A number has twenty digits at most, and so many are behind the point at most, where 0 may stand before it.
    let mut digits = [b'0'; 24];
    let (mut begin, mut left) = (digits.len(), scaled);
    let point = digits.len() - precision;
    while left > 0 || begin >= point {
        if begin == point && precision > 0 {
            begin -= 1;
            digits[begin] = b'.';
        }
        begin -= 1;
        digits[begin] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    text.extend_from_slice(&digits[begin..]);
}

/// The integer next to `value` · 10^`precision`; `None` if that does not fit.
fn scaled(value: f64, precision: usize) -> Option<u64> {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = match exponent {
        0 => (fraction, 1),
        _ => (fraction | 1 << 52, exponent),
    };
    // The value is the mantissa, halved so many times.
    let halvings = 1075u32.checked_sub(exponent as u32)?;
    // 53 bits times less than 64 bits: nothing is lost.
    let power = 10u64.checked_pow(u32::try_from(precision).ok()?)?;
    let product = u128::from(mantissa) * u128::from(power);
    if halvings >= 128 {
        // Less than a half: 2^117 and 2^128.
        return Some(0);
    }
    if halvings == 0 {
        return u64::try_from(product).ok();
    }
    let (whole, rest) = (product >> halvings, product & ((1 << halvings) - 1));
    let half = 1 << (halvings - 1);
    let up = rest > half || (rest == half && whole & 1 == 1);
    u64::try_from(whole + u128::from(up)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, precision: usize) -> String {
        let mut text = Vec::new();
        fixed(value, precision, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn ties_and_extremes_are_written_exactly() {
        for value in [
            0.0,
            -0.0,
            0.5,
            1.5,
            2.5,
            -0.125,
            0.375,
            1e-7,
            5e-7,
            1e15,
            1e16,
            9007199254740993.0,
            1.7e19,
            1.9e19,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
        ] {
            for precision in [0, 1, 2, 3, 6, 17, 19, 20, 40] {
                assert_eq!(text(value, precision), format!("{value:.precision$}"));
            }
        }
    }

    #[test]
    fn numbers_are_what_the_standard_library_writes() {
        let mut state = 88_172_645_463_325_252u64;
        for round in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut digits = Vec::new();
            integer(state >> (round % 64), &mut digits);
            let wanted = (state >> (round % 64)).to_string();
            assert_eq!(digits, wanted.as_bytes());
            let precision = round % 12;
            let usual = (state >> 40) as f64 / 1024.0 - 5000.0;
            for value in [f64::from_bits(state), usual, f64::from(usual as f32)] {
                if value.is_finite() {
                    assert_eq!(text(value, precision), format!("{value:.precision$}"));
                }
            }
        }
    }
}
