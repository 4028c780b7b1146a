//! The `tracestate` list: read strictly, sent on byte for byte.

use http::HeaderValue;

/// The most members of a list (W3C Trace Context 3.3.1.1).
const MAX_MEMBERS: usize = 32;
/// The longest key, and the longest value.
const MAX_LEN: usize = 256;

/// Joins the field lines into one list; `None` if it is invalid or empty.
pub(super) fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<HeaderValue> {
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut list: Vec<u8> = Vec::new();
    let mut members = 0;
    for member in lines.into_iter().flat_map(|line| line.split(|byte| *byte == b',')) {
        let member = member.trim_ascii();
        if member.is_empty() {
            // Allowed by the grammar, so that lists can be joined.
            continue;
        }
        members += 1;
        let key = key_of(member)?;
        if members > MAX_MEMBERS {
            return None;
        }
        if keys.contains(&key) {
            continue;
        }
        keys.push(key);
        if !list.is_empty() {
            list.push(b',');
        }
        list.extend_from_slice(member);
    }
    if list.is_empty() { None } else { HeaderValue::from_bytes(&list).ok() }
}

/// The key of a valid `key=value`. Level 2 has one key grammar: a letter or digit, then any of `_-*/@` as well.
fn key_of(member: &[u8]) -> Option<&[u8]> {
    let at = member.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&member[..at], &member[at + 1..]);
    let first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let other = |byte: &u8| first(byte) || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@');
    let printable = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'=';
    let valid = key.first().is_some_and(first)
        && key.iter().all(other)
        && value.iter().all(printable)
        && !value.is_empty()
        && key.len() <= MAX_LEN
        && value.len() <= MAX_LEN;
    valid.then_some(key)
}
