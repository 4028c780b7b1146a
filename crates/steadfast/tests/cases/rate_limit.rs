//! How fast an upstream may be called (contract section 6).

use std::time::Duration;

use steadfast::ErrorKind;
use steadfast::report::WaitReason;
use steadfast::testing::Step;

use crate::harness::{World, kind, ms, secs, status, waits};

#[test]
fn c6_1_never_more_than_the_limit_in_any_window() {
    let world = World::with([Step::status(200)], |client| client.rate_limit(5));
    let results = world.get_many(12);
    assert!(results.iter().all(|result| status(result) == 200));
    let starts: Vec<_> = world.upstream.seen().iter().map(|seen| seen.at).collect();
    assert_eq!(starts.len(), 12);
    for (index, start) in starts.iter().enumerate().skip(5) {
        assert!(start.since(starts[index - 5]) >= secs(1));
    }
    assert_eq!(waits(&results[11], WaitReason::RateLimit), [secs(2)]);
}

#[test]
fn c6_1_smooth_spreads_them() {
    use steadfast::policy::line::RateStyle;
    let world = World::with([Step::status(200)], |client| client.rate_limit(5).rate_limit_style(RateStyle::Smooth));
    world.get_many(4);
    let starts: Vec<_> = world.upstream.seen().iter().map(|seen| seen.at.as_nanos() / 1_000_000).collect();
    assert_eq!(starts, [0, 200, 400, 600]);
}

#[test]
fn c6_3_a_wait_that_cannot_be_held_is_refused_at_once() {
    let world = World::with([Step::status(200)], |client| client.rate_limit(1).rate_limit_wait(Duration::ZERO));
    assert_eq!(status(&world.get()), 200);
    world.clock.advance(ms(400));
    let refused = world.get();
    assert_eq!(kind(&refused), ErrorKind::RateLimited);
    assert_eq!(refused.unwrap_err().retry_after(), Some(ms(600)));

    let world = World::with([Step::status(200)], |client| client.rate_limit(1).rate_limit_period(secs(60)));
    assert_eq!(status(&world.get()), 200);
    let refused = world.get();
    assert_eq!(kind(&refused), ErrorKind::RateLimited, "the deadline is 30 s");
    assert_eq!(world.clock.now().as_nanos(), 0);
}

#[test]
fn c6_4_every_attempt_takes_a_place_and_a_refused_call_none() {
    let world =
        World::with([Step::status(503)], |client| client.rate_limit(2).rate_limit_period(secs(10)).breaker_failures(3));
    let result = world.get();
    assert_eq!(status(&result), 503);
    let starts: Vec<_> = world.upstream.seen().iter().map(|seen| seen.at).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts[2].since(starts[0]) >= secs(10));
    for _ in 0..10 {
        assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    }
}

#[test]
fn c6_2_a_waiter_for_a_place_holds_no_slot() {
    let world = World::with([Step::status(200).after(ms(10))], |client| {
        client.rate_limit(1).max_concurrent(1).bulkhead_wait(Duration::ZERO)
    });
    let results = world.get_many(3);
    assert!(results.iter().all(|result| status(result) == 200));
    assert_eq!(world.client.snapshot().line.in_use, 0);
}
