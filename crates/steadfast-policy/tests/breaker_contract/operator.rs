//! 4.9: what an operator may do. Forced open until `reset`, without `retry_after`; forced closed ignores verdicts until
//! `reset`.

use steadfast_policy::Time;
use steadfast_policy::breaker::{Breaker, BreakerConfig, Opened, Rejection, State, Why};

use crate::kit::*;

#[test]
fn c4_9_forced_open_refuses_without_an_end() {
    let mut breaker = breaker(5);
    let admitted = breaker.try_acquire(T0).unwrap();
    breaker.force_open(T0);
    for now in [T0, T0 + secs(15.0), Time::MAX] {
        assert_eq!(breaker.check(now), Err(Rejection { retry_after: None }));
        assert_eq!(breaker.try_acquire(now), Err(Rejection { retry_after: None }));
        let seen = breaker.snapshot(now);
        assert_eq!((seen.state, seen.forced, seen.retry_after, seen.ready_to_probe), (State::Open, true, None, false));
    }
    breaker.record(T0, admitted, Success);
    assert_eq!(breaker.state(T0), State::Open);
    breaker.reset(T0);
    assert_eq!(attempt(&mut breaker, T0, Success), Ok(()));
    assert!(!breaker.snapshot(T0).forced);
}

#[test]
fn c4_9_forced_closed_ignores_verdicts_until_reset() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.force_close(T0);
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 100]), 100);
    breaker.record_successes(T0, 100);
    let seen = breaker.snapshot(T0);
    assert_eq!((seen.state, seen.forced, seen.streak, seen.calls), (State::Closed, true, 0, 0));
    assert_eq!(seen.opened_with, None);

    let admitted = breaker.try_acquire(T0).unwrap();
    breaker.reset(T0);
    breaker.record(T0, admitted, Failure);
    assert_eq!(breaker.snapshot(T0).calls, 0, "admitted before the reset");
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 100]), 5);
}

#[test]
fn c4_9_reset_closes_and_forgets() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.reset(T0);
    let seen = breaker.snapshot(T0);
    assert_eq!((seen.state, seen.opened_with), (State::Closed, None));

    attempts(&mut breaker, T0, &[Failure; 4]);
    breaker.reset(T0);
    assert_eq!(breaker.snapshot(T0).streak, 0);
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 10]), 5);
}

#[test]
fn c4_9_a_probe_in_flight_is_void_after_an_operators_action() {
    let actions: [fn(&mut Breaker, Time); 3] = [Breaker::force_open, Breaker::force_close, Breaker::reset];
    for (action, state) in actions.into_iter().zip([State::Open, State::Closed, State::Closed]) {
        for verdict in [Success, Failure] {
            let mut breaker = opened(BreakerConfig::default(), T0);
            let now = T0 + secs(15.0);
            let probe = breaker.try_acquire(now).unwrap();
            action(&mut breaker, now);
            breaker.record(now, probe, verdict);
            assert_eq!(breaker.state(now), state);
        }
    }
}

/// Each change that can be seen is one event; doing the same again is none.
#[test]
fn c4_9_an_operators_actions_are_events() {
    let mut breaker = breaker(5);
    breaker.force_open(T0);
    breaker.force_open(T0 + secs(1.0));
    breaker.force_close(T0 + secs(2.0));
    breaker.force_close(T0 + secs(3.0));
    breaker.reset(T0 + secs(4.0));
    breaker.reset(T0 + secs(5.0));
    breaker.force_open(T0 + secs(6.0));
    breaker.reset(T0 + secs(7.0));
    let expected = [
        transition(State::Closed, State::Open, Why::Forced, T0),
        transition(State::Open, State::Closed, Why::Forced, T0 + secs(2.0)),
        transition(State::Closed, State::Closed, Why::Reset, T0 + secs(4.0)),
        transition(State::Closed, State::Open, Why::Forced, T0 + secs(6.0)),
        transition(State::Open, State::Closed, Why::Reset, T0 + secs(7.0)),
    ];
    assert_eq!(events(&mut breaker), expected);

    // An open breaker that is forced open is refused differently from now on.
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.force_open(T0);
    assert_eq!(events(&mut breaker), [transition(State::Open, State::Open, Why::Forced, T0)]);
}

#[test]
fn c4_9_the_snapshot_of_a_forced_breaker_keeps_its_counts() {
    let mut breaker = breaker(5);
    attempts(&mut breaker, T0, &[Failure, Failure, Success, Failure]);
    breaker.force_open(T0 + secs(1.0));
    let counts = Opened { streak: 1, calls: 4, failures: 3, why: Why::Forced };
    assert_eq!(breaker.snapshot(T0).opened_with, Some(counts));
    breaker.force_close(T0);
    assert_eq!(breaker.snapshot(T0).opened_with, None);

    // One that a rule had opened keeps that rule's counts.
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.force_open(T0);
    assert_eq!(breaker.snapshot(T0).opened_with.map(|opened| opened.why), Some(Why::Streak));

    // Counts that left the window do not come back.
    let mut breaker = self::breaker(5);
    attempts(&mut breaker, T0, &[Failure, Success]);
    breaker.force_open(T0 + secs(60.0));
    assert_eq!(breaker.snapshot(T0).opened_with.map(|opened| opened.calls), Some(0));
}

#[test]
fn the_words_of_events_and_refusals() {
    let states = [State::Closed, State::Open, State::HalfOpen].map(State::name);
    assert_eq!(states, ["closed", "open", "half_open"]);
    let whys = [Why::Streak, Why::Rate, Why::ProbeSucceeded, Why::ProbeFailed, Why::CoolDownOver];
    let words = ["streak", "rate", "probe_succeeded", "probe_failed", "cool_down_over"];
    assert_eq!(whys.map(Why::name), words);
    let whys = [Why::Forced, Why::Reset, Why::Reconfigured];
    assert_eq!(whys.map(Why::name), ["forced", "reset", "reconfigured"]);

    let mut breaker = opened(BreakerConfig::default(), T0);
    let refusal = breaker.check(T0 + secs(1.5)).unwrap_err();
    assert_eq!(refusal.to_string(), "the circuit breaker is open, ask again in 13.5s");
    breaker.force_open(T0);
    assert_eq!(breaker.check(T0).unwrap_err().to_string(), "the circuit breaker is forced open");
}
