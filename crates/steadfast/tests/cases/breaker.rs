//! The circuit breaker around calls (contract section 4).

use std::time::Duration;

use futures_util::future::join_all;
use steadfast::report::WaitReason;
use steadfast::testing::Step;
use steadfast::{Error, ErrorKind, Event};

use crate::harness::{World, ended, kind, ms, secs, status, waits};

fn three_failures(steps: impl IntoIterator<Item = Step>) -> World {
    World::with(steps, |client| client.breaker_failures(3).retries(0))
}

/// A breaker that three 503s have opened.
fn opened() -> World {
    let world = three_failures([Step::status(503)]);
    for _ in 0..3 {
        assert_eq!(status(&world.get()), 503);
    }
    world
}

#[test]
fn c22_a_streak_opens_it_and_nothing_more_is_sent() {
    let world = opened();
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::CircuitOpen);
    assert_eq!(world.upstream.requests(), 3);
    let error = result.unwrap_err();
    assert_eq!(error.retry_after(), Some(secs(15)));
    assert_eq!(error.attempts(), 0);
    assert_eq!(error.to_string(), "circuit breaker 'billing' is open");
    assert_eq!(error.report().ended().name(), "circuit_open");
}

#[test]
fn c23_a_success_resets_the_streak() {
    let steps = [503, 503, 200, 503, 503, 200].map(Step::status);
    let world = three_failures(steps);
    for _ in 0..6 {
        world.get().unwrap();
    }
    assert_eq!(world.state(), "closed");
}

#[test]
fn c24_at_the_end_of_the_cool_down_a_probe_goes_and_closes_it() {
    let world = opened();
    world.upstream.play([Step::status(200)]);
    world.clock.advance(ms(14_900));
    let refused = world.get();
    assert_eq!(kind(&refused), ErrorKind::CircuitOpen);
    assert_eq!(refused.unwrap_err().retry_after(), Some(ms(100)));
    world.clock.advance(ms(100));
    assert_eq!(status(&world.get()), 200);
    assert_eq!(world.upstream.requests(), 4);
    assert_eq!(world.state(), "closed");
}

#[test]
fn c25_a_probe_that_fails_opens_it_for_a_full_cool_down() {
    let world = World::with([Step::refuse()], |client| client.breaker_failures(3).retries(0));
    for _ in 0..3 {
        world.get().unwrap_err();
    }
    world.clock.advance(secs(15));
    assert_eq!(kind(&world.get()), ErrorKind::Unreachable);
    world.clock.advance(secs(9));
    for _ in 0..10 {
        assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    }
    assert_eq!(world.upstream.requests(), 4);
    assert_eq!(world.get().unwrap_err().retry_after(), Some(secs(6)));
}

#[test]
fn c26_there_is_one_probe_and_its_answer_decides() {
    let world = opened();
    world.upstream.play([Step::status(200).after(secs(2))]);
    world.clock.advance(secs(15));
    let results = world.get_many(11);
    assert_eq!(status(&results[0]), 200);
    for refused in &results[1..] {
        assert_eq!(kind(refused), ErrorKind::CircuitOpen);
        let retry_after = refused.as_ref().unwrap_err().retry_after().unwrap();
        assert!(retry_after >= ms(100) && retry_after <= secs(15), "4.6, B21: {retry_after:?}");
    }
    assert_eq!(world.upstream.requests(), 4);
    assert_eq!(world.state(), "closed");
}

#[test]
fn c27_a_cancelled_probe_leaves_its_place_to_the_next_call() {
    let world = opened();
    world.upstream.play([Step::hang(), Step::status(200)]);
    world.clock.advance(secs(15));
    {
        let mut probe = std::pin::pin!(world.client.get("/x").send());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(probe.as_mut().poll(&mut context).is_pending());
        assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    }
    assert_eq!(status(&world.get()), 200);
    assert_eq!(world.upstream.requests(), 5);
    assert_eq!(world.state(), "closed");
    world.assert_at_rest();
}

#[test]
fn c28_answers_of_an_upstream_that_is_up_never_open_it() {
    for code in [500, 429, 404] {
        let world = three_failures([Step::status(code)]);
        for _ in 0..10 {
            assert_eq!(status(&world.get()), code);
        }
        assert_eq!(world.upstream.requests(), 10);
        assert_eq!(world.state(), "closed");
    }
}

#[test]
fn c29_half_of_ten_opens_it_after_the_tenth() {
    let steps: Vec<_> = (0..10).map(|n| Step::status(if n % 2 == 0 { 503 } else { 200 })).collect();
    let world = World::with(steps, |client| {
        client.breaker_failures(100).breaker_minimum_calls(10).breaker_failure_rate(0.5).retries(0)
    });
    for _ in 0..9 {
        world.get().unwrap();
    }
    assert_eq!(world.state(), "closed");
    world.get().unwrap();
    assert_eq!(world.state(), "open");
}

#[test]
fn c30_the_call_that_opens_it_keeps_its_response_and_does_not_wait_in_vain() {
    let world = World::new([Step::status(503)]);
    let first = world.get();
    assert_eq!((status(&first), waits(&first, WaitReason::Backoff).len()), (503, 2));
    let second = world.get();
    assert_eq!((status(&second), waits(&second, WaitReason::Backoff).len()), (503, 1));
    assert_eq!(ended(&second), "circuit_open", "2.10: the fourth wait would be futile");
    assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    assert_eq!(world.upstream.requests(), 5);
}

#[test]
fn c2_10_a_futile_retry_costs_no_budget() {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(1));
    assert_eq!(status(&world.get()), 503);
    assert_eq!(world.client.snapshot().budget.retries, 0);
}

#[test]
fn c4_7_a_late_verdict_decides_nothing() {
    // Two slow calls start while it is closed; three failures open it; the slow ones end while it is open.
    let steps = [Step::status(200).after(secs(5)), Step::status(200).after(secs(20)), Step::status(503)];
    let world = three_failures(steps);
    let slow = async { join_all([world.client.get("/1").send(), world.client.get("/2").send()]).await };
    let fast = async {
        for _ in 0..3 {
            world.client.get("/x").send().await.unwrap();
        }
        world.state()
    };
    let (results, after_failures) = world.run(futures_util::future::join(slow, fast));
    assert_eq!(after_failures, "open");
    assert!(results.iter().all(|result| status(result) == 200));
    assert_eq!(world.state(), "open", "neither late success closed it");
}

#[test]
fn c4_9_every_transition_is_an_event() {
    let world = opened();
    world.upstream.play([Step::status(200)]);
    world.clock.advance(secs(15));
    world.get().unwrap();
    let transitions: Vec<_> = world
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Transition { upstream, transition } => {
                assert_eq!(&**upstream, "billing");
                Some((transition.from, transition.to))
            }
            _ => None,
        })
        .collect();
    use steadfast::policy::breaker::State::{Closed, HalfOpen, Open};
    assert_eq!(transitions, [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
}

#[test]
fn c4_9_it_can_be_forced() {
    let world = World::new([Step::status(200)]);
    world.client.force_open();
    let error: Error = world.get().unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (ErrorKind::CircuitOpen, None));
    world.client.reset_breaker();
    assert_eq!(status(&world.get()), 200);

    let world = three_failures([Step::status(503)]);
    world.client.force_close();
    for _ in 0..10 {
        assert_eq!(status(&world.get()), 503);
    }
    assert_eq!(world.upstream.requests(), 10);
}

#[test]
fn c43_asking_for_the_state_changes_nothing_and_sends_nothing() {
    let world = opened();
    world.clock.advance(secs(60));
    for _ in 0..3 {
        let snapshot = world.client.snapshot();
        assert_eq!(world.state(), "open");
        assert!(snapshot.breaker.ready_to_probe);
    }
    assert_eq!(world.upstream.requests(), 3);
}

#[test]
fn c4_5_the_first_opening_can_be_short() {
    let world = World::with([Step::status(503)], |client| {
        client.breaker_failures(1).retries(0).breaker_cool_down_start(secs(1)).breaker_cool_down(secs(3))
    });
    world.get().unwrap();
    let mut openings = Vec::new();
    for _ in 0..4 {
        let wait = world.get().unwrap_err().retry_after().unwrap();
        openings.push(wait);
        world.clock.advance(wait);
        world.get().unwrap();
    }
    assert_eq!(openings, [1, 2, 3, 3].map(Duration::from_secs));
}

#[test]
fn c0_2_c4_1_clones_share_the_state() {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(2).retries(0).max_concurrent(1));
    let clone = world.client.clone();
    assert_eq!(status(&world.get()), 503);
    assert_eq!(status(&world.run(clone.get("/x").send())), 503);
    assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    assert_eq!(kind(&world.run(clone.get("/x").send())), ErrorKind::CircuitOpen);
    assert_eq!(world.client.snapshot().budget.requests, 2);
    // 0.2: another client of the same upstream shares nothing.
    assert_eq!(status(&three_failures([Step::status(200)]).get()), 200);
}

#[test]
fn c4_2_c4_3_what_opens_it_and_what_says_nothing() {
    use steadfast::{Fault, Sent};
    for (step, state) in [
        (Step::fail(Fault::Dns, Sent::No), "open"),
        (Step::fail(Fault::Connect, Sent::No), "open"),
        (Step::fail(Fault::Tls, Sent::No), "open"),
        (Step::fail(Fault::Certificate, Sent::No), "open"),
        (Step::fail(Fault::Reset, Sent::Unknown), "open"),
        (Step::fail(Fault::Protocol, Sent::Yes), "open"),
        (Step::fail(Fault::Decode, Sent::Yes), "open"),
        (Step::fail(Fault::Incomplete, Sent::Yes), "open"),
        (Step::status(502), "open"),
        (Step::status(503), "open"),
        (Step::status(504), "open"),
        (Step::status(500), "closed"),
        (Step::status(501), "closed"),
        (Step::status(429), "closed"),
        (Step::status(404), "closed"),
        (Step::fail(Fault::PoolTimeout, Sent::No), "closed"),
        (Step::fail(Fault::LocalProtocol, Sent::No), "closed"),
        (Step::fail(Fault::ProxyRefused, Sent::No), "closed"),
    ] {
        let world = World::with([step.clone()], |client| client.breaker_failures(1).retries(0));
        drop(world.get());
        assert_eq!(world.state(), state, "{step:?}");
    }
    let world = World::with([Step::status(429)], |client| client.breaker_failures(1).breaker_statuses(&[429]));
    world.get().unwrap();
    assert_eq!(world.state(), "open", "4.2: the set is a setting");
}

/// 4.3, B10: nobody asked the upstream anything.
#[test]
fn c4_3_our_own_wait_for_a_connection_is_a_full_bulkhead() {
    use steadfast::{Fault, Sent};
    let world = World::with([Step::fail(Fault::PoolTimeout, Sent::No)], |client| client.breaker_failures(1));
    let result = world.get();
    assert_eq!((kind(&result), ended(&result)), (ErrorKind::BulkheadFull, "bulkhead_full"));
    assert_eq!((world.upstream.requests(), world.state()), (1, "closed"));
    world.assert_at_rest();
}

#[test]
fn c4_6_a_probe_that_panics_frees_its_place() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let steps = [Step::status(503), Step::status(200).body("boom"), Step::status(200)];
    let world = World::with(steps, |client| {
        client.breaker_failures(1).retries(0).classify(|_, body| {
            assert_ne!(body, "boom", "the classifier fails");
            steadfast::Assessment::ByStatus
        })
    });
    assert_eq!(status(&world.get()), 503);
    world.clock.advance(secs(15));
    assert!(catch_unwind(AssertUnwindSafe(|| world.get())).is_err());
    world.assert_at_rest();
    assert_eq!((status(&world.get()), world.state()), (200, "closed"));
}

#[test]
fn c4_9_the_snapshot_keeps_the_count_that_opened_it() {
    let world = opened();
    world.clock.advance(secs(60));
    let snapshot = world.client.snapshot().breaker;
    assert_eq!(snapshot.opened_with.map(|opened| opened.streak), Some(3));
}
