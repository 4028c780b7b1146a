//! How long to wait before a retry.
//!
//! The wait grows by a factor from retry to retry up to a maximum, and has a random part so that the callers who failed
//! together do not come back together. With `cap_n = min(max, base * factor^(n - 1))` before retry n:
//!
//! | jitter | wait |
//! |---|---|
//! | [`Jitter::Full`] | uniform in `[0, cap_n]` |
//! | [`Jitter::Equal`] | `cap_n / 2` + uniform in `[0, cap_n / 2]` |
//! | [`Jitter::Additive`] | `cap_n` + uniform in `[0, jitter_max]`: the only one that may exceed `max` |
//! | [`Jitter::None`] | `cap_n` |
//!
//! Both ends of each range are possible. No number, however large, makes a wait shorter than its rule or negative: what
//! does not fit is the maximum, and a base of zero is no wait at any retry.

use std::time::Duration;

/// The form of the random part of a backoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Uniform between zero and the cap.
    #[default]
    Full,
    /// Half the cap, and uniform between zero and the other half.
    Equal,
    /// The cap, and uniform between zero and `jitter_max` on top.
    Additive,
    /// Exactly the cap.
    None,
}

/// How the wait grows from retry to retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The cap before the first retry. Default 0.1 s.
    pub base: Duration,
    /// What the cap is multiplied with from retry to retry. Default 2. Below zero or not a number counts as 1.
    pub factor: f64,
    /// No cap is longer. Default 2 s.
    pub max: Duration,
    /// The form of the random part. Default [`Jitter::Full`].
    pub jitter: Jitter,
    /// The most that [`Jitter::Additive`] adds; the other forms do not read it. Default 0.1 s.
    pub jitter_max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(100),
            factor: 2.0,
            max: Duration::from_secs(2),
            jitter: Jitter::Full,
            jitter_max: Duration::from_millis(100),
        }
    }
}

impl Backoff {
    /// `min(max, base * factor^(retry - 1))`, where `retry` is 1 before the first retry. Saturates at any number.
    pub fn cap(&self, retry: u32) -> Duration {
        if self.base.is_zero() {
            return Duration::ZERO;
        }
        let factor = if self.factor >= 0.0 { self.factor } else { 1.0 };
        let power = i32::try_from(retry.saturating_sub(1)).unwrap_or(i32::MAX);
        // Nanoseconds as f64 are exact up to 104 days; beyond that nobody waits by the nanosecond.
        let grown = self.base.as_nanos() as f64 * factor.powi(power);
        let max = self.max.min(Duration::from_nanos(u64::MAX));
        if grown >= max.as_nanos() as f64 {
            return max;
        }
        Duration::from_nanos(grown as u64)
    }

    /// The wait before `retry` (1 before the first). `random` is one draw, uniform over all of `u64`.
    pub fn wait(&self, retry: u32, random: u64) -> Duration {
        let cap = self.cap(retry);
        match self.jitter {
            Jitter::Full => uniform(cap, random),
            Jitter::Equal => cap / 2 + uniform(cap - cap / 2, random),
            Jitter::Additive => cap.saturating_add(uniform(self.jitter_max, random)),
            Jitter::None => cap,
        }
    }
}

/// Maps one draw, uniform over all of `u64`, to a duration in `[0, most]`, both ends included.
///
/// More than 584 years counts as that.
pub fn uniform(most: Duration, random: u64) -> Duration {
    let values = most.as_nanos().min(u128::from(u64::MAX)) + 1;
    // At most (2^64 - 1) * 2^64, so neither the product nor the result overflows.
    let nanos = (u128::from(random) * values) >> 64;
    Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn with(base: Duration, factor: f64, max: Duration) -> Backoff {
        Backoff { base, factor, max, jitter: Jitter::None, ..Backoff::default() }
    }

    #[test]
    fn c2_5_the_cap_doubles_up_to_the_maximum() {
        let caps: Vec<_> = (1..=7).map(|n| Backoff::default().cap(n)).collect();
        assert_eq!(caps, [100, 200, 400, 800, 1600, 2000, 2000].map(millis));
    }

    #[test]
    fn c2_5_each_jitter_keeps_its_range_at_both_ends() {
        let ends = |jitter| {
            let backoff = Backoff { jitter, ..Backoff::default() };
            (backoff.wait(2, 0), backoff.wait(2, u64::MAX))
        };
        assert_eq!(ends(Jitter::Full), (millis(0), millis(200)));
        assert_eq!(ends(Jitter::Equal), (millis(100), millis(200)));
        assert_eq!(ends(Jitter::Additive), (millis(200), millis(300)));
        assert_eq!(ends(Jitter::None), (millis(200), millis(200)));
        let odd = Backoff { base: Duration::from_nanos(3), jitter: Jitter::Equal, ..Backoff::default() };
        assert_eq!((odd.wait(1, 0), odd.wait(1, u64::MAX)), (Duration::from_nanos(1), Duration::from_nanos(3)));
    }

    #[test]
    fn a_draw_is_proportional() {
        assert_eq!(uniform(millis(10), 1 << 63), millis(5));
        assert_eq!(uniform(millis(10), 1 << 62), Duration::from_micros(2500));
        assert_eq!(uniform(Duration::ZERO, u64::MAX), Duration::ZERO);
        assert_eq!(uniform(Duration::MAX, u64::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(uniform(Duration::MAX, 0), Duration::ZERO);
    }

    #[test]
    fn c2_5_it_saturates_at_any_retry() {
        let thirty = with(Duration::from_secs(2), 2.0, Duration::from_secs(30));
        let sixty = with(Duration::from_secs(1), 2.0, Duration::from_secs(60));
        for retry in [31, 32, 33, 63, 64, 65, 1024, 1025, 1026, 1 << 31, u32::MAX] {
            assert_eq!(thirty.cap(retry), Duration::from_secs(30), "retry {retry}");
            assert_eq!(sixty.cap(retry), Duration::from_secs(60), "retry {retry}");
        }
    }

    #[test]
    fn c2_5_a_base_above_the_maximum_is_the_maximum() {
        let backoff = with(Duration::from_secs(1), 2.0, millis(10));
        assert!((1..=100).all(|retry| backoff.cap(retry) == millis(10)));
    }

    #[test]
    fn c2_5_without_a_maximum_it_saturates() {
        let backoff = with(Duration::from_secs(1), 10.0, Duration::MAX);
        assert_eq!(backoff.cap(3), Duration::from_secs(100));
        let longest = Duration::from_nanos(u64::MAX);
        assert_eq!(backoff.cap(400), longest);
        let additive = Backoff { jitter: Jitter::Additive, jitter_max: Duration::MAX, ..backoff };
        assert_eq!(additive.wait(400, u64::MAX), longest + longest);
    }

    #[test]
    fn c2_5_a_base_of_zero_never_becomes_a_wait() {
        for factor in [0.0, 2.0, f64::INFINITY, f64::NAN] {
            let backoff = with(Duration::ZERO, factor, Duration::from_secs(60));
            assert!([1, 2, 1025, u32::MAX].iter().all(|&retry| backoff.cap(retry).is_zero()), "{factor}");
        }
    }

    #[test]
    fn c2_5_odd_factors_are_harmless() {
        let caps = |factor| [1, 2, 3].map(|retry| with(millis(100), factor, Duration::from_secs(2)).cap(retry));
        assert_eq!(caps(1.0), [100, 100, 100].map(millis));
        assert_eq!(caps(0.5), [100, 50, 25].map(millis));
        assert_eq!(caps(0.0), [100, 0, 0].map(millis));
        assert_eq!(caps(f64::NAN), [100, 100, 100].map(millis));
        assert_eq!(caps(-3.0), [100, 100, 100].map(millis));
        assert_eq!(caps(f64::INFINITY), [100, 2000, 2000].map(millis));
        assert_eq!(Backoff::default().cap(0), millis(100));
    }
}
