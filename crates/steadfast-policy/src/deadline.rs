//! The one instant at which a call must be over.
//!
//! A call has one absolute deadline: the earliest of the upstream's total timeout, the caller's own timeout, and the
//! deadline of the request being served. It is computed once, and everything is measured against it: queueing, waits,
//! every attempt, reading the body. Relative timeouts, added up by whoever waits next, would let a call outlive them all.
//!
//! A deadline has passed when the clock shows its instant, not one tick later. [`Time::MAX`] is "no limit".

use std::time::Duration;

use crate::Time;

/// The time that an attempt needs at the least: none is started with less than this left (10 ms).
pub const MIN_ATTEMPT: Duration = Duration::from_millis(10);

/// The instant at which a call must be over, whatever it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Time);

impl Deadline {
    /// The earliest of the three limits that a call can have.
    ///
    /// `total` is the upstream's timeout for a whole call and `per_call` the caller's own; `Duration::MAX` in either is
    /// no further limit. `inherited` is the deadline of the request being served. A limit can shorten the others, never
    /// lengthen them.
    #[inline]
    pub fn earliest(now: Time, total: Duration, per_call: Option<Duration>, inherited: Option<Time>) -> Self {
        let own = now + per_call.map_or(total, |limit| limit.min(total));
        Self(inherited.map_or(own, |limit| limit.min(own)))
    }

    /// The instant itself.
    pub const fn at(self) -> Time {
        self.0
    }

    /// Whether it has been reached.
    #[inline]
    pub fn is_expired(self, now: Time) -> bool {
        now >= self.0
    }

    /// How long is left; zero once it has been reached.
    pub const fn remaining(self, now: Time) -> Duration {
        now.until(self.0)
    }

    /// Whether an attempt that starts at `at` has at least [`MIN_ATTEMPT`] left.
    pub fn allows_start(self, at: Time) -> bool {
        at + MIN_ATTEMPT <= self.0
    }
}

/// Whether an attempt that the call's deadline cut says something about the upstream.
///
/// It does if it `ran` for at least `evidence`, or for half of the upstream's `total` timeout where that is shorter. A
/// shorter run says only that the caller was in a hurry: the deadline may have come from anywhere.
pub fn is_timeout_evidence(ran: Duration, evidence: Duration, total: Duration) -> bool {
    ran >= evidence.min(total / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(100);

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn c1_1_the_earliest_of_three_limits_counts() {
        let at = |total, per_call, inherited| Deadline::earliest(NOW, total, per_call, inherited).at();
        assert_eq!(at(secs(30), None, None), Time::from_secs(130));
        assert_eq!(at(secs(30), Some(secs(5)), None), Time::from_secs(105));
        assert_eq!(at(secs(30), Some(secs(60)), None), Time::from_secs(130));
        assert_eq!(at(secs(30), Some(secs(5)), Some(Time::from_secs(103))), Time::from_secs(103));
        assert_eq!(at(secs(30), Some(secs(5)), Some(Time::from_secs(200))), Time::from_secs(105));
        assert_eq!(at(secs(30), None, Some(Time::from_secs(90))), Time::from_secs(90));
    }

    #[test]
    fn c1_1_the_longest_duration_is_no_further_limit() {
        let unlimited = Deadline::earliest(NOW, Duration::MAX, Some(Duration::MAX), None);
        assert_eq!(unlimited.at(), Time::MAX);
        assert!(unlimited.allows_start(Time::from_secs(1 << 33)));
        assert_eq!(Deadline::earliest(NOW, secs(30), Some(Duration::MAX), None).at(), Time::from_secs(130));
        // A sleep that is very long, but not the longest, must not overflow either.
        let long = Deadline::earliest(NOW, Duration::from_secs(u64::MAX / 10), None, None);
        assert_eq!(long.at(), Time::MAX);
    }

    #[test]
    fn c0_1_it_has_expired_at_its_instant() {
        let deadline = Deadline::earliest(NOW, secs(1), None, None);
        let at = deadline.at();
        let just_before = Time::from_nanos(at.as_nanos() - 1);
        assert!(!deadline.is_expired(just_before));
        assert!(deadline.is_expired(at));
        assert_eq!(deadline.remaining(just_before), Duration::from_nanos(1));
        assert_eq!(deadline.remaining(at + secs(1)), Duration::ZERO);
    }

    #[test]
    fn c2_7_a_start_needs_ten_milliseconds() {
        let deadline = Deadline::earliest(Time::ZERO, secs(1), None, None);
        assert!(deadline.allows_start(Time::from_millis(990)));
        assert!(!deadline.allows_start(Time::from_nanos(990_000_001)));
        assert!(!deadline.allows_start(Time::MAX));
    }

    #[test]
    fn c1_5_a_cut_attempt_is_evidence_from_the_shorter_of_two_times_on() {
        let just_under = Duration::from_nanos(999_999_999);
        assert!(is_timeout_evidence(secs(1), secs(1), secs(30)));
        assert!(!is_timeout_evidence(just_under, secs(1), secs(30)));
        assert!(is_timeout_evidence(Duration::from_millis(250), secs(1), Duration::from_millis(500)));
        assert!(!is_timeout_evidence(Duration::from_millis(249), secs(1), Duration::from_millis(500)));
        assert!(!is_timeout_evidence(just_under, secs(1), Duration::MAX));
    }
}
