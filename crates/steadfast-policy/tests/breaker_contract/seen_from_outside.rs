//! 4.9: events and snapshots; and successes that the glue recorded in one step.

use steadfast_policy::breaker::{Breaker, BreakerConfig, Opened, State, Why};

use crate::kit::*;

#[test]
fn c4_9_events_tell_of_every_transition_in_order() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    attempts(&mut breaker, T0, &[Failure; 5]);
    let probed = T0 + secs(15.0);
    attempts(&mut breaker, probed, &[Failure]);
    let again = probed + secs(15.0);
    attempts(&mut breaker, again, &[Success]);
    let expected = [
        transition(State::Closed, State::Open, Why::Streak, T0),
        transition(State::Open, State::HalfOpen, Why::CoolDownOver, probed),
        transition(State::HalfOpen, State::Open, Why::ProbeFailed, probed),
        transition(State::Open, State::HalfOpen, Why::CoolDownOver, again),
        transition(State::HalfOpen, State::Closed, Why::ProbeSucceeded, again),
    ];
    assert_eq!(events(&mut breaker), expected);
    assert_eq!(breaker.poll_event(), None);
}

#[test]
fn c4_9_events_that_nobody_asks_for_are_bounded_and_the_oldest_go() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    for n in 0..20 {
        breaker.force_open(T0 + secs(f64::from(2 * n)));
        breaker.reset(T0 + secs(f64::from(2 * n + 1)));
    }
    let kept = events(&mut breaker);
    assert_eq!(kept.len(), 16);
    assert_eq!(kept.first().unwrap().at, T0 + secs(24.0));
    assert_eq!(kept.last().unwrap().at, T0 + secs(39.0));
}

/// Kept while open and half-open, through failed probes, until it closes.
#[test]
fn c4_9_the_snapshot_keeps_the_count_that_opened_it() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    attempts(&mut breaker, T0, &[Success; 4]);
    assert_eq!(breaker.snapshot(T0).opened_with, None);
    attempts(&mut breaker, T0 + secs(1.0), &[Failure; 5]);
    let counts = Some(Opened { streak: 5, calls: 9, failures: 5, why: Why::Streak });
    assert_eq!(breaker.snapshot(T0).opened_with, counts);
    assert_eq!(breaker.snapshot(T0).streak, 0, "the live counts start anew");
    attempts(&mut breaker, T0 + secs(16.0), &[Timeout]);
    assert_eq!(breaker.snapshot(T0).opened_with, counts);
    let probe = breaker.try_acquire(T0 + secs(31.0)).unwrap();
    assert_eq!(breaker.snapshot(T0).opened_with, counts);
    breaker.record(T0 + secs(31.0), probe, Success);
    assert_eq!(breaker.snapshot(T0).opened_with, None);

    let mut by_rate = Breaker::new(BreakerConfig { minimum_calls: 2, ..BreakerConfig::default() });
    attempts(&mut by_rate, T0, &[Failure, Success]);
    let counts = Opened { streak: 0, calls: 2, failures: 1, why: Why::Rate };
    assert_eq!(by_rate.snapshot(T0).opened_with, Some(counts));
}

/// The snapshot shows the window that ends now, though nothing was recorded since.
#[test]
fn c4_9_the_snapshot_forgets_what_left_the_window() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    attempts(&mut breaker, T0, &[Failure, Success]);
    attempts(&mut breaker, T0 + secs(10.0), &[Failure, Failure, Success]);
    for (after, calls, failures) in [(10.0, 5, 3), (29.0, 5, 3), (30.0, 3, 2), (39.0, 3, 2), (40.0, 0, 0), (9e6, 0, 0)]
    {
        let seen = breaker.snapshot(T0 + secs(after));
        assert_eq!((seen.calls, seen.failures), (calls, failures), "{after}");
    }
}

/// Many successes in one step are as many in many steps, up to the one that makes the calls enough for the rate rule.
#[test]
fn record_successes_is_the_same_as_one_at_a_time() {
    for n in 0..30 {
        for failures in [0, 3, 9, 10, 11] {
            let (mut one, mut many) = (breaker(100), breaker(100));
            for breaker in [&mut one, &mut many] {
                attempts(breaker, T0, &vec![Failure; failures]);
            }
            attempts(&mut one, T0, &vec![Success; n as usize]);
            many.record_successes(T0, n);
            assert_eq!(many.snapshot(T0), one.snapshot(T0), "{failures} failures, then {n}");
            assert_eq!(
                many.state(T0),
                if failures >= 10 && n as usize + failures >= 20 { State::Open } else { State::Closed }
            );
        }
    }
}

#[test]
fn record_successes_counts_only_while_closed() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.record_successes(T0, 50);
    assert_eq!(breaker.snapshot(T0).calls, 0);
    let probe = breaker.try_acquire(T0 + secs(15.0)).unwrap();
    breaker.record_successes(T0 + secs(15.0), 50);
    assert_eq!(breaker.state(T0), State::HalfOpen);
    breaker.record(T0 + secs(15.0), probe, Success);
    assert_eq!(breaker.snapshot(T0).calls, 0);
}

/// None at all is nothing: it does not even end a streak.
#[test]
fn record_successes_of_none_is_nothing() {
    let mut breaker = breaker(3);
    attempts(&mut breaker, T0, &[Failure, Failure]);
    breaker.record_successes(T0, 0);
    assert_eq!(breaker.snapshot(T0).streak, 2);
}
