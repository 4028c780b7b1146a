//! The values that both sorts of file have, and the words for what is refused.

use std::time::Duration;

use steadfast::config::Problem;
use steadfast::config::reading::{Document, describe, parse_duration, quote};
use toml::Spanned;
use toml::de::DeValue;

use super::Source;
use crate::scenario::Range;

/// The longest time in a file.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What [`is_name`] says yes to, in words.
pub(crate) const A_NAME: &str = "a name, 1 to 64 of A-Z a-z 0-9 _ -";

pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

pub(crate) fn integer(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value else { return None };
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A whole number, or a range of them.
pub(crate) fn counts(value: &DeValue<'_>) -> Option<Range<u64>> {
    match value {
        DeValue::String(text) => Range::read(text),
        value => integer(value).map(Range::exactly),
    }
}

/// Text with a unit, of at most 24 h.
pub(crate) fn duration(value: &DeValue<'_>) -> Option<Duration> {
    let DeValue::String(text) = value else { return None };
    parse_duration(text).filter(|duration| *duration <= DAY)
}

/// One of these words; for another the nearest is named.
pub(crate) fn word(
    source: &Source<'_, '_>,
    path: &str,
    value: &Spanned<DeValue<'_>>,
    text: &str,
    words: &[&str],
    problems: &mut Vec<Problem>,
) -> Option<String> {
    if words.contains(&text) {
        return Some(text.to_owned());
    }
    let what = format!("expected {}; found {}", one_of(words), describe(value, false));
    problems.push(source.unknown(value.span().start, path, text, &what, words.iter().copied()));
    None
}

pub(crate) fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    format!("one of {}", words.join(", "))
}

/// A value that is not what was expected. It is not quoted where it may be a secret.
pub(crate) fn refused(
    document: &Document<'_>,
    path: &str,
    value: &Spanned<DeValue<'_>>,
    expected: &str,
    is_secret: bool,
) -> Problem {
    document.expects(value.span().start, path, expected, &describe(value, is_secret))
}
