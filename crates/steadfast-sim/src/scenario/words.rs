//! Small texts: dates in header values, patterns of what is expected, and paths that are shown.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use steadfast::config::reading::{clean, parse_duration};

/// The value with `{date+3s}` and `{date-3s}` filled in: the date so long after or before `now`, as RFC 9110 section 5.6.7
/// writes it.
pub(super) fn dated(value: &HeaderValue, now: SystemTime) -> HeaderValue {
    let fill = |text: &str| {
        let (before, rest) = text.split_once("{date")?;
        let (offset, after) = rest.split_once('}')?;
        let at = moved(now, offset)?;
        Some(format!("{before}{}{after}", httpdate::fmt_http_date(at)))
    };
    let filled = value.to_str().ok().and_then(fill);
    filled.and_then(|text| HeaderValue::try_from(text).ok()).unwrap_or_else(|| value.clone())
}

fn moved(now: SystemTime, offset: &str) -> Option<SystemTime> {
    let by = |text: &str| parse_duration(text).filter(|by| *by <= Duration::from_secs(1 << 32));
    match offset.split_at_checked(1)? {
        ("+", text) => now.checked_add(by(text)?),
        ("-", text) => now.checked_sub(by(text)?),
        _ => None,
    }
}

/// Whether `text` is what the pattern says, in which `*` stands for anything.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A path as it is shown: without its query, which may hold a secret.
pub(super) fn path(path: &str) -> String {
    let (bare, query) = path.split_once('?').map_or((path, ""), |(bare, _)| (bare, "?…"));
    format!("{}{query}", clean(bare, 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in
            [("", ""), ("a", "a"), ("*", ""), ("*", "abc"), ("a*", "abc"), ("*c", "abc"), ("a*c", "abc")]
        {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", ""), ("a*", "ba"), ("*a", "ab"), ("ab*b", "ab"), ("a*b*c", "acb")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
        assert!(fits("00-*-*-01", "00-4bf9-00f0-01"));
    }

    #[test]
    fn dates_are_filled_in() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        let filled = |text: &'static str| dated(&HeaderValue::from_static(text), now);
        assert_eq!(filled("{date+3s}"), "Thu, 01 Jan 2026 00:00:03 GMT");
        assert_eq!(filled("{date-1h}"), "Wed, 31 Dec 2025 23:00:00 GMT");
        for text in ["", "3", "{date}", "{date+}", "{date+3}", "{date*3s}", "{date+3s", "{date+99999999999h}"] {
            assert_eq!(filled(text), text);
        }
    }
}
