use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::retry_after;

/// A mean year.
const YEAR: u64 = 31_556_952;

/// Thu, 01 Jan 2026 00:00:00 GMT
const Y2026: u64 = 1_767_225_600;

fn at(secs: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(secs)
}

fn of_lines<T: AsRef<[u8]>>(lines: &[T], now: SystemTime) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(RETRY_AFTER, HeaderValue::from_bytes(line.as_ref()).unwrap());
    }
    retry_after(&headers, now)
}

fn secs(line: &str, now: u64) -> Option<u64> {
    of_lines(&[line], at(now)).map(|wait| wait.as_secs())
}

/// 2.6, A2, A4, A9
#[test]
fn c2_6_seconds() {
    for (line, expected) in [
        ("120", 120),
        ("0", 0),
        (" 7 ", 7),
        ("\t7", 7),
        ("007", 7),
        ("9999999999", 9_999_999_999),
        ("18446744073709551615", u64::MAX),
        ("18446744073709551616", u64::MAX),
        ("999999999999999999999999999999", u64::MAX),
    ] {
        assert_eq!(secs(line, Y2026), Some(expected), "{line:?}");
    }
}

/// 2.6, A1, A2, A3, B6
#[test]
fn c2_6_what_is_no_number_and_no_date_is_ignored() {
    for line in [
        "",
        " ",
        "-1",
        "+5",
        "1.5",
        "0.503",
        "1m0s",
        "0x10",
        "5, 10",
        "5,10",
        "1 2",
        "1e3",
        "soon",
        "5;q=1",
        "\"5\"",
        "2027-01-01T00:00:00Z",
        "Tue, 1 Dec 2026 10:00:00 GMT",
        "Tue, 01 Dec 2026 10:00:00 +0900",
        "Tue, 01 Dec 2026 10:00:00 UTC",
        "Tue, 01 Dec 2026 10:00:00 +00000000000000000000",
        "Tue, 01 Dec 2026 10:00:00",
        "tue, 01 dec 2026 10:00:00 gmt",
        "Tuesday, 01 Dec 2026 10:00:00 GMT",
        "Tue, 01-Dec-26 10:00:00 GMT",
        "Tue Dec 1 10:00:00 2026",
        "Tue Dec  1 10:00:00 26",
        "Sun, 06 Nov +994 08:49:37 GMT",
        "Sun Nov  6 08:49:37 +994",
        "Sunday, 06-Nov-+4 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:+9:37 GMT",
        "Sun, 06 Nov 1994 8:049:37 GMT",
        "Sun, 06 Nov 1994 8:499:60 GMT",
        "Sun Nov    08:49:37 1994",
    ] {
        assert_eq!(secs(line, Y2026), None, "{line:?}");
    }
    for line in [&b"\xb2"[..], b"5\xb2", b"\xff\xfe", b"Sun, 06 Nov 2094 08:49:37 GM\xc3", b"\xef\xbc\x95"] {
        assert_eq!(of_lines(&[line], at(Y2026)), None, "{line:?}");
    }
}

/// 2.6, A5, A6, A7: the three forms, each ahead of the clock, at it, and past.
#[test]
fn c2_6_all_three_forms_of_a_date() {
    const NOVEMBER: u64 = 784_111_777;
    for line in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(secs(line, NOVEMBER - 3), Some(3), "{line}");
        assert_eq!(secs(line, NOVEMBER), Some(0), "{line}");
        assert_eq!(secs(line, Y2026), Some(0), "{line}");
    }
    assert_eq!(secs("Sat Nov  6 08:49:37 2094", Y2026), Some(3_939_871_777 - Y2026));
    assert_eq!(secs("Mon Nov 16 08:49:37 2026", Y2026), Some(319 * 86_400 + 8 * 3600 + 49 * 60 + 37));
    assert_eq!(secs("Fri, 31 Dec 9999 23:59:59 GMT", Y2026), Some(253_402_300_799 - Y2026));
    assert_eq!(secs("Wed, 21 Oct 2015 07:28:00 GMT", Y2026), Some(0));
    assert_eq!(secs("Thu, 01 Jan 1970 00:00:05 GMT", 0), Some(5));
}

/// 2.6: a date is counted from the instant, not from its whole second.
#[test]
fn c2_6_a_date_is_waited_for_exactly() {
    let now = at(Y2026) + Duration::from_millis(250);
    let wait = of_lines(&["Thu, 01 Jan 2026 00:00:03 GMT"], now);
    assert_eq!(wait, Some(Duration::from_millis(2750)));
}

/// A6, RFC 9110 5.6.7: two digits name the latest such year that is at most 50 years ahead.
#[test]
fn a6_two_digit_years() {
    let ahead = |line: &str, year: u64| {
        let now = at((year - 1970) * YEAR);
        of_lines(&[line], now).map(|wait| wait.as_secs() / YEAR)
    };
    // Clock 2026: 76 is ahead (2076), 77 has passed (1977), 75 is ahead.
    assert_eq!(ahead("Sunday, 06-Nov-77 08:49:37 GMT", 2026), Some(0));
    assert_eq!(ahead("Sunday, 06-Nov-94 08:49:37 GMT", 2026), Some(0));
    assert_eq!(ahead("Wednesday, 06-Nov-75 08:49:37 GMT", 2026), Some(49));
    assert_eq!(ahead("Tuesday, 06-Nov-70 08:49:37 GMT", 2026), Some(44));
    assert_eq!(ahead("Sunday, 06-Nov-50 08:49:37 GMT", 2026), Some(24));
    // Clock 2010: 69 is 59 years ahead, so 1969, which has passed; `httpdate` alone says 2069.
    assert_eq!(ahead("Thursday, 06-Nov-69 08:49:37 GMT", 2010), Some(0));
    // Clock 2099: 05 is in the next century.
    assert_eq!(ahead("Friday, 06-Nov-05 08:49:37 GMT", 2099), Some(6));
    // A leap day that only one of the centuries has.
    assert_eq!(ahead("Tuesday, 29-Feb-00 08:49:37 GMT", 2099), Some(0));
}

/// A8
#[test]
fn a8_dates_that_do_not_exist_are_ignored() {
    for line in [
        "Sun, 31 Feb 2027 00:00:00 GMT",
        "Mon, 29 Feb 2027 00:00:00 GMT",
        "Mon, 00 Jan 2027 00:00:00 GMT",
        "Mon, 32 Jan 2027 00:00:00 GMT",
        "Mon, 31 Apr 2027 00:00:00 GMT",
        "Mon, 01 Foo 2027 00:00:00 GMT",
        "Mon, 01 Jan 2027 24:00:00 GMT",
        "Mon, 01 Jan 2027 00:60:00 GMT",
        "Mon, 01 Jan 2027 00:00:61 GMT",
        "Sunday, 31-Feb-27 00:00:00 GMT",
        "Sun Feb 31 00:00:00 2027",
        "Sun Feb  0 00:00:00 2027",
        "Foo, 01 Jan 2027 00:00:00 GMT",
        "Thu, 29 Feb 1900 00:00:00 GMT",
    ] {
        assert_eq!(secs(line, Y2026), None, "{line}");
    }
    assert_eq!(secs("Tue, 29 Feb 2028 00:00:00 GMT", Y2026), Some((365 * 2 + 59) * 86_400));
}

/// A8, stated: the wrong weekday does no harm. A leap second and a date before 1970 are dates too.
#[test]
fn a8_robust_where_the_date_is_clear() {
    for day in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] {
        assert_eq!(secs(&format!("{day}, 02 Jan 2026 00:00:00 GMT"), Y2026), Some(86_400), "{day}");
        assert_eq!(secs(&format!("{day} Jan  2 00:00:00 2026"), Y2026), Some(86_400), "{day}");
    }
    assert_eq!(secs("Monday, 02-Jan-26 00:00:00 GMT", Y2026), Some(86_400));
    assert_eq!(secs("Thu, 01 Jan 2026 00:00:60 GMT", Y2026), Some(60));
    assert_eq!(secs("Sun, 06 Nov 1932 08:49:37 GMT", Y2026), Some(0));
    assert_eq!(secs("Mon, 01 Jan 0000 00:00:00 GMT", Y2026), Some(0));
}

/// 2.6
#[test]
fn c2_6_the_longest_valid_line_counts() {
    let now = at(Y2026);
    for (lines, expected) in [
        (&["5", "10"][..], Some(10)),
        (&["10", "5"], Some(10)),
        (&["5, 10", "3"], Some(3)),
        (&["soon", "-1", ""], None),
        (&["soon", "0"], Some(0)),
        (&["1", "Thu, 01 Jan 2026 00:00:09 GMT"], Some(9)),
        (&["1", "Thu, 01 Jan 1970 00:00:09 GMT"], Some(1)),
        (&[], None),
    ] {
        assert_eq!(of_lines(lines, now), expected.map(Duration::from_secs), "{lines:?}");
    }
}

/// B6: a clock that is far off does no harm either.
#[test]
fn b6_any_clock() {
    let mut clocks = vec![UNIX_EPOCH];
    for secs in [1, 1 << 31, 253_402_300_800, 1 << 40, 1 << 55, 1 << 61, 1 << 62, i64::MAX as u64] {
        clocks.extend(UNIX_EPOCH.checked_sub(Duration::from_secs(secs)));
        clocks.extend(UNIX_EPOCH.checked_add(Duration::from_secs(secs)));
    }
    for now in clocks {
        for line in ["5", "Sun, 06 Nov 2094 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:60 1994"]
        {
            let _ = of_lines(&[line], now);
        }
    }
}

proptest! {
    #![proptest_config(crate::testing::seeded())]

    /// B6
    #[test]
    fn b6_no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), now in 0..1_u64 << 40) {
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value);
            let _ = retry_after(&headers, at(now));
        }
    }

    /// B6: near misses of dates.
    #[test]
    fn b6_no_near_date_panics(
        mut line in prop::sample::select(vec![
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        ]).prop_map(|line| line.as_bytes().to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 32..127_u8), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for (at, byte) in changes {
            let at = at.index(line.len());
            line[at] = byte;
        }
        if let Some(cut) = cut {
            line.truncate(cut.index(line.len()));
        }
        let _ = of_lines(&[&line], at(Y2026));
    }

    /// A date that `httpdate` writes is read back to the second.
    #[test]
    fn a5_dates_round_trip(secs in Y2026..253_402_300_800) {
        let line = httpdate::fmt_http_date(at(secs));
        prop_assert_eq!(of_lines(&[&line], at(Y2026)), Some(Duration::from_secs(secs - Y2026)));
    }

    /// Digits mean what they say.
    #[test]
    fn a4_seconds_round_trip(secs in any::<u64>(), zeros in 0..5_usize) {
        let line = format!("{}{secs}", "0".repeat(zeros));
        prop_assert_eq!(of_lines(&[&line], at(Y2026)), Some(Duration::from_secs(secs)));
    }

    /// RFC 9110 5.6.7: whatever two digits mean, it is never more than 50 years ahead, and a year within
    /// the next 50 is never taken for one that has passed.
    #[test]
    fn a6_two_digits_stay_within_fifty_years(digits in 0..100_u64, now in Y2026..4_000_000_000) {
        let line = format!("Monday, 15-Jun-{digits:02} 12:00:00 GMT");
        let wait = of_lines(&[&line], at(now)).unwrap();
        prop_assert!(wait <= Duration::from_secs(50 * 31_556_952));
        let year = 1970 + now / 31_556_952;
        let ahead = (year + 1..year + 50).any(|year| year % 100 == digits);
        if ahead {
            prop_assert!(wait > Duration::ZERO);
        }
    }
}
