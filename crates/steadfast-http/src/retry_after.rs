//! How long the upstream asked us to wait.
//!
//! Decides what a `Retry-After` field means (RFC 9110 10.2.3): a number of seconds, made of digits alone, or a date.
//! Anything else is as if the field were absent, whatever bytes it holds: the field comes from outside and must not
//! be able to fail a call. Of several lines the longest valid wait counts, as the upstream should not be asked again
//! before any of them; one line with two values (`5, 10`) is no valid line.
//!
//! Limit: half a second cannot be asked for (`0.5` is ignored), as the grammar has no such thing.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;

mod date;

#[cfg(test)]
mod tests;

/// The wait that the upstream asked for; `None` if it asked for none that can be understood.
///
/// Zero, and a date that has passed, are `Some(Duration::ZERO)`. A number that no clock can hold is the longest wait
/// that a [`Duration`] of whole seconds can hold. `now` is the wall clock, and dates are counted from it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, header::RETRY_AFTER};
/// use steadfast_http::retry_after;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(RETRY_AFTER, "120".parse().unwrap());
/// assert_eq!(retry_after(&headers, SystemTime::UNIX_EPOCH), Some(Duration::from_secs(120)));
/// ```
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    headers.get_all(RETRY_AFTER).iter().filter_map(|line| wait(line.as_bytes(), now)).max()
}

/// What one field line asks for.
fn wait(line: &[u8], now: SystemTime) -> Option<Duration> {
    let value = line.trim_ascii();
    if value.is_empty() {
        return None;
    }
    if value.iter().all(u8::is_ascii_digit) {
        return Some(Duration::from_secs(saturating_number(value)));
    }
    let instant = date::parse(std::str::from_utf8(value).ok()?, now)?;
    Some(instant.duration_since(now).unwrap_or(Duration::ZERO))
}

fn saturating_number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum: u64, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}
