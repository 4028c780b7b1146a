//! What a figure may be: one value, or anything between two, both included.

use std::fmt;
use std::time::Duration;

use steadfast::config::reading::{parse_duration, show_duration};

/// A figure with bounds; both are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    /// The least.
    pub min: T,
    /// The most; `None`: there is no upper bound.
    pub max: Option<T>,
}

impl<T: Copy + PartialOrd> Range<T> {
    /// Exactly this.
    pub const fn exactly(value: T) -> Self {
        Self { min: value, max: Some(value) }
    }

    /// Whether the figure is within the bounds.
    pub fn holds(&self, value: T) -> bool {
        value >= self.min && self.max.is_none_or(|max| value <= max)
    }
}

impl Range<Duration> {
    /// The same with bounds that leave room for a clock that nobody can stop: so much below, and so much above.
    #[must_use]
    pub fn loosened(self, below: Duration, above: Duration) -> Self {
        Self { min: self.min.saturating_sub(below), max: self.max.map(|max| max.saturating_add(above)) }
    }
}

/// How one end of a range is written.
pub trait End: Copy + PartialOrd {
    /// Reads it.
    fn read(text: &str) -> Option<Self>;
    /// Shows it.
    fn show(self) -> String;
}

impl End for Duration {
    fn read(text: &str) -> Option<Self> {
        parse_duration(text)
    }

    fn show(self) -> String {
        show_duration(self)
    }
}

impl End for u64 {
    fn read(text: &str) -> Option<Self> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    }

    fn show(self) -> String {
        self.to_string()
    }
}

impl End for f64 {
    fn read(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    }

    fn show(self) -> String {
        self.to_string()
    }
}

impl<T: End> Range<T> {
    /// Reads `2s`, `1s..2s`, `1s..`, or `..2s`; the first end is never above the second.
    pub(crate) fn read(text: &str) -> Option<Self>
    where
        T: Default,
    {
        let Some((min, max)) = text.split_once("..") else {
            return T::read(text).map(Self::exactly);
        };
        if min.is_empty() && max.is_empty() {
            return None;
        }
        let min = if min.is_empty() { T::default() } else { T::read(min)? };
        let max = if max.is_empty() { None } else { Some(T::read(max)?) };
        max.is_none_or(|max| min <= max).then_some(Self { min, max })
    }
}

impl<T: End> fmt::Display for Range<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => f.write_str(&max.show()),
            Some(max) => write!(f, "{}..{}", self.min.show(), max.show()),
            None => write!(f, "{}..", self.min.show()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_count_and_either_may_be_left_out() {
        let ms = Duration::from_millis;
        for (text, holds, not) in [
            ("100ms", vec![ms(100)], vec![ms(99), ms(101)]),
            ("0s..100ms", vec![ms(0), ms(100)], vec![ms(101)]),
            ("1s..", vec![ms(1_000), ms(9_000_000)], vec![ms(999)]),
            ("..1s", vec![ms(0), ms(1_000)], vec![ms(1_001)]),
        ] {
            let range: Range<Duration> = Range::read(text).unwrap();
            assert!(holds.iter().all(|value| range.holds(*value)), "{text}");
            assert!(!not.iter().any(|value| range.holds(*value)), "{text}");
        }
        assert_eq!(Range::<u64>::read("20..23").unwrap().to_string(), "20..23");
        assert_eq!(Range::<u64>::read("..3").unwrap().to_string(), "0..3");
        for text in ["", "..", "3..2", "1s..2", "-1", "1...2", "+1", "1..2..3"] {
            assert_eq!(Range::<u64>::read(text), None, "{text}");
        }
        assert_eq!(Range::<Duration>::read("100"), None, "a duration has a unit");
    }
}
