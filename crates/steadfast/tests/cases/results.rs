//! What comes back (contract section 7).

use steadfast::testing::Step;
use steadfast::{Assessment, ErrorKind};

use crate::harness::{World, ended, kind, ms, outcomes, secs, status};

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
            let value = format!("attempt-{}-{}", parts.attempt, parts.body.len());
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
