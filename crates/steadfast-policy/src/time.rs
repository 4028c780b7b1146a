//! An instant of the client's own clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// Nanoseconds since the origin of the client's clock.
///
/// All arithmetic saturates: 584 years fit, and what lies beyond is [`Time::MAX`], "never". A policy that is handed an
/// earlier time than before behaves as if no time had passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);
    /// Never: later than any instant that a clock reaches.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The instant `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long `earlier` lies before this instant; zero if it does not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// How long it is until `later`; zero if it has been reached.
    pub const fn until(self, later: Self) -> Duration {
        later.since(self)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        let whole = duration.as_secs().saturating_mul(1_000_000_000);
        Self(self.0.saturating_add(whole.saturating_add(u64::from(duration.subsec_nanos()))))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::from_secs(1) + Duration::MAX, Time::MAX);
        assert_eq!(Time::from_secs(u64::MAX), Time::MAX);
        assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::MAX), Duration::ZERO);
        assert_eq!(Time::ZERO.until(Time::from_millis(7)), Duration::from_millis(7));
        assert_eq!(Time::from_millis(3) + Duration::from_millis(4), Time::from_nanos(7_000_000));
    }
}
