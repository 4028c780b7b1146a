//! 4.2 to 4.5 and 2.10: what counts while closed, and what an open breaker answers. The streak rule of 4.4 has tests of
//! its own (`breaker_rule`).

use steadfast_policy::Time;
use steadfast_policy::breaker::{BreakerConfig, State, Why};

use crate::kit::*;

#[test]
fn c4_the_defaults() {
    let expected = BreakerConfig {
        failures: 5,
        failure_rate: 0.5,
        minimum_calls: 20,
        window: secs(30.0),
        cool_down: secs(15.0),
        cool_down_start: None,
        probe_lease: secs(30.0),
    };
    assert_eq!(BreakerConfig::default(), expected);
}

#[test]
fn c4_2_a_success_resets_the_streak_and_a_timeout_is_a_failure() {
    let mut breaker = breaker(3);
    attempts(&mut breaker, T0, &[Failure, Timeout]);
    assert_eq!(breaker.snapshot(T0).streak, 2);
    attempts(&mut breaker, T0, &[Success]);
    let seen = breaker.snapshot(T0);
    assert_eq!((seen.streak, seen.calls, seen.failures), (0, 3, 2));
}

#[test]
fn c4_2_paced_is_not_recorded_while_closed() {
    let mut breaker = breaker(3);
    attempts(&mut breaker, T0, &[Failure, Failure, Paced]);
    let seen = breaker.snapshot(T0);
    assert_eq!((seen.streak, seen.calls, seen.failures), (2, 2, 2));
    assert_eq!(attempts(&mut breaker, T0, &[Failure, Failure]), 1);
    assert_eq!(breaker.state(T0), State::Open);
}

#[test]
fn c4_3_a_cancelled_attempt_is_no_verdict() {
    let mut breaker = breaker(2);
    attempts(&mut breaker, T0, &[Failure]);
    for _ in 0..10 {
        let permit = breaker.try_acquire(T0).unwrap();
        assert!(!permit.is_probe());
        breaker.cancel(T0, permit);
    }
    let seen = breaker.snapshot(T0);
    assert_eq!((seen.state, seen.streak, seen.calls), (State::Closed, 1, 1));
}

/// Both bounds are inclusive: the twentieth attempt, and a share of exactly a half.
#[test]
fn c4_4_the_rate_rule_at_its_bounds() {
    let verdicts = [Success, Failure];
    let mut breaker = breaker(100);
    for n in 0..19 {
        attempts(&mut breaker, T0, &[verdicts[n % 2]]);
        assert_eq!(breaker.state(T0), State::Closed, "after {}", n + 1);
    }
    attempts(&mut breaker, T0, &[Failure]);
    assert_eq!(breaker.state(T0), State::Open);
    assert_eq!(events(&mut breaker), [transition(State::Closed, State::Open, Why::Rate, T0)]);

    let mut below = self::breaker(100);
    let verdicts: Vec<_> = (0..20).map(|n| if n < 9 { Failure } else { Success }).collect();
    assert_eq!(attempts(&mut below, T0, &verdicts), 20);
    assert_eq!(below.state(T0), State::Closed);
}

#[test]
fn c4_5_open_refuses_with_what_is_left_of_the_cool_down() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    for (after, left) in [(0.0, 15.0), (0.25, 14.75), (14.0, 1.0), (14.999_999_999, 0.000_000_001)] {
        assert_eq!(breaker.check(T0 + secs(after)), refused(left));
        assert_eq!(breaker.snapshot(T0 + secs(after)).retry_after, Some(secs(left)));
        assert_eq!(attempt(&mut breaker, T0 + secs(after), Success), refused(left));
        assert_eq!(breaker.state(T0 + secs(after)), State::Open);
    }
}

/// 0.1: the end of the cool-down is part of what comes after it.
#[test]
fn c4_5_at_the_end_of_the_cool_down_a_probe_may_go() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    let end = T0 + secs(15.0);
    assert_eq!(breaker.check(end), Ok(()));
    let probe = breaker.try_acquire(end).unwrap();
    assert!(probe.is_probe());
    assert_eq!(events(&mut breaker), [transition(State::Open, State::HalfOpen, Why::CoolDownOver, end)]);
    breaker.cancel(end, probe);
}

#[test]
fn c2_10_a_retry_that_would_start_in_the_cool_down_is_refused() {
    let breaker = opened(BreakerConfig::default(), T0);
    assert!(breaker.would_refuse_at(T0, T0));
    assert!(breaker.would_refuse_at(T0, T0 + secs(14.999)));
    assert!(!breaker.would_refuse_at(T0, T0 + secs(15.0)));
    assert!(!breaker.would_refuse_at(T0 + secs(15.0), T0 + secs(15.0)));
    assert!(!breaker.would_refuse_at(T0 + secs(16.0), T0), "an instant that has passed is now");

    assert!(!self::breaker(5).would_refuse_at(T0, T0), "closed");
    let (half_open, probe) = probing();
    assert!(!half_open.would_refuse_at(T0, T0), "half-open: the verdict may come any moment");
    drop(probe);

    let mut forced = self::breaker(5);
    forced.force_open(T0);
    assert!(forced.would_refuse_at(T0, Time::MAX));
    forced.force_close(T0);
    assert!(!forced.would_refuse_at(T0, T0));
}

/// The latest time seen is now: a caller with an older one does not see the breaker as open again.
#[test]
fn c2_10_a_clock_that_steps_back_is_no_time() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    assert!(attempt(&mut breaker, T0 + secs(14.0), Success).is_err());
    assert_eq!(breaker.check(T0), refused(1.0));
    assert_eq!(breaker.snapshot(T0).retry_after, Some(secs(1.0)));
    attempt(&mut breaker, T0 + secs(20.0), Timeout).unwrap();
    // Reopened at 20, so until 35; a step back lengthens nothing.
    assert_eq!(breaker.check(T0), refused(15.0));
    assert!(breaker.would_refuse_at(T0, T0));
    breaker.record_successes(T0 + secs(36.0), 1);
    assert!(!breaker.would_refuse_at(T0, T0));
    assert_eq!(attempt(&mut breaker, T0, Success), Ok(()));
}
