//! Deadlines that were not kept, and waits that could not be ended (A21, A60 to A63, A67).

use std::time::Duration;

use steadfast::policy::backoff::Jitter;
use steadfast::testing::Step;
use steadfast::{ErrorKind, ServiceClient};

use crate::harness::{World, ended, kind, ms, report, secs, status};

#[test]
fn a21_a_duration_that_no_clock_can_hold_is_no_limit_or_refused() {
    for huge in [Duration::from_secs(u64::MAX / 10), Duration::from_secs(u64::MAX), Duration::MAX] {
        let world = World::new([Step::hang()]);
        let result = world.run(world.client.get("/x").timeout(huge).retry(false).send());
        assert_eq!(kind(&result), ErrorKind::Unreachable);
        assert_eq!(world.clock.now().as_nanos(), 10_000_000_000, "the read timeout");
        let builder = || ServiceClient::builder("http://billing.test");
        assert!(builder().total_timeout(huge).build().is_err());
        assert!(builder().connect_timeout(huge).build().is_err());
        assert!(builder().backoff_max(huge).build().is_err());
    }
}

#[test]
fn a60_the_total_is_a_total() {
    let world = World::with([Step::hang()], |client| {
        let client = client.total_timeout(secs(1)).attempt_timeout(ms(300)).retries(5).backoff_base(ms(1));
        client.breaker_failures(100).retry_budget_gate(false)
    });
    let result = world.get();
    assert_eq!(world.upstream.requests(), 4);
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(report(&result).duration(), secs(1));
}

#[test]
fn a61_retries_never_go_on_beyond_the_deadline() {
    let world = World::with([Step::status(503).after(ms(10))], |client| {
        let client = client.total_timeout(secs(5)).retries(10).backoff_max(ms(500)).jitter(Jitter::None);
        client.breaker_failures(1_000).breaker_minimum_calls(1_000).retry_budget_gate(false)
    });
    for _ in 0..20 {
        let before = world.clock.now();
        assert_eq!(status(&world.get()), 503);
        assert!(world.clock.now().since(before) <= secs(5));
    }
}

#[test]
fn a62_a_call_dropped_while_it_waits_ends_at_once() {
    let world = World::with([Step::status(503)], |client| {
        client.backoff_base(secs(10)).backoff_max(secs(10)).jitter(Jitter::None)
    });
    {
        let mut call = std::pin::pin!(world.client.get("/x").send());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
    }
    world.assert_at_rest();
    world.clock.advance(secs(60));
    assert_eq!(world.upstream.requests(), 1);
}

#[test]
fn a63_a_spent_deadline_makes_no_call() {
    let world = World::new([Step::status(200)]);
    let result = world.run(world.client.get("/x").timeout(Duration::ZERO).send());
    assert_eq!((kind(&result), world.upstream.requests()), (ErrorKind::Timeout, 0));
}

#[test]
fn a67_nobody_waits_for_a_retry_that_comes_too_late() {
    let world = World::with([Step::status(503)], |client| {
        client.total_timeout(ms(200)).backoff_base(secs(1)).jitter(Jitter::None)
    });
    let result = world.get();
    assert_eq!((status(&result), ended(&result)), (503, "deadline"));
    assert_eq!(world.clock.now().as_nanos(), 0);
}
