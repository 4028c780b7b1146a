//! Durations as text: exact decimal arithmetic, so that 0.1 s is 100 000 000 ns and not what a float makes of it.

use std::time::Duration;

/// The longest duration that any key takes.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Units, longest suffix first where one ends in another (`ms` before `s`).
pub(super) const UNITS: [(&str, u128); 6] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", NANOS), ("m", 60 * NANOS), ("h", 3_600 * NANOS)];

/// Nanoseconds in a second.
pub(super) const NANOS: u128 = 1_000_000_000;

/// Text with a unit, such as `250ms` or `1.5s`: digits, at most one point between digits, one unit, nothing else.
/// `None`: it is not that, is finer than a nanosecond, or does not fit a [`Duration`].
pub fn parse(text: &str) -> Option<Duration> {
    UNITS.iter().find_map(|(suffix, unit)| scale(text.strip_suffix(suffix)?, *unit))
}

/// Seconds as a plain decimal number, such as `2` or `0.25`. The same limits as [`parse`].
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    scale(text, NANOS)
}

/// `number` times `unit` nanoseconds, exactly.
fn scale(number: &str, unit: u128) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // 20 digits hold more than a Duration does, 18 of a fraction more than any unit divides into.
    let fraction = match fraction.trim_end_matches('0') {
        "" if !fraction.is_empty() => "0",
        significant => significant,
    };
    if !is_digits(whole, 20) || !is_digits(fraction, 18) {
        return None;
    }
    let divisor = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = fraction.parse::<u128>().ok()?.checked_mul(unit)?;
    if !part.is_multiple_of(divisor) {
        return None;
    }
    let nanos = whole.parse::<u128>().ok()?.checked_mul(unit)?.checked_add(part / divisor)?;
    let seconds = u64::try_from(nanos / NANOS).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % NANOS).ok()?))
}

fn is_digits(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The shortest exact text that [`parse`] reads back: `2s`, `250ms`, `1.5s`, `5m`, `24h`.
pub fn show(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let (suffix, unit) = match nanos {
        0 => ("s", NANOS),
        _ if nanos.is_multiple_of(3_600 * NANOS) => ("h", 3_600 * NANOS),
        _ if nanos.is_multiple_of(60 * NANOS) => ("m", 60 * NANOS),
        NANOS.. => ("s", NANOS),
        1_000_000.. => ("ms", 1_000_000),
        1_000.. => ("us", 1_000),
        _ => ("ns", 1),
    };
    let fraction = format!("{:018}", nanos % unit * (1_000_000_000_000_000_000 / unit.min(NANOS)));
    match (nanos % unit, fraction.trim_end_matches('0')) {
        (0, _) => format!("{}{suffix}", nanos / unit),
        (_, digits) => format!("{}.{digits}{suffix}", nanos / unit),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 9.1: what is text for a duration, and what is not.
    #[test]
    fn c9_1_text_is_read_exactly() {
        let nanos = |text| parse(text).map(|duration| duration.as_nanos());
        for (text, expected) in [
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120 * NANOS),
            ("1h", 3_600 * NANOS),
            ("0.1s", 100_000_000),
            ("100us", 100_000),
            ("5ns", 5),
            ("0.001us", 1),
            ("0s", 0),
            ("1.50s", 1_500_000_000),
            ("1.0s", NANOS),
            ("0.00000000100000000000000000000000s", 1),
            ("99999999999999s", 99_999_999_999_999 * NANOS),
        ] {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "5",
            "-1s",
            "+1s",
            "1 s",
            " 1s",
            "1s ",
            ".5s",
            "1.s",
            "1..2s",
            "1e3s",
            "1h30m",
            "1S",
            "1sec",
            "infs",
            "NaNs",
            "0.1ns",
            "0.0000000001s",
            "1_000s",
            "１s",
            "1µs",
            "999999999999999999999s",
            "99999999999999999999h",
        ] {
            assert_eq!(nanos(text), None, "{text:?}");
        }
        assert_eq!(parse_seconds("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(parse_seconds("0.25s"), None);
    }

    #[test]
    fn shows_the_shortest_unit_that_is_exact() {
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_secs(2), "2s"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_millis(1_500), "1.5s"),
            (Duration::from_secs(90), "90s"),
            (Duration::from_secs(300), "5m"),
            (DAY, "24h"),
            (Duration::from_nanos(1_500), "1.5us"),
            (Duration::from_nanos(7), "7ns"),
            (Duration::from_nanos(1_000_000_001), "1.000000001s"),
        ] {
            assert_eq!(show(duration), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(seconds in any::<u64>(), nanos in 0_u32..1_000_000_000) {
            let duration = Duration::new(seconds, nanos);
            prop_assert_eq!(parse(&show(duration)), Some(duration));
        }

        #[test]
        fn small_ones_read_back(nanos in 0_u64..10_000_000_000) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&show(duration)), Some(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", digits in "[0-9.]{0,40}[a-z]{0,2}") {
            let _ = (parse(&text), parse(&digits), parse_seconds(&text), parse_seconds(&digits));
        }
    }
}
