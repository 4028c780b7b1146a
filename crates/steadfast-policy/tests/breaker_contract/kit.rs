//! Short words for the tests.

use std::time::Duration;

use steadfast_policy::breaker::{Breaker, BreakerConfig, Permit, Rejection, State, Transition, Why};
use steadfast_policy::{Time, Verdict};

pub(crate) use Verdict::{Failure, Paced, Success, Timeout};

/// Where the tests start: not at the clock's origin, and not on a bucket's edge.
pub(crate) const T0: Time = Time::from_millis(1_000_250);

pub(crate) fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

pub(crate) fn breaker(failures: u32) -> Breaker {
    Breaker::new(BreakerConfig { failures, ..BreakerConfig::default() })
}

/// One attempt that ends at once.
pub(crate) fn attempt(breaker: &mut Breaker, now: Time, verdict: Verdict) -> Result<(), Rejection> {
    let permit = breaker.try_acquire(now)?;
    breaker.record(now, permit, verdict);
    Ok(())
}

/// Attempts that end at once, for as long as the breaker lets them through: how many it did.
pub(crate) fn attempts(breaker: &mut Breaker, now: Time, verdicts: &[Verdict]) -> usize {
    verdicts.iter().take_while(|&&verdict| attempt(breaker, now, verdict).is_ok()).count()
}

pub(crate) fn refused(wait: f64) -> Result<(), Rejection> {
    Err(Rejection { retry_after: Some(secs(wait)) })
}

/// A breaker that five failures opened at `now`, its event taken.
pub(crate) fn opened(config: BreakerConfig, now: Time) -> Breaker {
    let mut breaker = Breaker::new(config);
    assert_eq!(attempts(&mut breaker, now, &[Failure; 6]), 5);
    assert_eq!(events(&mut breaker).len(), 1);
    breaker
}

/// A half-open breaker with its probe in flight since `T0` + 15 s, and the permit.
pub(crate) fn probing() -> (Breaker, Permit) {
    let mut breaker = opened(BreakerConfig::default(), T0);
    let probe = breaker.try_acquire(T0 + secs(15.0)).unwrap();
    (breaker, probe)
}

/// The transitions since the last look.
pub(crate) fn events(breaker: &mut Breaker) -> Vec<Transition> {
    std::iter::from_fn(|| breaker.poll_event()).collect()
}

pub(crate) fn transition(from: State, to: State, why: Why, at: Time) -> Transition {
    Transition { from, to, why, at }
}
