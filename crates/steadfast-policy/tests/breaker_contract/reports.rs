//! What other breakers got wrong, as far as the machine alone decides it. Each test names the report it answers.

use steadfast_policy::breaker::{Breaker, BreakerConfig, Permit, State};
use steadfast_policy::{Time, Verdict};

use crate::kit::*;

/// When the probe of [`probing`] was let through.
fn probed() -> Time {
    T0 + secs(15.0)
}

/// resilience4j#544 (A71): an outcome that counts as nothing must give the half-open place back.
#[test]
fn a71_an_ignored_outcome_frees_the_probes_place() {
    let ((mut breaker, probe), now) = (probing(), probed());
    breaker.cancel(now, probe);
    assert!(breaker.try_acquire(now).is_ok_and(|permit| permit.is_probe()));
}

/// OmniRoute#13836 (A72): a probe that never ended shut the breaker for six days.
#[test]
fn a72_a_probe_that_never_ends_is_bounded_by_its_lease() {
    let ((mut breaker, probe), now) = (probing(), probed());
    drop(probe);
    assert!(breaker.try_acquire(now + secs(29.9)).is_err());
    assert!(breaker.try_acquire(now + secs(30.0)).is_ok_and(|permit| permit.is_probe()));
}

/// nora#585 (A73): a probe with a good head and a broken body is a failure.
#[test]
fn a73_a_probe_whose_body_breaks_reopens() {
    let ((mut breaker, probe), now) = (probing(), probed());
    breaker.record(now, probe, Failure);
    assert_eq!(breaker.check(now), refused(15.0));
}

/// tower-resilience#407 (A74): every clone was a probe.
#[test]
fn a74_of_fifty_calls_at_the_end_of_the_cool_down_one_goes() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    let let_through = (0..50).filter(|_| breaker.try_acquire(T0 + secs(15.0)).is_ok()).count();
    assert_eq!(let_through, 1);
}

/// opossum#276 (A75): the minimum of calls must not apply to the probe.
#[test]
fn a75_one_failed_probe_reopens_whatever_the_minimum_of_calls() {
    let config = BreakerConfig { minimum_calls: 1_000, ..BreakerConfig::default() };
    let mut breaker = opened(config, T0);
    attempt(&mut breaker, T0 + secs(15.0), Failure).unwrap();
    assert_eq!(breaker.check(T0 + secs(15.0)), refused(15.0));
}

/// opossum#385 (A76): the failure after the one that opened cancelled the timer.
#[test]
fn a76_failures_that_end_after_the_opening_do_not_move_its_end() {
    let mut breaker = breaker(5);
    let permits: Vec<_> = (0..8).map(|_| breaker.try_acquire(T0).unwrap()).collect();
    for (n, permit) in (0_u32..).zip(permits) {
        breaker.record(T0 + secs(f64::from(n)), permit, Failure);
    }
    // The fifth, at 4 s, opened it.
    assert_eq!(breaker.check(T0 + secs(7.0)), refused(12.0));
    assert_eq!(breaker.check(T0 + secs(19.0)), Ok(()));
}

/// oxidizer#506 (A77): what calls dropped by their callers mean.
#[test]
fn a77_dropped_calls_are_neutral() {
    let mut breaker = breaker(5);
    for _ in 0..10 {
        let permit = breaker.try_acquire(T0).unwrap();
        breaker.cancel(T0, permit);
    }
    assert_eq!(breaker.snapshot(T0).calls, 0);
}

/// Polly#223 (A78), gobreaker#122 (A80): a result of the closed time decided half-open; and when it was dropped nobody
/// could tell.
#[test]
fn a78_a80_a_late_result_decides_nothing_and_can_be_seen() {
    let mut breaker = breaker(5);
    let old = breaker.try_acquire(T0).unwrap();
    attempts(&mut breaker, T0, &[Failure; 5]);
    let now = T0 + secs(15.0);
    let probe = breaker.try_acquire(now).unwrap();
    breaker.record(now, old, Success);
    let seen = breaker.snapshot(now);
    assert_eq!((seen.state, seen.late_verdicts), (State::HalfOpen, 1));
    breaker.record(now, probe, Failure);
    assert_eq!(breaker.state(now), State::Open);
}

/// k8s-breakglass#981 (A79): results of an earlier half-open time pushed the count of probes below zero.
#[test]
fn a79_a_slow_probe_of_an_earlier_time_frees_no_second_place() {
    for settle in [Breaker::cancel as fn(&mut Breaker, Time, Permit), |breaker, now, permit| {
        breaker.record(now, permit, Success);
    }] {
        let ((mut breaker, slow), now) = (probing(), probed());
        let second = breaker.try_acquire(now + secs(30.0)).unwrap();
        breaker.record(now + secs(30.0), second, Failure);
        let now = now + secs(45.0);
        let third = breaker.try_acquire(now).unwrap();
        settle(&mut breaker, now, slow);
        assert!(breaker.try_acquire(now).is_err(), "still one probe");
        breaker.record(now, third, Success);
        assert_eq!(breaker.state(now), State::Closed);
    }
}

/// circuitbox#45 (A81): 4xx opened the breaker.
#[test]
fn a81_thirty_answers_of_404_leave_it_closed() {
    let mut breaker = breaker(5);
    assert_eq!(attempts(&mut breaker, T0, &[Success; 30]), 30);
    assert_eq!(breaker.state(T0), State::Closed);
}

/// router#60 (A82): an answer of 400 proves that the upstream is up. Four in a row that it ended are a streak that
/// recovers by itself; from then on an outage must be three times as long.
#[test]
fn a82_a_client_error_ends_the_streak() {
    let mut breaker = breaker(5);
    let verdicts = [Failure, Failure, Failure, Failure, Success, Failure];
    assert_eq!(attempts(&mut breaker, T0, &verdicts), 6);
    assert_eq!(breaker.snapshot(T0).streak, 1);
    assert_eq!(breaker.state(T0), State::Closed);
}

/// armeria#2761 (A83): the event that begins a bucket was left out of the decision.
#[test]
fn a83_the_first_event_of_a_bucket_takes_part_in_the_decision() {
    let config = BreakerConfig { minimum_calls: 3, failure_rate: 0.1, ..BreakerConfig::default() };
    let mut breaker = Breaker::new(config);
    attempts(&mut breaker, T0, &[Success, Success]);
    attempts(&mut breaker, T0 + secs(1.0), &[Failure]);
    assert_eq!(breaker.state(T0), State::Open);
}

/// resilience4j#842 (A84): the rule is asked at each verdict, not at the end of the window.
#[test]
fn a84_it_opens_at_the_attempt_not_at_the_end_of_the_window() {
    let config = BreakerConfig {
        failures: 100,
        minimum_calls: 5,
        failure_rate: 1.0,
        window: secs(20.0),
        ..BreakerConfig::default()
    };
    let mut breaker = Breaker::new(config);
    for n in 0_u32..5 {
        assert_eq!(breaker.state(T0), State::Closed);
        attempts(&mut breaker, T0 + secs(0.4 * f64::from(n)), &[Failure]);
    }
    assert_eq!(breaker.state(T0), State::Open);
}

/// stoplight#873 (A85): the clock was set back, and old failures stayed. Ours is monotonic; one that steps back all the
/// same is no time, and a window later the old ones are gone.
#[test]
fn a85_a_clock_that_steps_back_keeps_nothing_alive() {
    let mut breaker = breaker(3);
    attempts(&mut breaker, T0, &[Verdict::Failure, Verdict::Failure]);
    attempts(&mut breaker, Time::ZERO, &[Success]);
    assert_eq!(breaker.snapshot(Time::ZERO).calls, 3, "counted in the newest bucket");
    attempts(&mut breaker, T0 + secs(30.0), &[Failure]);
    let seen = breaker.snapshot(T0);
    assert_eq!((seen.state, seen.calls, seen.failures), (State::Closed, 1, 1));
}
