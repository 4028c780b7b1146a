//! The seed's cases, as far as the machine alone decides them: an attempt is a permit and a verdict.

use steadfast_policy::breaker::{Breaker, BreakerConfig, State};
use steadfast_policy::{Time, Verdict};

use crate::kit::*;

/// A breaker with `failures` 3 that three failures opened at `T0`.
fn after_c22() -> Breaker {
    let mut breaker = breaker(3);
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 4]), 3);
    breaker
}

#[test]
fn c22_three_failures_open_and_the_fourth_call_is_refused_for_the_cool_down() {
    let breaker = after_c22();
    assert_eq!(breaker.check(T0), refused(15.0));
}

#[test]
fn c23_a_success_resets_the_streak() {
    let mut breaker = breaker(3);
    let verdicts = [Failure, Failure, Success, Failure, Failure, Success];
    assert_eq!(attempts(&mut breaker, T0, &verdicts), 6);
    assert_eq!(breaker.state(T0), State::Closed);
}

#[test]
fn c24_refused_until_the_cool_down_ends_then_a_success_closes() {
    let mut breaker = after_c22();
    assert_eq!(attempt(&mut breaker, T0 + secs(14.9), Success), refused(0.1));
    assert_eq!(attempt(&mut breaker, T0 + secs(15.0), Success), Ok(()));
    assert_eq!(breaker.state(T0 + secs(15.0)), State::Closed);
}

#[test]
fn c25_a_failed_probe_reopens_for_a_full_cool_down_from_its_own_time() {
    let mut breaker = after_c22();
    let probed = T0 + secs(15.0);
    assert_eq!(attempt(&mut breaker, probed, Failure), Ok(()));
    assert_eq!(attempt(&mut breaker, probed + secs(9.0), Success), refused(6.0));
    assert_eq!(attempt(&mut breaker, probed + secs(14.999), Success), refused(0.001));
    assert_eq!(attempt(&mut breaker, probed + secs(15.0), Success), Ok(()));
}

#[test]
fn c26_while_the_probe_is_out_everyone_else_is_refused_and_its_result_decides() {
    for (verdict, state) in [(Success, State::Closed), (Failure, State::Open), (Timeout, State::Open)] {
        let mut breaker = after_c22();
        let now = T0 + secs(15.0);
        let probe = breaker.try_acquire(now).unwrap();
        assert!(probe.is_probe());
        for _ in 0..10 {
            assert!(breaker.try_acquire(now).is_err());
        }
        breaker.record(now, probe, verdict);
        assert_eq!(breaker.state(now), state);
    }
}

#[test]
fn c27_a_cancelled_probe_frees_its_place_for_the_next_call() {
    let mut breaker = after_c22();
    let now = T0 + secs(15.0);
    let probe = breaker.try_acquire(now).unwrap();
    breaker.cancel(now, probe);
    assert_eq!(breaker.state(now), State::HalfOpen);
    let probe = breaker.try_acquire(now).unwrap();
    assert!(probe.is_probe());
    assert!(breaker.try_acquire(now).is_err());
    breaker.record(now, probe, Success);
    assert_eq!(breaker.state(now), State::Closed);
}

#[test]
fn c28_a_500_a_429_and_a_404_never_open() {
    let mut breaker = breaker(3);
    // 500 and 404 are successes, 429 is paced.
    for verdict in [Success, Paced, Success] {
        assert_eq!(attempts(&mut breaker, T0, &[verdict; 10]), 10);
    }
    assert_eq!(breaker.state(T0), State::Closed);
}

/// Asked after successes too (S45): the tenth attempt, a success, makes the calls enough.
#[test]
fn c29_the_rate_rule_opens_at_the_attempt_that_makes_the_calls_enough() {
    let mut breaker = Breaker::new(BreakerConfig { failures: 100, minimum_calls: 10, ..BreakerConfig::default() });
    let verdicts: Vec<Verdict> = (0..10).map(|i| if i % 2 == 0 { Failure } else { Success }).collect();
    assert_eq!(attempts(&mut breaker, T0, &verdicts[..9]), 9);
    assert_eq!(breaker.state(T0), State::Closed);
    assert_eq!(attempt(&mut breaker, T0, verdicts[9]), Ok(()));
    assert_eq!(breaker.state(T0), State::Open);
}

#[test]
fn c31_timeouts_open_like_any_failure() {
    let mut breaker = breaker(3);
    assert_eq!(attempts(&mut breaker, T0, &[Timeout; 4]), 3);
    assert_eq!(breaker.check(Time::ZERO), refused(15.0), "a clock that steps back is no time");
}
