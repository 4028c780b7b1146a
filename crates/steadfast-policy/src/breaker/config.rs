//! The breaker's settings, and the integers that the machine computes with.
//!
//! A float is read once, here. Whatever the settings hold (NaN, zero, a window of centuries), the rule made from them
//! works: refusing a senseless value with a good message is the configuration's business, not the machine's.

use std::time::Duration;

/// How many buckets the window has.
pub(super) const BUCKETS: u32 = 30;

/// When the breaker opens, and how it closes again.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerConfig {
    /// The shortest streak of failures that opens it, and exactly the streak that does so from a fresh start.
    /// Default 5; 0 is taken as 1.
    pub failures: u32,
    /// The share of failures in the window that opens it, 0 to 1, in whole millionths (a finer share is rounded down).
    /// Default 0.5. Less than one millionth is taken as one; more than 1, or NaN, as 1.
    pub failure_rate: f64,
    /// Attempts in the window before the share counts. Default 20.
    pub minimum_calls: u32,
    /// The window over which attempts are counted, in 30 buckets of equal length. Any positive length; default 30 s.
    pub window: Duration,
    /// How long the breaker stays open before one probe may go. Default 15 s.
    pub cool_down: Duration,
    /// How long the first opening lasts; each failed probe doubles it, up to `cool_down`, and it starts again once the
    /// breaker has been closed for `cool_down`. Default unset: every opening lasts `cool_down`.
    pub cool_down_start: Option<Duration>,
    /// How long a probe may take before its place goes to the next call: the call's total timeout. Default 30 s.
    pub probe_lease: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            failure_rate: 0.5,
            minimum_calls: 20,
            window: Duration::from_secs(30),
            cool_down: Duration::from_secs(15),
            cool_down_start: None,
            probe_lease: Duration::from_secs(30),
        }
    }
}

/// The two opening rules, in integers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// The shortest streak that opens, at least 1.
    pub(super) failures: u64,
    /// The share of failures that opens, in millionths, 1 to 1 000 000.
    rate: u64,
    minimum_calls: u64,
    window_nanos: u64,
}

impl Rules {
    pub(super) fn new(config: &BreakerConfig) -> Self {
        Self {
            failures: u64::from(config.failures.max(1)),
            rate: millionths(config.failure_rate),
            minimum_calls: u64::from(config.minimum_calls),
            window_nanos: nanos(config.window),
        }
    }

    /// The length of one bucket in nanoseconds, at least 1.
    pub(super) fn bucket_nanos(&self) -> u64 {
        (self.window_nanos / u64::from(BUCKETS)).max(1)
    }

    /// The window in nanoseconds.
    pub(super) fn window_nanos(&self) -> u64 {
        self.window_nanos
    }

    /// The rate rule: does this share of this many calls open the breaker?
    ///
    /// Counts stay below 2^37 (30 buckets of u32), so that no product overflows.
    #[inline]
    pub(super) fn rate_opens(&self, calls: u64, failures: u64) -> bool {
        calls >= self.minimum_calls && failures * 1_000_000 >= self.rate * calls
    }

    /// How many successes more, at least one, it takes until the rate rule has enough calls to be asked.
    #[inline]
    pub(super) fn successes_until_asked(&self, calls: u64) -> u64 {
        self.minimum_calls.saturating_sub(calls).max(1)
    }
}

/// A share as whole millionths.
///
/// Rounded down, so that two failures of three meet a rate of two thirds; the thousandth of a millionth makes up for a
/// float such as 0.57, whose million-fold lies a hair below 570 000.
fn millionths(share: f64) -> u64 {
    let share = if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) };
    ((share * 1e6 + 1e-3) as u64).max(1)
}

/// A duration in nanoseconds, saturating: 584 years fit.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_becomes_whole_millionths() {
        for (share, expected) in [
            (0.5, 500_000),
            (0.57, 570_000),
            (0.29, 290_000),
            (1.0 / 3.0, 333_333),
            (2.0 / 3.0, 666_666),
            (0.000_001, 1),
            (0.0, 1),
            (-1.0, 1),
            (f64::NEG_INFINITY, 1),
            (1.0, 1_000_000),
            (7.0, 1_000_000),
            (f64::INFINITY, 1_000_000),
            (f64::NAN, 1_000_000),
        ] {
            assert_eq!(millionths(share), expected, "{share}");
        }
        for percent in 1..=100_u64 {
            assert_eq!(millionths(percent as f64 / 100.0), percent * 10_000, "{percent} %");
        }
    }

    #[test]
    fn a_window_of_any_length_has_thirty_buckets() {
        let bucket = |window| Rules::new(&BreakerConfig { window, ..BreakerConfig::default() }).bucket_nanos();
        assert_eq!(bucket(Duration::from_secs(30)), 1_000_000_000);
        assert_eq!(bucket(Duration::from_millis(50)), 1_666_666);
        assert_eq!(bucket(Duration::ZERO), 1);
        assert_eq!(bucket(Duration::MAX), u64::MAX / 30);
    }

    #[test]
    fn the_rate_rule_holds_at_its_bounds_and_at_any_count() {
        let rules = Rules::new(&BreakerConfig { failure_rate: 1.0, minimum_calls: 3, ..BreakerConfig::default() });
        assert!(!rules.rate_opens(2, 2));
        assert!(rules.rate_opens(3, 3));
        assert!(!rules.rate_opens(4, 3));
        let most = u64::from(u32::MAX) * u64::from(BUCKETS);
        assert!(rules.rate_opens(most, most));
        assert!(!rules.rate_opens(most, most - 1));
    }
}
