//! The rule by example: what opens, and at which attempt.

use std::time::Duration;

use steadfast_policy::breaker::{Breaker, State, Why};
use steadfast_policy::{Time, Verdict};

use crate::history::Settings;
use Verdict::{Failure, Success, Timeout};

const T0: Time = Time::from_millis(1_000_250);

fn fresh() -> Breaker {
    Breaker::new(Settings::DEFAULT.config())
}

/// No rate rule, so that an example shows the streak rule alone.
fn streak_only(failures: u32) -> Breaker {
    Breaker::new(Settings { failures, minimum_calls: u32::MAX, ..Settings::DEFAULT }.config())
}

fn feed(breaker: &mut Breaker, now: Time, verdict: Verdict) {
    let permit = breaker.try_acquire(now).expect("closed");
    breaker.record(now, permit, verdict);
}

fn feed_all(breaker: &mut Breaker, now: Time, verdicts: &[Verdict]) {
    for &verdict in verdicts {
        feed(breaker, now, verdict);
    }
}

/// How many of these verdicts in a row it takes to open.
fn opens_at(breaker: &mut Breaker, now: Time, verdict: Verdict) -> u32 {
    for n in 1..=10_000 {
        feed(breaker, now, verdict);
        if breaker.state(now) == State::Open {
            return n;
        }
    }
    panic!("never opens");
}

#[test]
fn property_3_a_fresh_breaker_opens_at_exactly_so_many_failures() {
    for failures in 1..=8 {
        for verdict in [Failure, Timeout] {
            assert_eq!(opens_at(&mut streak_only(failures), T0, verdict), failures);
        }
    }
}

#[test]
fn property_3_four_good_answers_then_five_failures() {
    let mut breaker = fresh();
    feed_all(&mut breaker, T0, &[Success; 4]);
    assert_eq!(opens_at(&mut breaker, T0, Failure), 5);
    assert_eq!(breaker.poll_event().map(|event| event.why), Some(Why::Streak));
}

/// A quarter second of 6000 successes in 30 s is 50 failures; ten timeouts say as much.
#[test]
fn property_5_a_busy_client_opens_after_a_quarter_second_of_its_good_traffic() {
    for (verdict, expected) in [(Failure, 50), (Timeout, 10)] {
        let mut breaker = fresh();
        feed_all(&mut breaker, T0, &[Success; 6_000]);
        assert_eq!(opens_at(&mut breaker, T0, verdict), expected);
    }
}

/// The timeouts must lie in the streak itself.
#[test]
fn property_5_timeouts_before_the_last_success_are_not_evidence() {
    let mut breaker = streak_only(5);
    feed_all(&mut breaker, T0, &[Success; 6_000]);
    feed_all(&mut breaker, T0, &[Timeout; 9]);
    feed_all(&mut breaker, T0, &[Success; 3]);
    // Nine timeouts were a streak that recovered, so that 15 are asked for; the pressure is theirs alone.
    assert_eq!(opens_at(&mut breaker, T0, Timeout), 15);
}

#[test]
fn property_5_an_outage_is_three_times_as_long_as_the_streaks_that_recover() {
    let mut breaker = fresh();
    feed_all(&mut breaker, T0, &[Success, Failure, Failure, Success]);
    assert_eq!(opens_at(&mut breaker, T0, Failure), 6);

    let mut breaker = fresh();
    feed_all(&mut breaker, T0, &[Failure, Failure, Failure, Failure, Success]);
    assert_eq!(opens_at(&mut breaker, T0, Failure), 12);
}

/// What recovered long ago teaches nothing: after a window's silence it is a fresh start. `T0` lies a quarter into its
/// bucket of a second, so that the window moves on 29.75 s later.
#[test]
fn property_5_a_window_of_silence_forgets_the_noise() {
    for (silence_millis, expected) in [(29_000, 12), (29_749, 12), (29_750, 5), (30_000, 5), (900_000, 5)] {
        let mut breaker = fresh();
        feed_all(&mut breaker, T0, &[Failure, Failure, Failure, Failure, Success]);
        let now = T0 + Duration::from_millis(silence_millis);
        assert_eq!(opens_at(&mut breaker, now, Failure), expected, "{silence_millis} ms");
    }
}

/// Streaks that recover are remembered for the window that begins when they ended, not when they began.
#[test]
fn property_5_a_long_streak_teaches_from_its_end() {
    let mut breaker = fresh();
    feed_all(&mut breaker, T0, &[Failure, Failure, Failure, Failure]);
    let recovered = T0 + Duration::from_secs(25);
    feed(&mut breaker, recovered, Success);
    assert_eq!(opens_at(&mut breaker, T0 + Duration::from_secs(50), Failure), 12);
}

/// The bar is at most three times `failures`, however long the streaks that recovered.
#[test]
fn property_4_noise_lifts_the_bar_to_three_times_the_failures_at_most() {
    let mut breaker = streak_only(5);
    feed_all(&mut breaker, T0, &[Success; 6_000]);
    feed_all(&mut breaker, T0, &[Failure; 40]);
    feed_all(&mut breaker, T0, &[Success; 100]);
    // 40 recovered: three times as many would be 120. 6100 successes in the window are a pressure of 51.
    assert_eq!(opens_at(&mut breaker, T0, Failure), 51);

    let mut breaker = streak_only(5);
    feed_all(&mut breaker, T0, &[Success; 6_000]);
    feed_all(&mut breaker, T0, &[Failure; 40]);
    feed(&mut breaker, T0, Success);
    // The success takes three from the pressure of 40: 14 more reach 51, and 15 are the bar.
    assert_eq!(opens_at(&mut breaker, T0, Failure), 15);
}

/// A success takes three failures off the pressure: a leak, not a reset.
#[test]
fn a_success_takes_three_off_the_pressure() {
    let mut breaker = streak_only(20);
    feed_all(&mut breaker, T0, &[Success; 6_000 - 2]);
    feed_all(&mut breaker, T0, &[Failure; 19]);
    feed_all(&mut breaker, T0, &[Success; 2]);
    // 19 - 6 = 13 are left, and 37 more make 50: less than three times the 19 that recovered, which is the bar.
    assert_eq!(opens_at(&mut breaker, T0, Failure), 57);

    let mut breaker = streak_only(20);
    feed_all(&mut breaker, T0, &[Success; 12_000 - 8]);
    for _ in 0..8 {
        feed_all(&mut breaker, T0, &[Failure; 7]);
        feed(&mut breaker, T0, Success);
    }
    // Each round leaves four. 100 is a quarter second of 12 000 in 30 s; 32 are there, and 68 more make it.
    assert_eq!(opens_at(&mut breaker, T0, Failure), 68);
}

/// Bucket by bucket, 7 of 20 failing by chance in no pattern: 100 seconds of it do not open the streak rule.
#[test]
fn steady_noise_does_not_open() {
    let mut breaker = fresh();
    let mut state = 1_u64;
    for millis in (0..100_000).step_by(10) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let verdict = if (state >> 33) % 20 < 7 { Failure } else { Success };
        feed(&mut breaker, T0 + Duration::from_millis(millis), verdict);
        assert_eq!(breaker.state(T0), State::Closed, "after {millis} ms");
    }
}

/// The window is 30 buckets for any positive length, also below a second.
#[test]
fn the_rate_rule_works_with_a_window_of_any_length() {
    for window_millis in [1, 50, 999, 1_500, 30_000, 86_400_000] {
        let mut breaker =
            Breaker::new(Settings { failures: 100, minimum_calls: 4, window_millis, ..Settings::DEFAULT }.config());
        let window = Duration::from_millis(window_millis);
        feed_all(&mut breaker, T0, &[Failure, Failure]);
        feed(&mut breaker, T0 + window / 2, Failure);
        feed(&mut breaker, T0 + window * 9 / 10, Failure);
        assert_eq!(breaker.state(T0), State::Open, "{window_millis} ms");
        assert_eq!(breaker.poll_event().map(|event| event.why), Some(Why::Rate));

        let mut breaker =
            Breaker::new(Settings { failures: 100, minimum_calls: 4, window_millis, ..Settings::DEFAULT }.config());
        feed_all(&mut breaker, T0, &[Failure, Failure, Failure]);
        feed(&mut breaker, T0 + window, Failure);
        assert_eq!(breaker.state(T0), State::Closed, "an idle window of {window_millis} ms empties it");
        assert_eq!(breaker.snapshot(T0).calls, 1);
    }
}
