//! One absolute deadline for everything (contract section 1).

use std::time::Duration;

use steadfast::report::WaitReason;
use steadfast::testing::Step;
use steadfast::{CallContext, ErrorKind};

use crate::harness::{World, ended, kind, ms, outcomes, report, secs, status, waits};

#[test]
fn c17_a_hang_ends_at_the_deadline_and_the_next_call_works() {
    let world = World::with([Step::hang(), Step::status(200)], |client| client.total_timeout(ms(200)));
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(world.clock.now().as_nanos(), 200_000_000);
    assert_eq!(outcomes(&result), ["deadline"]);
    assert_eq!(ended(&result), "deadline");
    assert_eq!(status(&world.get()), 200);
    world.assert_at_rest();
}

#[test]
fn c31_hangs_that_the_deadline_cuts_open_the_breaker() {
    let world = World::with([Step::hang()], |client| {
        client.total_timeout(ms(50)).read_timeout(secs(10)).breaker_failures(3).retries(0)
    });
    for _ in 0..3 {
        assert_eq!(kind(&world.get()), ErrorKind::Timeout);
    }
    assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    assert_eq!(world.upstream.requests(), 3);
}

#[test]
fn c32_a_drip_that_no_read_timeout_ends_opens_the_breaker_too() {
    let world = World::with([Step::drip(ms(30))], |client| {
        client.total_timeout(ms(300)).read_timeout(ms(100)).breaker_failures(2)
    });
    for _ in 0..2 {
        assert_eq!(kind(&world.get()), ErrorKind::Timeout);
    }
    assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    assert_eq!(world.upstream.requests(), 2);
}

#[test]
fn c1_1_a_call_can_only_shorten_the_deadline() {
    for (timeout, ends_at) in [(secs(5), secs(5)), (secs(60), secs(30)), (Duration::MAX, secs(30))] {
        let world = World::with([Step::drip(ms(30))], |client| client);
        let result = world.run(world.client.get("/x").timeout(timeout).send());
        assert_eq!(kind(&result), ErrorKind::Timeout);
        assert_eq!(report(&result).duration(), ends_at);
    }
}

#[test]
fn c1_1_the_deadline_of_the_request_being_served_is_inherited() {
    let world = World::new([Step::drip(ms(30))]);
    let context = CallContext::new().with_time_left(secs(2));
    let result = world.run(world.client.get("/x").context(&context).send());
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(report(&result).duration(), secs(2));
}

#[test]
fn c1_1_a_spent_deadline_is_a_timeout_before_anything_is_asked() {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(1).retries(0));
    world.get().unwrap();
    assert_eq!(world.state(), "open");
    let result = world.run(world.client.get("/x").timeout(Duration::ZERO).send());
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(result.unwrap_err().attempts(), 0);
}

#[test]
fn c1_5_a_deadline_that_left_no_time_is_no_verdict() {
    // 1 s of evidence is asked for; the call gives the upstream half a second.
    let world = World::with([Step::hang()], |client| client.breaker_failures(1).retries(0));
    let result = world.run(world.client.get("/x").timeout(ms(500)).send());
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(world.state(), "closed");
    let result = world.run(world.client.get("/x").timeout(secs(1)).send());
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(world.state(), "open");
}

#[test]
fn c1_5_a_route_known_to_be_slow_gives_no_evidence() {
    let world = World::with([Step::hang()], |client| client.breaker_failures(1).retries(0).total_timeout(secs(5)));
    let result = world.run(world.client.get("/x").timeout_is_evidence(false).send());
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(world.state(), "closed");
}

#[test]
fn c1_2_an_attempt_timeout_is_a_failure_that_is_repeated() {
    let world = World::with([Step::hang(), Step::status(200)], |client| client.attempt_timeout(ms(50)));
    let result = world.get();
    assert_eq!(status(&result), 200);
    assert_eq!(outcomes(&result), ["attempt_timeout", "200"]);
}

#[test]
fn c0_1_of_equal_limits_the_deadline_is_named() {
    let world = World::with([Step::hang()], |client| client.attempt_timeout(secs(3)).total_timeout(secs(3)));
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(outcomes(&result), ["deadline"]);
}

#[test]
fn c0_1_a_response_that_comes_with_the_deadline_beats_it() {
    let world = World::with([Step::status(200).after(secs(3))], |client| client.total_timeout(secs(3)));
    assert_eq!(status(&world.get()), 200);
}

#[test]
fn c2_7_no_retry_is_started_that_the_deadline_cannot_hold() {
    // The backoff is exactly 0.5 s; a deadline of 0.5 s leaves no attempt after it, one of 0.51 s just does.
    for (total, requests) in [(500, 1), (509, 1), (510, 2)] {
        let world = World::with([Step::status(503)], |client| {
            client
                .total_timeout(ms(total))
                .backoff_base(ms(500))
                .jitter(steadfast::policy::backoff::Jitter::None)
                .retries(1)
        });
        let result = world.get();
        assert_eq!(status(&result), 503);
        assert_eq!(world.upstream.requests(), requests, "{total}");
        assert_eq!(ended(&result), if requests == 1 { "deadline" } else { "attempts_exhausted" });
        if requests == 1 {
            assert_eq!(world.clock.now().as_nanos(), 0, "it gives up at once");
        }
    }
}

#[test]
fn c2_7_after_a_failed_attempt_it_is_unreachable_not_a_timeout() {
    let world = World::with([Step::refuse()], |client| {
        client.total_timeout(ms(100)).backoff_base(ms(500)).jitter(steadfast::policy::backoff::Jitter::None)
    });
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    assert_eq!(ended(&result), "deadline");
}

#[test]
fn c1_1_the_deadline_covers_the_wait_for_a_slot() {
    let world = World::with([Step::status(200).after(secs(20))], |client| {
        client.max_concurrent(1).bulkhead_wait(secs(10)).total_timeout(secs(25))
    });
    let results = world
        .run(futures_util::future::join(world.client.get("/x").send(), world.client.get("/x").timeout(secs(3)).send()));
    assert_eq!(status(&results.0), 200);
    assert_eq!(kind(&results.1), ErrorKind::Timeout, "S8, 5.1: the deadline came first");
    assert_eq!(waits(&results.1, WaitReason::Bulkhead), [secs(3)]);
}

#[test]
fn c1_3_timeouts_cannot_be_turned_off() {
    use steadfast::ServiceClient;
    for timeout in [Duration::ZERO, secs(86_401), Duration::MAX] {
        let error = ServiceClient::builder("http://billing.test").read_timeout(timeout).build().unwrap_err();
        assert!(error.to_string().contains("read_timeout"), "{error}");
    }
}

#[test]
fn c1_5_a_deadline_that_the_transport_saw_first_is_judged_alike() {
    use steadfast::{Fault, Sent};
    for (after, state) in [(ms(500), "closed"), (secs(1), "open")] {
        let step = Step::fail(Fault::Deadline, Sent::Unknown).after(after);
        let world = World::with([step], |client| client.breaker_failures(1));
        let result = world.get();
        assert_eq!(kind(&result), ErrorKind::Timeout);
        assert_eq!(ended(&result), "deadline");
        assert_eq!(world.state(), state);
        assert_eq!(world.upstream.requests(), 1);
    }
}

#[test]
fn c1_1_a_deadline_of_the_served_request_that_has_passed_sends_nothing() {
    let world = World::new([Step::status(200)]);
    let result = world.run(world.client.get("/x").deadline(std::time::Instant::now()).send());
    assert_eq!(kind(&result), ErrorKind::Timeout);
    assert_eq!(world.upstream.requests(), 0);
}

#[test]
fn c1_5_a_phase_timeout_needs_no_evidence() {
    use steadfast::{Fault, Sent};
    for (fault, sent) in [
        (Fault::ConnectTimeout, Sent::No),
        (Fault::WriteTimeout, Sent::Unknown),
        (Fault::ReadTimeout, Sent::Unknown),
        (Fault::AttemptTimeout, Sent::Unknown),
    ] {
        let world = World::with([Step::fail(fault, sent)], |client| client.breaker_failures(1).retries(0));
        assert_eq!(kind(&world.get()), ErrorKind::Unreachable, "{fault}");
        assert_eq!(world.state(), "open", "{fault}");
    }
    let world = World::with([Step::hang()], |client| client.attempt_timeout(ms(1)).breaker_failures(1).retries(0));
    assert_eq!((kind(&world.get()), world.state()), (ErrorKind::Unreachable, "open"));
}

#[test]
fn c1_5_half_of_a_short_total_timeout_is_evidence() {
    for (timeout, state) in [(ms(249), "closed"), (ms(250), "open")] {
        let world = World::with([Step::hang()], |client| client.total_timeout(ms(500)).breaker_failures(1).retries(0));
        let result = world.run(world.client.get("/x").timeout(timeout).send());
        assert_eq!((kind(&result), world.state()), (ErrorKind::Timeout, state), "{timeout:?}");
    }
}

/// Only the time since the transport had it counts: a hook that waits for a token is none of the upstream's fault.
#[test]
fn c1_5_the_time_of_a_hook_is_no_evidence() {
    let clock = steadfast::testing::VirtualClock::new();
    let build = |hook: Duration, attempt: Option<Duration>, step: Step| {
        let (inner, script) = (clock.clone(), steadfast::testing::Script::new(clock.clone(), [step]));
        let builder = steadfast::ServiceClient::builder("http://billing.test").breaker_failures(1).retries(0);
        let builder = match attempt {
            Some(timeout) => builder.attempt_timeout(timeout),
            None => builder,
        };
        let client = builder
            .clock(clock.clone())
            .transport(script.clone())
            .before_attempt_async(move |_| {
                let clock = steadfast::Clock::from(inner.clone());
                Box::pin(async move {
                    clock.wait(hook).await;
                    Ok(())
                })
            })
            .build()
            .unwrap();
        (client, script)
    };
    for (hook, attempt, requests, open) in [
        (secs(60), None, 0, false),
        (secs(60), Some(secs(2)), 0, false),
        (ms(2_500), None, 1, false),
        (ms(2_000), None, 1, true),
    ] {
        let (client, script) = build(hook, attempt, Step::drip(ms(10)));
        let error = clock.run(client.get("/x").timeout(secs(3)).send()).unwrap().unwrap_err();
        let kind = if attempt.is_some() { ErrorKind::Unreachable } else { ErrorKind::Timeout };
        assert_eq!(error.kind(), kind, "{hook:?}");
        assert_eq!(script.requests(), requests, "{hook:?}");
        let state = client.snapshot().breaker.state;
        assert_eq!(state == steadfast::policy::breaker::State::Open, open, "{hook:?}");
    }
}
