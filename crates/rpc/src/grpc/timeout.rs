//! `grpc-timeout`: a number of at most eight digits and a unit.

use std::time::Duration;

/// The header's value; the unit is as fine as eight digits allow.
pub(crate) fn print(timeout: Duration) -> String {
    let units: [(u128, char); 4] = [
        (timeout.as_nanos(), 'n'),
        (timeout.as_micros(), 'u'),
        (timeout.as_millis(), 'm'),
        (u128::from(timeout.as_secs()), 'S'),
    ];
    for (amount, unit) in units {
        if amount < 100_000_000 {
            return format!("{amount}{unit}");
        }
    }
    // Over three years: as good as for ever.
    "99999999S".to_owned()
}

/// The duration a header's value names.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        'n' => Duration::from_nanos(amount),
        'u' => Duration::from_micros(amount),
        'm' => Duration::from_millis(amount),
        'S' => Duration::from_secs(amount),
        'M' => Duration::from_secs(amount * 60),
        'H' => Duration::from_secs(amount * 3600),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_parses() {
        for nanos in [0, 1, 99_999_999, 1_500_000_000, 86_400_000_000_000] {
            let timeout = Duration::from_nanos(nanos);
            assert_eq!(parse(&print(timeout)), Some(timeout));
        }
        assert_eq!(print(Duration::from_secs(20)), "20000000u");
        assert_eq!(parse("2M"), Some(Duration::from_secs(120)));
    }

    #[test]
    fn refuses_nonsense() {
        for text in ["", "5", "n", "123456789n", "-1S", "1x", "1ü", "+1S"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
