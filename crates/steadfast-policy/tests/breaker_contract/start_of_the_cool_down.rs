//! 4.5, `cool_down_start`: a short first opening, doubled by each failed probe, up to the cool-down; it starts again
//! once the breaker stayed closed for a cool-down.

use std::time::Duration;

use steadfast_policy::Time;
use steadfast_policy::breaker::{Breaker, BreakerConfig, Rejection};

use crate::kit::*;

fn from_one_second() -> BreakerConfig {
    BreakerConfig { cool_down_start: Some(secs(1.0)), ..BreakerConfig::default() }
}

/// Opens a closed breaker and says for how long.
fn open(breaker: &mut Breaker, now: Time) -> Duration {
    assert_eq!(attempts(breaker, now, &[Failure; 6]), 5);
    left(breaker, now)
}

fn left(breaker: &Breaker, now: Time) -> Duration {
    let Err(Rejection { retry_after: Some(left) }) = breaker.check(now) else {
        panic!("not open");
    };
    left
}

/// Lets `n` probes fail, each at the end of the cool-down; the lengths that follow, and the time.
fn fail_probes(breaker: &mut Breaker, mut now: Time, n: usize) -> (Vec<Duration>, Time) {
    let mut lengths = Vec::new();
    for _ in 0..n {
        now = now + left(breaker, now);
        attempt(breaker, now, Failure).unwrap();
        lengths.push(left(breaker, now));
    }
    (lengths, now)
}

#[test]
fn c4_5_unset_every_opening_lasts_the_cool_down() {
    let mut breaker = Breaker::new(BreakerConfig::default());
    assert_eq!(open(&mut breaker, T0), secs(15.0));
    assert_eq!(fail_probes(&mut breaker, T0, 3).0, [secs(15.0); 3]);
}

#[test]
fn c4_5_each_failed_probe_doubles_the_opening_up_to_the_cool_down() {
    let mut breaker = Breaker::new(from_one_second());
    assert_eq!(open(&mut breaker, T0), secs(1.0));
    let (lengths, _) = fail_probes(&mut breaker, T0, 6);
    assert_eq!(lengths, [2.0, 4.0, 8.0, 15.0, 15.0, 15.0].map(secs));
}

#[test]
fn c4_5_a_start_above_the_cool_down_is_the_cool_down() {
    let config = BreakerConfig { cool_down_start: Some(secs(60.0)), ..BreakerConfig::default() };
    assert_eq!(open(&mut Breaker::new(config), T0), secs(15.0));
}

/// An opening soon after the last one is as long as that; one after a cool-down of being closed is a first one.
#[test]
fn c4_5_it_starts_again_after_a_cool_down_without_an_opening() {
    for (closed_for, length) in [(0.0, 4.0), (14.999, 4.0), (15.0, 1.0), (100.0, 1.0)] {
        let mut breaker = Breaker::new(from_one_second());
        open(&mut breaker, T0);
        let (_, now) = fail_probes(&mut breaker, T0, 2);
        let closed = now + secs(4.0);
        attempt(&mut breaker, closed, Success).unwrap();
        let again = closed + secs(closed_for);
        assert_eq!(open(&mut breaker, again), secs(length), "closed for {closed_for}");
    }
}

/// Time that it was open counts for nothing: silence teaches no recovery.
#[test]
fn c4_5_a_probe_that_fails_after_a_long_silence_doubles_all_the_same() {
    let mut breaker = Breaker::new(from_one_second());
    open(&mut breaker, T0);
    let later = T0 + secs(1_000.0);
    attempt(&mut breaker, later, Failure).unwrap();
    assert_eq!(left(&breaker, later), secs(2.0));
}

#[test]
fn c4_5_an_operators_action_starts_it_again() {
    let actions: [fn(&mut Breaker, Time); 3] = [Breaker::reset, Breaker::force_open, Breaker::force_close];
    for action in actions {
        let mut breaker = Breaker::new(from_one_second());
        open(&mut breaker, T0);
        let (_, now) = fail_probes(&mut breaker, T0, 3);
        action(&mut breaker, now);
        breaker.reset(now);
        assert_eq!(open(&mut breaker, now), secs(1.0));
    }
}

/// 4.6 with it: the cool-down that bounds a refused caller's wait is the one of this opening.
#[test]
fn c4_6_a_caller_that_meets_the_probe_waits_no_longer_than_this_opening_lasted() {
    let mut breaker = Breaker::new(from_one_second());
    open(&mut breaker, T0);
    let (_, now) = fail_probes(&mut breaker, T0, 1);
    let probed = now + secs(2.0);
    let probe = breaker.try_acquire(probed).unwrap();
    assert_eq!(left(&breaker, probed), secs(2.0));
    breaker.cancel(probed, probe);
}
