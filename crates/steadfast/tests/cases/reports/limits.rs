//! Slots and places that were lost, doubled, or spent for nothing, and state that piled up (A89 to A98, A142, A144).

use std::panic::catch_unwind;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::testing::{Script, Step, VirtualClock};
use steadfast::{ErrorKind, Event, Guard, ServiceClient};

use crate::harness::{World, kind, ms, secs, status};

fn one_slot(steps: impl IntoIterator<Item = Step>, wait: Duration) -> World {
    World::with(steps, |client| client.max_concurrent(1).bulkhead_wait(wait))
}

#[test]
fn a89_a_dropped_call_gives_its_slot_back() {
    let world = one_slot([Step::hang(), Step::status(200)], Duration::ZERO);
    assert!(world.client.get("/x").send().now_or_never().is_none());
    assert_eq!(status(&world.get()), 200);
    world.assert_at_rest();
}

#[test]
fn a90_a_waiter_that_gave_up_takes_no_slot_with_it() {
    let world = one_slot([Step::status(200).after(ms(300))], ms(100));
    for _ in 0..1_000 {
        let results = world.get_many(2);
        assert_eq!((status(&results[0]), kind(&results[1])), (200, ErrorKind::BulkheadFull));
    }
    world.assert_at_rest();
    assert_eq!(world.upstream.peak(), 1);
}

#[test]
fn a91_everyone_in_the_line_is_served_in_order() {
    let world = one_slot([Step::status(200).after(ms(10))], secs(1));
    let results = world.run(join_all(["/1", "/2", "/3"].map(|path| world.client.get(path).send())));
    assert!(results.iter().all(|result| status(result) == 200));
    let paths: Vec<_> = world.upstream.seen().iter().map(|seen| seen.uri.path().to_owned()).collect();
    assert_eq!(paths, ["/api/1", "/api/2", "/api/3"]);
}

/// A slot is returned once, even if whoever listens to the end of the attempt fails.
#[test]
fn a92_a_listener_that_panics_returns_no_slot_twice() {
    let clock = VirtualClock::new();
    let upstream = Script::new(clock.clone(), [Step::status(200).after(ms(10))]);
    let client = ServiceClient::builder("http://billing.test")
        .max_concurrent(1)
        .bulkhead_wait(secs(10))
        .clock(clock.clone())
        .transport(upstream.clone())
        .on_event(|event| assert!(!matches!(event, Event::Attempt { .. }), "the listener fails"))
        .build()
        .unwrap();
    let calls = || join_all((0..5).map(|_| client.get("/x").send()));
    for _ in 0..3 {
        let results = clock.run(calls()).unwrap();
        assert!(results.iter().all(Result::is_ok), "the call is none of the listener's business");
    }
    let line = client.snapshot().line;
    assert_eq!((line.in_use, line.queued, upstream.peak(), upstream.requests()), (0, 0, 1, 15));
}

/// 5.2: the slot is for as long as the body is read, and it has been when the response is there.
#[test]
fn a93_a_response_that_is_kept_holds_no_slot() {
    let world = one_slot([Step::status(200).body("kept")], Duration::ZERO);
    let kept: Vec<_> = (0..10).map(|_| world.get().unwrap()).collect();
    assert!(kept.iter().all(|response| response.bytes() == "kept"));
}

/// Nothing is reserved before a call is polled, and a call that stands in the line holds nothing.
#[test]
fn a94_what_is_ready_and_idle_blocks_nobody() {
    let world = one_slot([Step::status(200)], Duration::ZERO);
    let (request, call) = (world.client.get("/idle"), world.client.get("/idle").send());
    assert_eq!(status(&world.get()), 200);
    drop((request, call));
    assert_eq!(world.upstream.requests(), 1);
}

#[test]
fn a96_who_waits_for_a_place_goes_alone_and_in_order() {
    let world = World::with([Step::status(200)], |client| client.rate_limit(1));
    let paths: Vec<_> = (0..10).map(|n| format!("/{n}")).collect();
    world.run(join_all(paths.iter().map(|path| world.client.get(path).send())));
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 10);
    for (n, request) in seen.iter().enumerate() {
        assert_eq!(request.uri.path(), format!("/api/{n}"));
        assert_eq!(request.at.as_nanos(), n as u64 * 1_000_000_000);
    }
}

/// The outer limit's places are not spent on calls that an inner limit refuses.
#[test]
fn a98_a_refused_call_spends_no_place() {
    let world = World::with([Step::status(200).after(ms(500))], |client| {
        client.max_concurrent(1).bulkhead_wait(Duration::ZERO).rate_limit(5).rate_limit_wait(Duration::ZERO)
    });
    let results = world.get_many(1_001);
    assert!(results[1..].iter().all(|result| kind(result) == ErrorKind::BulkheadFull));
    world.upstream.play([Step::status(200)]);
    for _ in 0..4 {
        assert_eq!(status(&world.get()), 200);
    }
    assert_eq!(kind(&world.get()), ErrorKind::RateLimited);
}

#[test]
fn a142_keys_do_not_pile_up() {
    let clock = VirtualClock::new();
    let rate = RateConfig { limit: 1, period: secs(1), wait: None, style: RateStyle::Window, max_keys: 100 };
    let guard = Guard::builder("hosts").rate_limit(rate).clock(clock.clone()).build().unwrap();
    for host in 0..100_000 {
        let key = host.to_string();
        let call = guard.transient(|_: &()| false).key(&key).call(|| std::future::ready(Ok(())));
        clock.run(call).unwrap().unwrap();
        clock.advance(ms(20));
        assert!(guard.snapshot().line.keys <= 100);
    }
}

/// There is no runtime here: a task or a timer of its own would have nowhere to live.
#[test]
fn a144_clients_and_guards_that_are_gone_leave_nothing() {
    let world = World::new([Step::status(503)]);
    for _ in 0..10_000 {
        let guard = Guard::builder("short").clock(world.clock.clone()).build().unwrap();
        let call = guard.transient(|_: &()| true).call(|| std::future::ready(Err::<(), ()>(())));
        assert!(call.now_or_never().is_none(), "it waits for its retry");
    }
    assert_eq!(world.clock.armed_timers(), 0);
    let built = catch_unwind(|| drop(ServiceClient::builder("http://billing.test").build().unwrap()));
    assert!(built.is_ok());
}
