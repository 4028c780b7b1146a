//! What comes back (contract section 7).

use steadfast::testing::Step;
use steadfast::{Assessment, ErrorKind};

use crate::harness::{CallResult, World, ended, kind, ms, outcomes, secs, status};

#[test]
fn c18_a_response_outlives_a_later_attempt_that_the_deadline_cuts() {
    let world = World::with([Step::status(503), Step::hang()], |client| client.total_timeout(ms(300)));
    let result = world.get();
    assert_eq!(status(&result), 503);
    assert_eq!(world.upstream.requests(), 2);
    assert_eq!(outcomes(&result), ["503", "deadline"]);
    assert_eq!(ended(&result), "deadline");
}

#[test]
fn c19_a_response_outlives_a_later_refused_connection() {
    let world = World::new([Step::status(503), Step::status(503), Step::refuse()]);
    let result = world.get();
    assert_eq!(status(&result), 503);
    assert_eq!(outcomes(&result), ["503", "503", "connect"]);
    assert_eq!(ended(&result), "attempts_exhausted");
}

/// RFC 9110 7.6.1: what was about the upstream's connection stays behind, and a length that is not the body's.
#[test]
fn a_response_that_goes_on_is_without_its_connection() {
    let step = |length: &str| Step::status(200).header("content-length", length).header("etag", "x");
    let hop =
        step("5").header("connection", "keep-alive, x-hop").header("keep-alive", "timeout=5").header("x-hop", "1");
    let chunked = step("5").header("transfer-encoding", "chunked");
    let cases =
        [(hop, &["content-length", "etag"][..]), (chunked, &["etag"]), (step("6"), &["etag"]), (step("x"), &["etag"])];
    for (step, kept) in cases {
        let world = World::new([step.body("whole")]);
        let response = world.get().unwrap();
        assert!(response.headers().contains_key("etag"));
        let response = response.into_http();
        assert_eq!(response.headers().keys().map(|name| name.as_str()).collect::<Vec<_>>(), kept);
        assert_eq!(response.body(), "whole");
    }
    // What a GET would bring.
    let world = World::new([step("7")]);
    let head = world.run(world.client.head("/x").send()).unwrap().into_http();
    assert_eq!(head.headers()["content-length"], "7");
}

#[test]
fn c7_1_the_latest_response_comes_back() {
    let world = World::new([Step::status(502).body("first"), Step::status(503).body("second"), Step::reset()]);
    let result = world.get();
    assert_eq!(status(&result), 503);
    assert_eq!(result.unwrap().text(), "second");
}

#[test]
fn c7_1_a_response_outlives_a_full_bulkhead() {
    // The first call's retry finds its slot taken by the second call, which holds it.
    let steps = [Step::status(503), Step::status(200).after(secs(9))];
    let world = World::with(steps, |client| client.max_concurrent(1).bulkhead_wait(ms(1)).backoff_base(secs(1)));
    let results = world
        .run(futures_util::future::join(world.client.get("/1").send(), async { world.client.get("/2").send().await }));
    assert_eq!(status(&results.0), 503);
    assert_eq!(ended(&results.0), "bulkhead_full");
    assert_eq!(status(&results.1), 200);
}

#[test]
fn c7_2_no_response_at_all_is_an_error_that_says_which_way() {
    let world = World::new([Step::reset()]);
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    let error = result.unwrap_err();
    assert_eq!(error.upstream(), "billing");
    assert_eq!(error.attempts(), 3);
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(error.to_string(), "upstream 'billing' could not be reached in 3 attempts (reset)");
}

#[test]
fn c7_2_a_closed_client_sends_nothing() {
    let world = World::new([Step::status(200)]);
    assert_eq!(status(&world.get()), 200);
    world.run(world.client.close());
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Closed);
    assert_eq!(world.upstream.requests(), 1);
    assert_eq!(ended(&result), "closed");
}

#[test]
fn c7_7_close_lets_running_calls_end() {
    let world = World::new([Step::status(200).after(secs(2))]);
    let (result, ()) = world.run(futures_util::future::join(world.client.get("/x").send(), world.client.close()));
    assert_eq!(status(&result), 200);
    assert_eq!(world.clock.now().as_nanos(), 2_000_000_000);
}

#[test]
fn c7_2_a_response_over_the_limit_is_permanent_and_no_failure_of_the_upstream() {
    let world =
        World::with([Step::status(200).body("0123456789")], |client| client.max_response_bytes(9).breaker_failures(1));
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    assert_eq!(outcomes(&result), ["too_large"]);
    assert_eq!(world.state(), "closed");
    assert_eq!(world.upstream.requests(), 1);
}

#[test]
fn c7_4_the_report_tells_attempts_waits_and_one_reason() {
    let world = World::new([Step::status(503).after(ms(5)).header("Retry-After", "2"), Step::status(200).after(ms(7))]);
    let result = world.get();
    let response = result.unwrap();
    let report = response.report();
    let attempts: Vec<_> =
        report.attempts().map(|a| (a.number, a.start, a.duration, a.outcome.name(), a.sent.name())).collect();
    assert_eq!(attempts, [(1, ms(0), ms(5), "503".into(), "yes"), (2, ms(2005), ms(7), "200".into(), "yes"),]);
    assert_eq!(report.duration(), ms(2012));
    assert_eq!(
        report.to_string(),
        "attempt 1: 503 after 5.0ms; waited 2.0s (retry_after); attempt 2: 200 after 7.0ms; ended: response"
    );
}

#[test]
fn b17_an_error_names_the_upstream_and_nothing_else() {
    let world = World::new([Step::reset()]);
    let request = world.client.get("/invoices/42").query(&[("apikey", "S3CR3T")]).bearer_auth("T0KEN");
    let shown = format!("{request:?}");
    let error = world.run(request.send()).unwrap_err();
    for text in [error.to_string(), format!("{error:?}"), shown] {
        for secret in ["S3CR3T", "T0KEN", "invoices", "billing.test"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn a_classifier_finds_the_error_inside_a_200() {
    let steps = [Step::status(200).body(r#"{"error":"busy"}"#), Step::status(200).body(r#"{"ok":1}"#)];
    let world = World::with(steps, |client| {
        client.classify(|_, body| {
            let busy = body.windows(4).any(|part| part == b"busy");
            if busy { Assessment::Transient { retry_after: Some(secs(1)) } } else { Assessment::ByStatus }
        })
    });
    let result = world.get();
    assert_eq!(world.upstream.requests(), 2);
    assert_eq!(world.clock.now().as_nanos(), 1_000_000_000);
    assert_eq!(result.unwrap().text(), r#"{"ok":1}"#);
}

#[test]
fn a_classifier_may_say_that_another_attempt_is_no_use() {
    let world = World::with([Step::status(503)], |client| client.classify(|_, _| Assessment::Permanent));
    let result = world.get();
    assert_eq!((status(&result), world.upstream.requests()), (503, 1));
    assert_eq!(ended(&result), "not_retryable");
}

#[test]
fn a_hook_signs_every_attempt() {
    let world = World::with([Step::status(503), Step::status(200)], |client| {
        client.before_attempt(|parts| {
            let value = format!("attempt-{}-{}", parts.attempt, parts.body.map_or(0, bytes::Bytes::len));
            parts.headers.insert("x-signature", value.parse()?);
            Ok(())
        })
    });
    world.run(world.client.put("/x").body("abc").send()).unwrap();
    let signatures: Vec<_> = world.upstream.seen().iter().map(|seen| seen.headers["x-signature"].clone()).collect();
    assert_eq!(signatures, ["attempt-1-3", "attempt-2-3"]);
}

#[test]
fn a_hook_that_fails_ends_the_call_with_nothing_sent() {
    let world = World::with([Step::status(200)], |client| client.before_attempt(|_| Err("no token".into())));
    let result = world.get();
    assert_eq!(kind(&result), ErrorKind::Unreachable);
    assert_eq!(world.upstream.requests(), 0);
    assert_eq!(world.state(), "closed");
    let error = result.unwrap_err();
    let source = std::error::Error::source(&error).and_then(std::error::Error::source).unwrap();
    assert_eq!(source.to_string(), "no token");
}

#[test]
fn c7_3_an_error_makes_a_problem_document_that_says_nothing_internal() {
    let world = World::with([Step::status(503)], |client| client.breaker_failures(1).retries(0));
    world.get().unwrap();
    let problem = world.get().unwrap_err().to_problem();
    assert_eq!((problem.status, problem.upstream.as_deref()), (Some(503), Some("billing")));
    assert_eq!(problem.retry_after, Some(15.0));
    assert_eq!(problem.retry_after_header().unwrap(), "15");

    let world = World::new([Step::reset()]);
    let problem = world.run(world.client.get("/invoices/7?key=S3CR3T").send()).unwrap_err().to_problem();
    assert_eq!((problem.status, problem.attempts), (Some(503), Some(3)));
    let text = String::from_utf8(problem.to_json()).unwrap();
    assert!(!text.contains("invoices") && !text.contains("S3CR3T") && !text.contains("scripted"), "{text}");

    let problem = world.run(world.client.get("//evil.test").send()).unwrap_err().to_problem();
    assert_eq!(problem.status, Some(500));
}

#[test]
fn c7_4_every_call_ends_with_one_event_that_says_why() {
    let world = World::with([Step::status(503), Step::status(200)], |client| client.breaker_failures(2));
    world.get().unwrap();
    world.upstream.play([Step::status(503)]);
    world.get().unwrap();
    world.get().unwrap_err();
    let ends: Vec<_> = world
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            steadfast::Event::Ended { ended, answered, attempts, .. } => Some((ended.name(), *answered, *attempts)),
            _ => None,
        })
        .collect();
    // The streak has to be three times the one that a success ended, so it opens with the last attempt.
    assert_eq!(ends, [("response", true, 2), ("attempts_exhausted", true, 3), ("circuit_open", false, 0)]);
}

/// A call whose first attempt ends as `first` says and whose retry comes a second later; meanwhile `others` calls run,
/// from half a second on.
fn between(
    first: Step,
    others: usize,
    then: Step,
    configure: impl FnOnce(steadfast::ClientBuilder) -> steadfast::ClientBuilder,
) -> (World, CallResult) {
    let world = World::with([first, then], |client| {
        configure(client.backoff_base(secs(1)).jitter(steadfast::policy::backoff::Jitter::None).retries(1))
    });
    let clock = steadfast::Clock::from(world.clock.clone());
    let result = world.run(async {
        let meanwhile = async {
            clock.wait(ms(500)).await;
            futures_util::future::join_all((0..others).map(|_| world.client.get("/other").retry(false).send())).await
        };
        futures_util::future::join(world.client.get("/x").timeout(secs(3)).send(), meanwhile).await.0
    });
    (world, result)
}

#[test]
fn c7_1_a_response_outlives_an_open_breaker() {
    let (world, result) = between(Step::status(503), 1, Step::status(503), |client| client.breaker_failures(2));
    assert_eq!((status(&result), ended(&result)), (503, "circuit_open"));
    assert_eq!((world.upstream.requests(), world.state()), (2, "open"));
    world.assert_at_rest();
}

/// B2, B3: nothing came back from the first attempt, so what happened last is what the caller is told.
#[test]
fn c7_2_the_last_event_names_the_kind() {
    let slow = || Step::status(200).after(secs(20));
    type Configure = fn(steadfast::ClientBuilder) -> steadfast::ClientBuilder;
    let cases: [(Step, usize, Configure, ErrorKind, &str); 4] = [
        (Step::reset(), 1, |client| client.breaker_failures(2), ErrorKind::CircuitOpen, "circuit_open"),
        (slow(), 1, |client| client.max_concurrent(1).bulkhead_wait(ms(5)), ErrorKind::BulkheadFull, "bulkhead_full"),
        (slow(), 1, |client| client.max_concurrent(1).bulkhead_wait(secs(9)), ErrorKind::Timeout, "deadline"),
        (slow(), 1, |client| client.rate_limit(2).rate_limit_period(secs(60)), ErrorKind::RateLimited, "rate_limited"),
    ];
    for (then, others, configure, expected, why) in cases {
        let (_, result) = between(Step::refuse(), others, then, configure);
        assert_eq!((kind(&result), ended(&result)), (expected, why));
        let error = result.unwrap_err();
        assert_eq!(error.attempts(), 1, "{expected}");
        assert_eq!(
            error.retry_after().is_some(),
            matches!(expected, ErrorKind::CircuitOpen | ErrorKind::RateLimited),
            "{expected}"
        );
        assert!(std::error::Error::source(&error).is_some(), "{expected}: the failure before it is the cause");
    }
}

#[test]
fn c7_2_stopping_after_a_failed_attempt_is_unreachable() {
    // 2.10
    let world = World::with([Step::refuse()], |client| client.breaker_failures(1));
    let result = world.get();
    assert_eq!((kind(&result), ended(&result)), (ErrorKind::Unreachable, "circuit_open"));
    // 3.3: out of budget, without a response and with one.
    for (step, gate, why) in [
        (Step::refuse(), false, "budget_ceiling"),
        (Step::status(503), false, "budget_ceiling"),
        (Step::refuse(), true, "budget_efficacy"),
    ] {
        let world = World::with([step.clone()], |client| {
            let client = client.retry_budget_gate(gate).breaker_failures(1_000).breaker_minimum_calls(1_000);
            if gate { client } else { client.retry_budget_ratio(0.0).retry_budget_min_per_second(0.0) }
        });
        let mut result = world.get();
        for _ in 0..20 {
            result = world.get();
        }
        assert_eq!(ended(&result), why, "{step:?}");
        match result {
            Ok(response) => assert_eq!(response.status(), 503),
            Err(error) => assert_eq!((error.kind(), error.attempts()), (ErrorKind::Unreachable, 1)),
        }
    }
}

/// 7.1: a retryable response is read whole before its retry.
#[test]
fn c7_1_the_body_of_the_response_that_is_kept_is_whole() {
    let (_, result) = between(Step::status(503).body("a whole body"), 0, Step::refuse(), |client| client);
    assert_eq!(outcomes(&result), ["503", "connect"]);
    assert_eq!(result.unwrap().text(), "a whole body");
}
