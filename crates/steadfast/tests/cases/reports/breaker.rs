//! Breakers that stuck, flapped, or heard the wrong thing (A71 to A88), through whole calls. `breaker_contract` plays
//! the same against the machine.

use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt;
use steadfast::policy::breaker::State;
use steadfast::testing::Step;
use steadfast::{ErrorKind, Event, Fault, Sent, ServiceClient};

use crate::harness::{World, kind, ms, secs, status};

/// Opened by three 503s, and past its cool-down.
fn ready_to_probe(probe: impl IntoIterator<Item = Step>) -> World {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(3).retries(0));
    for _ in 0..3 {
        world.get().unwrap();
    }
    assert_eq!(world.state(), "open");
    world.clock.advance(secs(15));
    world.upstream.play(probe);
    world
}

/// A71, A73, A75, A77: every way in which a probe can end leaves a breaker that goes on: closed, open again for a full
/// cool-down, or free for the next probe.
#[test]
fn a71_a73_a75_whatever_becomes_of_a_probe_it_never_sticks() {
    for (report, step, state) in [
        ("A71", Step::status(404), "closed"),
        ("A71", Step::status(429), "closed"),
        ("A71", Step::status(500), "closed"),
        ("A73", Step::fail(Fault::Incomplete, Sent::Yes), "open"),
        ("A73", Step::fail(Fault::Decode, Sent::Yes), "open"),
        ("A73", Step::fail(Fault::TooLarge, Sent::Yes), "closed"),
        ("A75", Step::status(503), "open"),
        ("A72", Step::hang(), "open"),
        ("A72", Step::drip(ms(100)), "open"),
        ("B10", Step::fail(Fault::PoolTimeout, Sent::No), "half_open"),
        ("B10", Step::fail(Fault::LocalProtocol, Sent::No), "half_open"),
    ] {
        let world = ready_to_probe([step.clone()]);
        drop(world.get());
        assert_eq!(world.state(), state, "{report}: {step:?}");
        world.upstream.play([Step::status(200)]);
        if state == "open" {
            assert_eq!(world.get().unwrap_err().retry_after(), Some(secs(15)), "{report}: {step:?}");
            world.clock.advance(secs(15));
        }
        assert_eq!(status(&world.get()), 200, "{report}: {step:?}");
        assert_eq!(world.state(), "closed", "{report}: {step:?}");
        world.assert_at_rest();
    }
}

#[test]
fn a74_of_fifty_calls_one_is_the_probe() {
    let world = ready_to_probe([Step::status(200).after(ms(10))]);
    let clone = world.client.clone();
    let calls = (0..50).map(|n| if n % 2 == 0 { world.client.get("/x").send() } else { clone.get("/x").send() });
    let results = world.run(futures_util::future::join_all(calls));
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(world.upstream.requests(), 4);
}

#[test]
fn a77_calls_that_the_caller_drops_say_nothing() {
    let world = World::with([Step::hang()], |client| client.breaker_failures(3).breaker_minimum_calls(5));
    for _ in 0..10 {
        let mut call = std::pin::pin!(world.client.get("/x").send());
        assert!(call.as_mut().now_or_never().is_none());
        world.clock.advance(secs(5));
    }
    assert_eq!((world.state(), world.client.snapshot().breaker.calls), ("closed", 0));
    world.assert_at_rest();
}

#[test]
fn a81_a82_a_client_error_is_no_failure() {
    let world = World::new([Step::status(404)]);
    (0..30).for_each(|_| assert_eq!(status(&world.get()), 404));
    assert_eq!(world.state(), "closed");

    // A 400 proves that the upstream is up, and begins the streak anew (4.2).
    let world = World::with([503, 503, 503, 503, 400, 503].map(Step::status), |client| client.retries(0));
    for _ in 0..6 {
        world.get().unwrap();
        assert_eq!(world.state(), "closed");
    }
}

#[test]
fn a86_an_open_breaker_is_not_retried_and_costs_no_budget() {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(1).retries(5));
    world.get().unwrap();
    let before = world.client.snapshot().budget;
    let now = world.clock.now();
    assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    assert_eq!((world.upstream.requests(), world.clock.now()), (1, now));
    assert_eq!(world.client.snapshot().budget, before);
}

#[test]
fn a87_it_judges_attempts() {
    let world = World::with([Step::status(503)], |client| client.retry_budget_gate(false));
    world.get().unwrap();
    assert_eq!((world.upstream.requests(), world.state()), (3, "closed"));
    world.get().unwrap();
    assert_eq!((world.upstream.requests(), world.state()), (5, "open"));
}

/// 4.9: events are delivered outside of every lock, so a listener may look, and act.
#[test]
fn a88_a_listener_may_read_and_change_the_state() {
    let (client, seen) = (Arc::new(OnceLock::<ServiceClient>::new()), Arc::new(Mutex::new(Vec::new())));
    let (inside, sink) = (Arc::clone(&client), Arc::clone(&seen));
    let world = World::new([Step::status(503)]);
    let clock = world.clock.clone();
    let listening = ServiceClient::builder("http://billing.test")
        .breaker_failures(1)
        .retries(0)
        .clock(clock.clone())
        .transport(world.upstream.clone())
        .on_event(move |event| {
            if let (Event::Transition { transition, .. }, Some(client)) = (event, inside.get()) {
                sink.lock().unwrap().push((transition.to, client.snapshot().breaker.state));
                if transition.to == State::Open {
                    client.reset_breaker();
                }
            }
        })
        .build()
        .unwrap();
    client.set(listening.clone()).unwrap();
    assert_eq!(clock.run(listening.get("/x").send()).unwrap().unwrap().status(), 503);
    assert_eq!(*seen.lock().unwrap(), [(State::Open, State::Open), (State::Closed, State::Closed)]);
}
