//! The header that tells the other side how much time is left.
//!
//! Decides its text. There is no standard header, so its name is configured, and the name decides the form:
//! `grpc-timeout` has that of gRPC (at most eight digits and a unit), any other has whole milliseconds, as Envoy's
//! `x-envoy-expected-rq-timeout-ms` has them. Time left is rounded down, so that nobody works longer than anyone waits,
//! but never to nothing. What cannot be read is ignored, and numbers saturate.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The units of gRPC, finest first, in nanoseconds.
const UNITS: [(u8, u128); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];
/// The largest number that gRPC allows, and how long it is.
const MAX_DIGITS: usize = 8;
const MAX_NUMBER: u128 = 99_999_999;

/// The header's value for so much time.
pub fn write(name: &HeaderName, left: Duration) -> HeaderValue {
    if is_grpc(name) {
        return write_grpc(left);
    }
    HeaderValue::from(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
}

/// How much time the caller has left; `None` if it does not say so, or not in a form that can be read. Of several
/// lines the shortest time counts.
pub fn read(headers: &HeaderMap, name: &HeaderName) -> Option<Duration> {
    let parse = if is_grpc(name) { read_grpc } else { read_millis };
    headers.get_all(name).iter().filter_map(|line| parse(line.as_bytes().trim_ascii())).min()
}

fn is_grpc(name: &HeaderName) -> bool {
    name.as_str() == "grpc-timeout"
}

fn write_grpc(left: Duration) -> HeaderValue {
    let nanos = left.as_nanos().max(1);
    let fits = UNITS.iter().find(|(_, unit)| nanos / unit <= MAX_NUMBER);
    let text = match fits {
        Some((letter, unit)) => format!("{}{}", nanos / unit, char::from(*letter)),
        None => format!("{MAX_NUMBER}H"),
    };
    // Cannot fail: digits and a letter.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("1n"))
}

fn read_grpc(text: &[u8]) -> Option<Duration> {
    let (letter, digits) = text.split_last()?;
    let (_, unit) = UNITS.iter().find(|(known, _)| known == letter)?;
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let nanos = u128::from(number(digits)?) * unit;
    let secs = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    Some(Duration::from_secs(secs) + Duration::from_nanos((nanos % 1_000_000_000) as u64))
}

fn read_millis(text: &[u8]) -> Option<Duration> {
    number(text).map(Duration::from_millis)
}

/// Digits alone, saturating.
fn number(digits: &[u8]) -> Option<u64> {
    let valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    valid.then(|| digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MILLIS: HeaderName = HeaderName::from_static("x-time-left-ms");
    const GRPC: HeaderName = HeaderName::from_static("grpc-timeout");

    fn read_one(name: &HeaderName, value: &str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(name.clone(), value.parse().unwrap())]);
        read(&headers, name)
    }

    /// A137: at most eight digits, in a coarser unit.
    #[test]
    fn a137_grpc_has_eight_digits() {
        for (left, expected) in [
            (Duration::ZERO, "1n"),
            (Duration::from_nanos(7), "7n"),
            (Duration::from_millis(99), "99000000n"),
            (Duration::from_nanos(99_999_999), "99999999n"),
            (Duration::from_millis(100), "100000u"),
            (Duration::from_secs(30), "30000000u"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::from_secs(100_000_000), "1666666M"),
            (Duration::MAX, "99999999H"),
        ] {
            assert_eq!(write(&GRPC, left), expected, "{left:?}");
        }
    }

    /// A140: no overflow, and nothing that is no time.
    #[test]
    fn a140_what_grpc_reads() {
        assert_eq!(read_one(&GRPC, "99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(read_one(&GRPC, "1n"), Some(Duration::from_nanos(1)));
        assert_eq!(read_one(&GRPC, "5M"), Some(Duration::from_secs(300)));
        assert_eq!(read_one(&GRPC, "0S"), Some(Duration::ZERO));
        for value in ["-1S", "1x", "S", "", "1", "100000000S", "1 S", "1.5S", "+1S", "1s"] {
            assert_eq!(read_one(&GRPC, value), None, "{value}");
        }
    }

    #[test]
    fn milliseconds() {
        assert_eq!(write(&MILLIS, Duration::from_micros(1_999)), "1");
        assert_eq!(write(&MILLIS, Duration::ZERO), "1");
        assert_eq!(write(&MILLIS, Duration::MAX), "18446744073709551615");
        assert_eq!(read_one(&MILLIS, "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(read_one(&MILLIS, "99999999999999999999999"), Some(Duration::from_millis(u64::MAX)));
        for value in ["-1", "1.5", "1ms", "", "0x1", "1, 2"] {
            assert_eq!(read_one(&MILLIS, value), None, "{value}");
        }
    }

    #[test]
    fn the_shortest_of_several_lines_counts() {
        let mut headers = HeaderMap::new();
        for value in ["soon", "300", "200", "-1"] {
            headers.append(MILLIS, value.parse().unwrap());
        }
        assert_eq!(read(&headers, &MILLIS), Some(Duration::from_millis(200)));
        assert_eq!(read(&HeaderMap::new(), &MILLIS), None);
    }

    proptest! {
        #![proptest_config(crate::testing::seeded())]

        /// What is written is read back, never as more, and short of it by less than a part in a hundred.
        #[test]
        fn round_trip(nanos in 1..100_000_000_000_000_000_u64) {
            let left = Duration::from_nanos(nanos);
            let grpc = read_one(&GRPC, write(&GRPC, left).to_str().unwrap()).unwrap();
            prop_assert!(grpc <= left && left - grpc <= left / 100);
            if left >= Duration::from_millis(1) {
                let millis = read_one(&MILLIS, write(&MILLIS, left).to_str().unwrap()).unwrap();
                prop_assert!(millis <= left && left - millis < Duration::from_millis(1));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let _ = read_grpc(&bytes);
            let _ = read_millis(&bytes);
        }
    }
}
