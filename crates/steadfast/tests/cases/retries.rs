//! What is retried, how long is waited, and when the budget says no (contract sections 2 and 3).

use std::time::Duration;

use http::Method;
use steadfast::report::WaitReason;
use steadfast::testing::Step;
use steadfast::{ErrorKind, ServiceClient};

use crate::harness::{World, ended, kind, ms, outcomes, secs, status, waits};

fn breaker_off(builder: steadfast::ClientBuilder) -> steadfast::ClientBuilder {
    builder.breaker_failures(10_000).breaker_minimum_calls(10_000)
}

#[test]
fn c1_a_503_is_repeated_after_a_backoff_within_its_bounds() {
    let world = World::new([Step::status(503), Step::status(200)]);
    let result = world.get();
    assert_eq!(status(&result), 200);
    assert_eq!(world.upstream.requests(), 2);
    let waits = waits(&result, WaitReason::Backoff);
    assert_eq!(waits.len(), 1);
    assert!(waits[0] <= ms(100));
    assert_eq!(ended(&result), "response");
    world.assert_at_rest();
}

#[test]
fn c2_every_idempotent_method_is_repeated() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE] {
        let world = World::new([Step::status(502), Step::status(504), Step::status(200)]);
        let result = world.run(world.client.request(method.clone(), "/x").send());
        assert_eq!(status(&result), 200, "{method}");
        assert_eq!(world.upstream.requests(), 3, "{method}");
        let waits = waits(&result, WaitReason::Backoff);
        assert!(waits[0] <= ms(100) && waits[1] <= ms(200), "{method}: {waits:?}");
    }
}

#[test]
fn c3_the_last_503_comes_back_as_a_response() {
    let world = World::new([Step::status(503)]);
    let result = world.get();
    assert_eq!(status(&result), 503);
    assert_eq!(world.upstream.requests(), 3);
    assert_eq!(waits(&result, WaitReason::Backoff).len(), 2);
    assert_eq!(ended(&result), "attempts_exhausted");
}

#[test]
fn c4_what_another_attempt_cannot_fix_is_returned_at_once() {
    for code in [500, 400, 404, 409, 422, 501, 408, 425, 421, 302] {
        let world = World::new([Step::status(code), Step::status(200)]);
        let result = world.get();
        assert_eq!(status(&result), code);
        assert_eq!(world.upstream.requests(), 1, "{code}");
        assert_eq!(ended(&result), if code < 400 { "response" } else { "not_retryable" });
    }
}

#[test]
fn c5_a_post_or_patch_is_not_repeated() {
    for method in [Method::POST, Method::PATCH] {
        let world = World::new([Step::status(503), Step::status(200)]);
        let result = world.run(world.client.request(method, "/x").body("abc").send());
        assert_eq!(status(&result), 503);
        assert_eq!(world.upstream.requests(), 1);
        assert_eq!(ended(&result), "not_repeatable");
    }
}

#[test]
fn c6_an_idempotency_key_makes_a_post_repeatable_with_one_key_and_one_body() {
    let world = World::new([Step::status(503), Step::status(201)]);
    let result = world.run(world.client.post("/x").body("abc").idempotency_key("k-1").send());
    assert_eq!(status(&result), 201);
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 2);
    for request in &seen {
        assert_eq!(request.headers["idempotency-key"], "k-1");
        assert_eq!(request.body, "abc");
    }
}

#[test]
fn c7_a_post_that_may_have_been_processed_is_not_repeated() {
    let world = World::new([Step::hang()]);
    let result = world.post();
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    assert_eq!(world.upstream.requests(), 1);
    assert_eq!(outcomes(&result), ["read_timeout"]);
    assert_eq!(ended(&result), "not_repeatable");
    assert_eq!(result.unwrap_err().attempts(), 1);
}

#[test]
fn c8_a_refused_connection_is_tried_three_times_and_names_the_upstream() {
    let world = World::new([Step::refuse()]);
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    assert_eq!(world.upstream.requests(), 3);
    assert_eq!(waits(&result, WaitReason::Backoff).len(), 2);
    let error = result.unwrap_err();
    assert_eq!(error.attempts(), 3);
    assert!(error.to_string().contains("'billing'"), "{error}");
}

#[test]
fn c9_different_failures_are_repeated_alike() {
    let world = World::new([Step::refuse(), Step::hang(), Step::status(200)]);
    let result = world.get();
    assert_eq!(status(&result), 200);
    assert_eq!(outcomes(&result), ["connect", "read_timeout", "200"]);
}

#[test]
fn c10_the_callers_word_overrides_the_method() {
    let world = World::new([Step::status(503), Step::status(200)]);
    let result = world.run(world.client.get("/x").retry(false).send());
    assert_eq!((status(&result), world.upstream.requests()), (503, 1));

    let world = World::new([Step::status(503), Step::status(200)]);
    let result = world.run(world.client.post("/x").retry(true).send());
    assert_eq!((status(&result), world.upstream.requests()), (200, 2));
}

#[test]
fn c11_retry_after_is_waited_for_exactly() {
    let world = World::new([Step::status(429).header("Retry-After", "2"), Step::status(200)]);
    let result = world.get();
    assert_eq!(status(&result), 200);
    assert_eq!(waits(&result, WaitReason::RetryAfter), [secs(2)]);
    let seen = world.upstream.seen();
    assert_eq!(seen[1].at.since(seen[0].at), secs(2));
}

#[test]
fn c12_a_longer_retry_after_than_allowed_comes_back_at_once() {
    let world = World::new([Step::status(429).header("Retry-After", "120"), Step::status(200)]);
    let result = world.get();
    assert_eq!((status(&result), world.upstream.requests()), (429, 1));
    assert_eq!(ended(&result), "retry_after_too_long");
    assert_eq!(result.unwrap().report().retry_after(), Some(secs(120)), "the caller may come back then");
    assert_eq!(world.clock.now().as_nanos(), 0);
}

#[test]
fn c13_retry_after_may_be_a_date() {
    let world = World::new([Step::status(200)]);
    let date = httpdate::fmt_http_date(world.clock.wall() + secs(3));
    world.upstream.play([Step::status(503).header("Retry-After", date), Step::status(200)]);
    let result = world.get();
    assert_eq!(status(&result), 200);
    assert_eq!(waits(&result, WaitReason::RetryAfter), [secs(3)]);
}

#[test]
fn c14_an_unusable_retry_after_is_ignored_whatever_bytes_it_holds() {
    let zone = format!("Wed, 21 Oct 2026 07:28:00 +{}", "9".repeat(20));
    for value in [b"soon".as_slice(), b"1.5", b"-1", b"", &[0xb2], zone.as_bytes(), b"5, 10", b"1m0s"] {
        let world = World::new([Step::status(503).header("Retry-After", value), Step::status(200)]);
        let result = world.get();
        assert_eq!((status(&result), world.upstream.requests()), (200, 2), "{value:?}");
        let waits = waits(&result, WaitReason::Backoff);
        assert!(waits.len() == 1 && waits[0] <= ms(100), "{value:?}: {waits:?}");
    }
}

#[test]
fn c15_a_retry_after_that_the_deadline_cannot_hold_comes_back_at_once() {
    let step = Step::status(503).header("Retry-After", "5");
    let world = World::with([step, Step::status(200)], |client| client.total_timeout(secs(2)));
    let result = world.get();
    assert_eq!((status(&result), world.upstream.requests()), (503, 1));
    assert_eq!(ended(&result), "retry_after_too_long");
    assert_eq!(world.clock.now().as_nanos(), 0);
}

#[test]
fn c16_the_backoff_grows_to_its_cap_and_differs() {
    let world = World::with([Step::status(503)], |client| {
        breaker_off(client).retries(5).backoff_base(ms(100)).backoff_max(ms(500)).retry_budget_gate(false)
    });
    let result = world.get();
    assert_eq!((status(&result), world.upstream.requests()), (503, 6));
    let waits = waits(&result, WaitReason::Backoff);
    let caps = [100, 200, 400, 500, 500].map(ms);
    assert_eq!(waits.len(), caps.len());
    assert!(waits.iter().zip(caps).all(|(wait, cap)| *wait <= cap), "{waits:?}");
    assert!(waits.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn c20_the_budget_caps_retries_in_an_outage() {
    let world = World::with([Step::status(503)], |client| {
        breaker_off(client).retry_budget_ratio(0.1).retry_budget_min_per_second(0.0)
    });
    for _ in 0..20 {
        assert_eq!(status(&world.get()), 503);
    }
    assert_eq!(world.upstream.requests(), 22);
}

#[test]
fn c21_the_budgets_floor_is_per_ten_seconds() {
    let world = World::with([Step::status(503)], |client| {
        breaker_off(client)
            .retry_budget_ratio(0.0)
            .retry_budget_min_per_second(0.5)
            .retry_budget_gate(false)
            .backoff_base(Duration::ZERO)
    });
    let mut last = None;
    for _ in 0..10 {
        last = Some(world.get());
    }
    assert_eq!(world.upstream.requests(), 15);
    assert_eq!(ended(&last.unwrap()), "budget_ceiling");
    world.clock.advance(secs(11));
    assert_eq!(waits(&world.get(), WaitReason::Backoff).len() + world.upstream.requests(), 18);
}

#[test]
fn c3_2_the_gate_stops_paying_for_retries_that_do_not_help() {
    let world = World::with([Step::status(503)], breaker_off);
    let mut reasons = Vec::new();
    for _ in 0..20 {
        reasons.push(ended(&world.get()));
    }
    assert_eq!(world.upstream.requests(), 25);
    assert_eq!(reasons.last(), Some(&"budget_efficacy"));
}

#[test]
fn c2_9_a_retry_that_is_never_sent_is_given_back() {
    let world = World::with([Step::status(503)], breaker_off);
    let before = {
        let call = world.client.get("/x").send();
        let mut call = std::pin::pin!(call);
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        // The first attempt is answered at once; the call now waits for its paid retry.
        assert!(call.as_mut().poll(&mut context).is_pending());
        world.client.snapshot().budget
    };
    let after = world.client.snapshot().budget;
    assert_eq!((before.retries, after.retries), (1, 0));
    assert_eq!(after.credit, before.credit + 8);
    world.assert_at_rest();
}

#[test]
fn c2_12_our_own_refusals_are_not_retried() {
    let world = World::with([Step::status(200).after(secs(5))], |client| {
        client.max_concurrent(1).bulkhead_wait(Duration::ZERO)
    });
    let results = world.get_many(2);
    assert_eq!(kind(&results[1]), ErrorKind::BulkheadFull);
    assert_eq!(results[1].as_ref().unwrap_err().attempts(), 0);
}

#[test]
fn c2_2_an_empty_idempotency_key_is_the_callers_mistake() {
    let world = World::new([Step::status(200)]);
    let result = world.run(world.client.post("/x").idempotency_key("").send());
    assert_eq!(kind(&result), ErrorKind::InvalidRequest);
    assert_eq!(world.upstream.requests(), 0);
}

#[test]
fn c2_3_what_was_never_sent_is_repeated_for_any_method() {
    let world = World::new([Step::refuse(), Step::status(201)]);
    assert_eq!(status(&world.post()), 201);
    assert_eq!(world.upstream.requests(), 2);

    let world = World::new([Step::refuse(), Step::status(201)]);
    let result = world.run(world.client.post("/x").retry(false).send());
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    assert_eq!(world.upstream.requests(), 1);
}

#[test]
fn c2_6_b23_retry_after_zero_or_past_is_an_ordinary_backoff() {
    for value in ["0", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let world = World::new([Step::status(503).header("Retry-After", value), Step::status(200)]);
        let result = world.get();
        assert_eq!(waits(&result, WaitReason::RetryAfter), Vec::<Duration>::new());
        assert_eq!(waits(&result, WaitReason::Backoff).len(), 1);
    }
}

#[test]
fn c2_6_of_several_lines_the_longest_valid_one_counts() {
    let step = Step::status(503).header("Retry-After", "1").header("Retry-After", "3").header("Retry-After", "soon");
    let world = World::new([step, Step::status(200)]);
    assert_eq!(waits(&world.get(), WaitReason::RetryAfter), [secs(3)]);
}

#[test]
fn c2_4_the_set_of_fixable_statuses_is_a_setting() {
    let world = World::with([Step::status(500), Step::status(200)], |client| client.retry_statuses(&[500]));
    assert_eq!((status(&world.get()), world.upstream.requests()), (200, 2));
    let world = World::with([Step::status(503), Step::status(200)], |client| client.retry_statuses(&[500]));
    assert_eq!((status(&world.get()), world.upstream.requests()), (503, 1));
}

#[test]
fn c3_1_a_client_is_made_without_a_file() {
    let client = ServiceClient::builder("http://127.0.0.1:1/").build().unwrap();
    assert_eq!(client.name(), "127-0-0-1");
}

#[test]
fn c2_8_what_is_the_same_on_every_attempt() {
    let world = World::new([Step::status(503), Step::reset(), Step::status(200)]);
    let context = steadfast::CallContext::new().with_request_id("r-1");
    let request = world.client.patch("/x?a=1").json(&[1, 2]).idempotency_key("k-1").context(&context);
    assert_eq!(status(&world.run(request.send())), 200);
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        assert_eq!((&request.method, &request.uri, &request.body), (&seen[0].method, &seen[0].uri, &seen[0].body));
        assert_eq!(request.headers, seen[0].headers);
        assert_eq!(request.headers["x-request-id"], "r-1");
        assert_eq!(request.headers["idempotency-key"], "k-1");
    }
}

/// 3.1: what the breaker refuses does not enlarge the budget.
#[test]
fn c3_1_a_call_that_is_never_sent_is_not_counted() {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(1));
    world.get().unwrap();
    for _ in 0..100 {
        assert_eq!(kind(&world.get()), ErrorKind::CircuitOpen);
    }
    assert_eq!(world.client.snapshot().budget.requests, 1);

    let world = World::with([Step::status(200).after(secs(1))], |client| {
        client.max_concurrent(1).bulkhead_wait(Duration::ZERO)
    });
    world.get_many(100);
    assert_eq!(world.client.snapshot().budget.requests, 1);
}
