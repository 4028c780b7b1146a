//! 4.6 and 4.7: one probe with a lease, and attempts of an earlier generation.

use steadfast_policy::breaker::{Breaker, BreakerConfig, State, Why};

use crate::kit::*;

#[test]
fn c4_2_a_probe_that_is_paced_closes() {
    let (mut breaker, probe) = probing();
    breaker.record(T0 + secs(16.0), probe, Paced);
    assert_eq!(breaker.state(T0 + secs(16.0)), State::Closed);
    let why: Vec<Why> = events(&mut breaker).iter().map(|event| event.why).collect();
    assert_eq!(why, [Why::CoolDownOver, Why::ProbeSucceeded]);
}

/// What is left of the probe's lease, at most the cool-down, at least a tenth of a second.
#[test]
fn c4_6_half_open_refuses_with_what_is_left_of_the_lease_within_bounds() {
    let (mut breaker, probe) = probing();
    let probed = T0 + secs(15.0);
    for (after, told) in [(0.0, 15.0), (14.0, 15.0), (15.0, 15.0), (20.0, 10.0), (29.5, 0.5), (29.9, 0.1)] {
        assert_eq!(breaker.check(probed + secs(after)), refused(told), "{after}");
    }
    for after in [29.91, 29.999_999_999] {
        assert_eq!(breaker.check(probed + secs(after)), refused(0.1), "{after}");
        assert_eq!(attempt(&mut breaker, probed + secs(after), Success), refused(0.1));
        assert!(!breaker.snapshot(probed + secs(after)).ready_to_probe);
    }
    drop(probe);

    // The lower bound wins over a cool-down that is shorter still.
    let config = BreakerConfig { cool_down: secs(0.05), ..BreakerConfig::default() };
    let mut breaker = opened(config, T0);
    let probe = breaker.try_acquire(T0 + secs(0.05)).unwrap();
    assert_eq!(breaker.check(T0 + secs(0.05)), refused(0.1));
    breaker.cancel(T0 + secs(0.05), probe);
}

#[test]
fn c4_6_a_success_closes_to_a_fresh_state() {
    let (mut breaker, probe) = probing();
    let now = T0 + secs(15.5);
    breaker.record(now, probe, Success);
    let seen = breaker.snapshot(now);
    assert_eq!(seen.state, State::Closed);
    assert_eq!((seen.streak, seen.calls, seen.failures, seen.opened_with), (0, 0, 0, None));
    assert_eq!(attempts(&mut breaker, now, &[Failure; 10]), 5);
}

#[test]
fn c4_6_a_failure_reopens_for_a_full_cool_down_from_its_own_time() {
    for verdict in [Failure, Timeout] {
        let (mut breaker, probe) = probing();
        let failed = T0 + secs(22.0);
        breaker.record(failed, probe, verdict);
        assert_eq!(breaker.check(failed), refused(15.0));
        assert_eq!(breaker.check(failed + secs(15.0)), Ok(()));
        let last = *events(&mut breaker).last().unwrap();
        assert_eq!(last, transition(State::HalfOpen, State::Open, Why::ProbeFailed, failed));
    }
}

/// A probe that nobody gave back: its place goes to the next call when its lease is over, and not before.
#[test]
fn c4_6_a_lost_probe_is_given_up_after_its_lease() {
    let (mut breaker, probe) = probing();
    let over = T0 + secs(45.0);
    drop(probe);
    assert!(breaker.try_acquire(over).is_ok_and(|permit| permit.is_probe()));
    assert!(breaker.try_acquire(over).is_err(), "and again there is one probe");
    assert_eq!(breaker.check(over), refused(15.0));
}

/// The permit of a probe that outlived its lease is void, whatever it brings home, once another has its place.
#[test]
fn c4_6_a_probe_that_was_replaced_decides_nothing() {
    for verdict in [Success, Failure, Timeout, Paced] {
        let (mut breaker, old) = probing();
        let now = T0 + secs(45.0);
        let probe = breaker.try_acquire(now).unwrap();
        breaker.record(now, old, verdict);
        assert_eq!(breaker.state(now), State::HalfOpen);
        assert!(breaker.try_acquire(now).is_err(), "the place is still the new probe's");
        assert_eq!(breaker.snapshot(now).late_verdicts, 1);
        breaker.record(now, probe, Success);
        assert_eq!(breaker.state(now), State::Closed);
    }

    let (mut breaker, old) = probing();
    let now = T0 + secs(45.0);
    let probe = breaker.try_acquire(now).unwrap();
    breaker.cancel(now, old);
    assert!(breaker.try_acquire(now).is_err(), "the place is still the new probe's");
    breaker.cancel(now, probe);
    assert!(breaker.try_acquire(now).is_ok());
}

/// An answer that took longer than any call may take proves nothing, even if nobody has the place yet. One that came
/// at the very end of the lease does (0.1: a result beats a timer).
#[test]
fn c4_6_an_overdue_success_frees_the_place_and_no_more() {
    for verdict in [Success, Paced] {
        let (mut breaker, probe) = probing();
        let now = T0 + secs(45.000_000_001);
        breaker.record(now, probe, verdict);
        let seen = breaker.snapshot(now);
        assert_eq!((seen.state, seen.ready_to_probe, seen.late_verdicts), (State::HalfOpen, true, 1));
        assert!(breaker.try_acquire(now).is_ok_and(|permit| permit.is_probe()));

        let (mut breaker, probe) = probing();
        breaker.record(T0 + secs(45.0), probe, verdict);
        assert_eq!(breaker.state(T0), State::Closed);
    }
}

/// The probe of a hung upstream is cut by its call's deadline, when its lease is just over. That must reopen: else
/// every probe would hang for a whole deadline, for good (1.5).
#[test]
fn c4_6_a_probe_that_failed_late_reopens() {
    for late in [0.0, 0.003, 5.0] {
        let (mut breaker, probe) = probing();
        let now = T0 + secs(45.0 + late);
        breaker.record(now, probe, Timeout);
        assert_eq!(breaker.check(now), refused(15.0));
    }
}

/// Any number of looks, at any time, and the next call finds what it would have found.
#[test]
fn c4_6_asking_never_changes_state() {
    let breaker = opened(BreakerConfig::default(), T0);
    let before = format!("{breaker:?}");
    for after in [0.0, 15.0, 500.0] {
        let _ = (breaker.state(T0 + secs(after)), breaker.check(T0 + secs(after)));
        let seen = breaker.snapshot(T0 + secs(after));
        assert_eq!(seen.state, State::Open, "until a call takes the probe");
        assert_eq!(seen.ready_to_probe, after >= 15.0);
        assert_eq!(seen.retry_after.is_none(), after >= 15.0);
    }
    assert_eq!(format!("{breaker:?}"), before);
    assert!(!self::breaker(5).snapshot(T0).ready_to_probe, "closed is not waiting for a probe");
}

/// Admitted closed, ended after the breaker opened, half-opened, closed again: in none of them it counts.
#[test]
fn c4_7_an_attempt_admitted_before_a_transition_decides_nothing_after_it() {
    for verdict in [Success, Failure] {
        let mut breaker = Breaker::new(BreakerConfig::default());
        let mut old: Vec<_> = (0..4).map(|_| breaker.try_acquire(T0).unwrap()).collect();
        attempts(&mut breaker, T0, &[Failure; 5]);

        breaker.record(T0 + secs(1.0), old.pop().unwrap(), verdict);
        assert_eq!(breaker.check(T0 + secs(1.0)), refused(14.0), "open");

        let now = T0 + secs(15.0);
        let probe = breaker.try_acquire(now).unwrap();
        breaker.record(now, old.pop().unwrap(), verdict);
        assert_eq!(breaker.state(now), State::HalfOpen);
        breaker.cancel(now, old.pop().unwrap());
        assert!(breaker.try_acquire(now).is_err(), "a late cancellation frees nothing");

        breaker.record(now, probe, Success);
        breaker.record(now, old.pop().unwrap(), verdict);
        let seen = breaker.snapshot(now);
        assert_eq!((seen.state, seen.streak, seen.calls), (State::Closed, 0, 0));
        assert_eq!(seen.late_verdicts, 3);
    }
}
