//! Short words for the tests.

use std::time::Duration;

use steadfast_policy::breaker::{Breaker, BreakerConfig, Rejection};
use steadfast_policy::{Time, Verdict};

pub(crate) use Verdict::{Failure, Paced, Success, Timeout};

/// Where the tests start: not at the clock's origin, and not on a bucket's edge.
pub(crate) const T0: Time = Time::from_millis(1_000_250);

pub(crate) fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

pub(crate) fn breaker(failures: u32) -> Breaker {
    Breaker::new(BreakerConfig {
        failures,
        ..BreakerConfig::default()
    })
}

/// One attempt that ends at once.
pub(crate) fn attempt(breaker: &mut Breaker, now: Time, verdict: Verdict) -> Result<(), Rejection> {
    let permit = breaker.try_acquire(now)?;
    breaker.record(now, permit, verdict);
    Ok(())
}

/// Attempts that end at once, for as long as the breaker lets them through: how many it did.
pub(crate) fn attempts(breaker: &mut Breaker, now: Time, verdicts: &[Verdict]) -> usize {
    verdicts
        .iter()
        .take_while(|&&verdict| attempt(breaker, now, verdict).is_ok())
        .count()
}

pub(crate) fn refused(wait: f64) -> Result<(), Rejection> {
    Err(Rejection {
        retry_after: Some(secs(wait)),
    })
}
