//! At most so many at once, in the order in which they came (contract section 5).

use std::time::Duration;

use steadfast::ErrorKind;
use steadfast::report::WaitReason;
use steadfast::testing::Step;

use crate::harness::{World, kind, ms, secs, status, waits};

#[test]
fn c33_beyond_the_limit_a_call_is_refused_at_once() {
    let world = World::with([Step::status(200).after(secs(1))], |client| {
        client.max_concurrent(2).bulkhead_wait(Duration::ZERO)
    });
    let results = world.get_many(3);
    assert_eq!((status(&results[0]), status(&results[1])), (200, 200));
    assert_eq!(kind(&results[2]), ErrorKind::BulkheadFull);
    assert_eq!(world.upstream.requests(), 2);
    assert_eq!(world.state(), "closed");
    world.assert_at_rest();
}

#[test]
fn c34_a_call_waits_for_a_slot_and_they_never_overlap() {
    let world =
        World::with([Step::status(200).after(ms(50))], |client| client.max_concurrent(1).bulkhead_wait(secs(1)));
    let results = world.get_many(2);
    assert!(results.iter().all(|result| status(result) == 200));
    assert_eq!((world.upstream.requests(), world.upstream.peak()), (2, 1));
    assert_eq!(waits(&results[1], WaitReason::Bulkhead), [ms(50)]);
}

#[test]
fn c35_calls_in_the_line_are_not_sent_once_the_breaker_opened() {
    let world = World::with([Step::status(503).after(ms(50))], |client| {
        client.max_concurrent(1).bulkhead_wait(secs(5)).breaker_failures(1).retries(0)
    });
    let results = world.get_many(6);
    assert_eq!(status(&results[0]), 503);
    assert!(results[1..].iter().all(|result| kind(result) == ErrorKind::CircuitOpen));
    assert_eq!(world.upstream.requests(), 1);
    world.assert_at_rest();
}

#[test]
fn c5_1_a_wait_that_is_too_long_is_refused_and_first_come_is_first_served() {
    let world =
        World::with([Step::status(200).after(ms(300))], |client| client.max_concurrent(1).bulkhead_wait(ms(500)));
    let results = world.get_many(4);
    assert_eq!(status(&results[0]), 200);
    assert_eq!(waits(&results[1], WaitReason::Bulkhead), [ms(300)]);
    for late in &results[2..] {
        assert_eq!(kind(late), ErrorKind::BulkheadFull);
        assert_eq!(waits(late, WaitReason::Bulkhead), [ms(500)]);
    }
    assert_eq!(world.clock.now().as_nanos(), 600_000_000);
}

#[test]
fn c2_8_the_slot_is_free_during_the_backoff() {
    let world = World::with([Step::status(503), Step::status(200)], |client| {
        client.max_concurrent(1).bulkhead_wait(Duration::ZERO).backoff_base(secs(1))
    });
    let results = world.get_many(2);
    assert!(results.iter().all(|result| status(result) == 200), "the second call ran while the first waited");
}

#[test]
fn a90_a_waiter_that_gave_up_never_holds_a_slot() {
    let world =
        World::with([Step::status(200).after(ms(300))], |client| client.max_concurrent(1).bulkhead_wait(ms(100)));
    for _ in 0..100 {
        let results = world.get_many(2);
        assert_eq!(status(&results[0]), 200);
        assert_eq!(kind(&results[1]), ErrorKind::BulkheadFull);
    }
    world.assert_at_rest();
}

/// 5.2: a call that nobody polls any more holds its slot to its deadline, and not a moment longer.
#[test]
fn c5_2_a_slot_that_nobody_polls_is_reclaimed_at_the_deadline() {
    let world = World::with([Step::hang(), Step::status(200)], |client| {
        client.max_concurrent(1).bulkhead_wait(secs(5)).total_timeout(secs(3)).retries(0)
    });
    let mut stuck = Box::pin(world.client.get("/stuck").send());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(stuck.as_mut().poll(&mut context).is_pending());
    world.clock.advance(secs(1));
    let result = world.get();
    assert_eq!(status(&result), 200);
    assert_eq!(waits(&result, WaitReason::Bulkhead), [secs(2)], "it waited for the lease to end");
    // What comes back late gives nothing back twice.
    drop(stuck);
    assert_eq!(world.client.snapshot().line.in_use, 0);
    let results = world.get_many(2);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    assert_eq!(world.upstream.peak(), 2, "the stuck attempt and the one that took its slot");
}
