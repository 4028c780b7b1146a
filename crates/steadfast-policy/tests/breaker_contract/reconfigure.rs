//! 9.5: other settings for a breaker in use. The same ones change nothing; other ones start it anew.

use std::time::Duration;

use steadfast_policy::Verdict;
use steadfast_policy::breaker::{Breaker, BreakerConfig, Opened, Permit, Rejection, State, Why};

use crate::kit::*;

fn with(change: impl FnOnce(&mut BreakerConfig)) -> BreakerConfig {
    let mut config = BreakerConfig::default();
    change(&mut config);
    config
}

/// One change of each setting that decides when the breaker opens, or for how long.
fn changes() -> [BreakerConfig; 6] {
    [
        with(|config| config.failures = 6),
        with(|config| config.failure_rate = 0.6),
        with(|config| config.minimum_calls = 21),
        with(|config| config.window = secs(31.0)),
        with(|config| config.cool_down = secs(16.0)),
        with(|config| config.cool_down_start = Some(secs(1.0))),
    ]
}

#[test]
fn c9_5_the_same_settings_leave_each_state_as_it_is() {
    let (half_open, _probe) = probing();
    let mut closed = breaker(5);
    attempts(&mut closed, T0, &[Success, Failure, Failure]);
    let mut forced = breaker(5);
    forced.force_open(T0);
    let now = T0 + secs(15.0);
    for mut breaker in [closed, opened(BreakerConfig::default(), T0), half_open, forced] {
        events(&mut breaker);
        let before = format!("{breaker:?}");
        breaker.reconfigure(now + secs(100.0), BreakerConfig::default());
        assert_eq!(format!("{breaker:?}"), before, "no time has passed either");
    }
}

/// A file that says the same in other words starts nothing anew, nor does what is no number, however often it is read.
#[test]
fn c9_5_settings_that_mean_the_same_are_the_same() {
    for (one, other) in [
        (with(|config| config.failures = 0), with(|config| config.failures = 1)),
        (with(|config| config.failure_rate = 1.0), with(|config| config.failure_rate = f64::NAN)),
        (with(|config| config.failure_rate = f64::NAN), with(|config| config.failure_rate = f64::NAN)),
        (with(|_| {}), with(|config| config.cool_down_start = Some(config.cool_down))),
        (with(|_| {}), with(|config| config.cool_down_start = Some(Duration::MAX))),
    ] {
        let mut breaker = Breaker::new(one.clone());
        attempt(&mut breaker, T0, Success).unwrap();
        breaker.reconfigure(T0, other.clone());
        assert_eq!(breaker.snapshot(T0).calls, 1, "{one:?}, then {other:?}");
    }
}

#[test]
fn c9_5_any_other_setting_starts_it_anew() {
    for config in changes() {
        let mut breaker = breaker(5);
        attempts(&mut breaker, T0, &[Success, Failure, Failure]);
        let before = breaker.snapshot(T0);
        breaker.reconfigure(T0, config.clone());
        let seen = breaker.snapshot(T0);
        assert_eq!((seen.state, seen.streak, seen.calls, seen.failures), (State::Closed, 0, 0, 0), "{config:?}");
        assert!(seen.generation > before.generation);
        assert_eq!(events(&mut breaker), [], "it was closed before");
    }
}

#[test]
fn c9_5_an_open_breaker_closes_and_says_why() {
    for config in changes() {
        let mut breaker = opened(BreakerConfig::default(), T0);
        let now = T0 + secs(1.0);
        breaker.reconfigure(now, config.clone());
        assert_eq!(events(&mut breaker), [transition(State::Open, State::Closed, Why::Reconfigured, now)]);
        assert_eq!(breaker.snapshot(now).opened_with, None);
        let fresh = attempts(&mut Breaker::new(config.clone()), now, &[Failure; 10]);
        assert_eq!(attempts(&mut breaker, now, &[Failure; 10]), fresh, "{config:?}");
    }
}

/// 4.7: what was admitted before decides nothing after, the probe's verdict too.
#[test]
fn c9_5_c4_7_permits_of_before_are_void() {
    for verdict in [Success, Failure] {
        let (mut breaker, probe) = probing();
        let now = T0 + secs(15.0);
        breaker.reconfigure(now, with(|config| config.failures = 1));
        assert_eq!(
            events(&mut breaker).pop(),
            Some(transition(State::HalfOpen, State::Closed, Why::Reconfigured, now))
        );
        breaker.record(now, probe, verdict);
        let seen = breaker.snapshot(now);
        assert_eq!((seen.state, seen.calls, seen.late_verdicts), (State::Closed, 0, 1));
    }

    let mut breaker = breaker(5);
    let permits: Vec<Permit> = (0..10).map(|_| breaker.try_acquire(T0).unwrap()).collect();
    breaker.reconfigure(T0, with(|config| config.failures = 1));
    for permit in permits {
        breaker.record(T0, permit, Verdict::Failure);
    }
    assert_eq!(breaker.snapshot(T0).late_verdicts, 10);
    assert_eq!(attempts(&mut breaker, T0, &[Failure, Failure]), 1);
}

/// Each setting takes effect: the streak, the share, the window, and the cool-downs.
#[test]
fn c9_5_the_new_settings_rule() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    let config = BreakerConfig {
        failures: 100,
        failure_rate: 0.2,
        minimum_calls: 10,
        window: secs(3.0),
        cool_down: secs(4.0),
        cool_down_start: Some(secs(1.0)),
        probe_lease: secs(2.0),
    };
    breaker.reconfigure(T0, config);
    attempts(&mut breaker, T0, &[Failure; 5]);
    // Those five leave the window of three seconds, not that of thirty.
    let now = T0 + secs(3.2);
    assert_eq!(breaker.snapshot(now).calls, 0);
    assert_eq!(attempts(&mut breaker, now, &[Success; 8]), 8);
    assert_eq!(attempts(&mut breaker, now, &[Failure, Failure, Failure]), 2);
    assert_eq!(breaker.check(now), refused(1.0));
    let probe = breaker.try_acquire(now + secs(1.0)).unwrap();
    breaker.record(now + secs(1.0), probe, Failure);
    assert_eq!(breaker.check(now + secs(1.0)), refused(2.0));
}

/// It follows the calls' timeout: the next probe has it, the one in flight has what it was given.
#[test]
fn c9_5_another_lease_starts_nothing_anew() {
    let (mut breaker, probe) = probing();
    let now = T0 + secs(15.0);
    breaker.reconfigure(now, with(|config| config.probe_lease = secs(2.0)));
    assert_eq!(breaker.state(now), State::HalfOpen);
    assert!(breaker.try_acquire(now + secs(2.0)).is_err());
    breaker.cancel(now + secs(2.0), probe);
    let _lost = breaker.try_acquire(now + secs(2.0)).unwrap();
    assert!(breaker.try_acquire(now + secs(3.9)).is_err());
    assert!(breaker.try_acquire(now + secs(4.0)).is_ok());
}

/// The doubling of the cool-downs starts again too, also where the breaker closed a moment ago.
#[test]
fn c9_5_the_cool_downs_so_far_are_forgotten() {
    let slow = with(|config| config.cool_down_start = Some(secs(1.0)));
    let other = BreakerConfig { minimum_calls: 50, ..slow.clone() };
    for (change, expected) in [("settings", 1.0), ("anew", 1.0), ("none", 2.0)] {
        let mut breaker = opened(slow.clone(), T0);
        attempt(&mut breaker, T0 + secs(1.0), Failure).unwrap();
        assert_eq!(breaker.check(T0 + secs(1.0)), refused(2.0));
        let now = T0 + secs(3.0);
        attempt(&mut breaker, now, Success).unwrap();
        match change {
            "settings" => breaker.reconfigure(now, other.clone()),
            "anew" => breaker.start_anew(now),
            _ => {}
        }
        assert_eq!(attempts(&mut breaker, now, &[Failure; 10]), 5);
        assert_eq!(breaker.check(now), refused(expected), "{change}");
    }
}

#[test]
fn c9_5_c4_9_what_an_operator_forced_stays_until_reset() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.force_open(T0);
    events(&mut breaker);
    breaker.reconfigure(T0, with(|config| config.failures = 2));
    assert_eq!(breaker.check(T0), Err(Rejection { retry_after: None }));
    let counts = Opened { streak: 5, calls: 5, failures: 5, why: Why::Streak };
    assert_eq!(breaker.snapshot(T0).opened_with, Some(counts));
    assert_eq!(events(&mut breaker), []);
    breaker.reset(T0);
    assert_eq!(events(&mut breaker), [transition(State::Open, State::Closed, Why::Reset, T0)]);
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 10]), 2, "under the new settings");

    let mut breaker = self::breaker(5);
    breaker.force_close(T0);
    events(&mut breaker);
    breaker.reconfigure(T0, with(|config| config.failures = 2));
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 10]), 10);
    assert!(breaker.snapshot(T0).forced);
    assert_eq!(events(&mut breaker), []);
    breaker.reset(T0);
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 10]), 2);
}

/// For what decides and is not the breaker's own, such as which answers are failures.
#[test]
fn c9_5_it_can_start_anew_under_the_same_settings() {
    let mut breaker = opened(BreakerConfig::default(), T0);
    breaker.start_anew(T0);
    assert_eq!(events(&mut breaker), [transition(State::Open, State::Closed, Why::Reconfigured, T0)]);
    assert_eq!(attempts(&mut breaker, T0, &[Failure; 10]), 5);
    breaker.force_open(T0);
    breaker.start_anew(T0);
    assert_eq!(breaker.check(T0), Err(Rejection { retry_after: None }));
}
