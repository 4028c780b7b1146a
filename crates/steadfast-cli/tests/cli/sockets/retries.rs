//! What is retried, how often, and after which backoff (contract 2 and 3).

use super::server::{Server, answer, refusing_url};
use super::{call, outcomes, waits};

/// Thresholds that nothing here reaches.
const BREAKER_OFF: [&str; 2] = ["breaker_failures=10000", "breaker_minimum_calls=10000"];

#[test]
fn c1_a_503_is_retried_after_a_backoff() {
    let server = Server::new([answer(503), answer(200)]);
    let called = call(&server.url(), &[], &["GET", "/x"]);
    let line = called.only();
    assert_eq!((called.code, server.count()), (0, 2), "{called:?}");
    assert_eq!((&line["status"], &line["ended"]), (&200.into(), &"response".into()), "{line}");
    assert_eq!(outcomes(line), ["503", "200"]);
    let waits = waits(line, "backoff");
    assert!(waits.len() == 1 && (0.0..=100.0).contains(&waits[0]), "{waits:?}");
}

#[test]
fn c3_the_last_503_is_a_response_and_no_error() {
    let server = Server::new([answer(503)]);
    let called = call(&server.url(), &[], &["GET", "/x"]);
    let line = called.only();
    assert_eq!((called.code, server.count()), (0, 3), "{called:?}");
    assert_eq!((&line["status"], &line["error"]), (&503.into(), &serde_json::Value::Null), "{line}");
    assert_eq!(line["ended"], "attempts_exhausted");
    assert_eq!(waits(line, "backoff").len(), 2, "{line}");
    assert_eq!((&called.summary["requests"], &called.summary["retries"]), (&3.into(), &2.into()));
    // The same with --fail is a failure of the command.
    assert_eq!(call(&server.url(), &[], &["GET", "/x", "--fail"]).code, 1);
}

#[test]
fn c4_what_another_attempt_cannot_fix_is_returned_at_once() {
    for status in [500, 400, 404, 409, 422, 501] {
        let server = Server::new([answer(status), answer(200)]);
        let called = call(&server.url(), &[], &["GET", "/x"]);
        let line = called.only();
        assert_eq!((called.code, server.count()), (0, 1), "{status}: {called:?}");
        assert_eq!((&line["status"], &line["ended"]), (&status.into(), &"not_retryable".into()), "{line}");
        assert!(waits(line, "none").is_empty());
    }
}

#[test]
fn c5_what_may_not_be_repeated_is_not() {
    for method in ["POST", "PATCH"] {
        let server = Server::new([answer(503), answer(200)]);
        let called = call(&server.url(), &[], &[method, "/x", "-d", "{}"]);
        let line = called.only();
        assert_eq!((called.code, server.count()), (0, 1), "{method}: {called:?}");
        assert_eq!((&line["status"], &line["ended"]), (&503.into(), &"not_repeatable".into()), "{line}");
    }
}

#[test]
fn c6_a_key_makes_a_post_repeatable_byte_for_byte() {
    let server = Server::new([answer(503), answer(201)]);
    let body = r#"{"amount": 7}"#;
    let args = ["POST", "/invoices", "-d", body, "--json-body", "--idempotency-key", "7f3a"];
    let called = call(&server.url(), &[], &args);
    let requests = server.requests();
    assert_eq!((called.code, requests.len()), (0, 2), "{called:?}");
    assert_eq!(called.only()["status"], 201);
    for request in &requests {
        assert_eq!(request.header("idempotency-key"), Some("7f3a"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.body, body.as_bytes());
    }
}

#[test]
fn c8_a_refused_connection_is_tried_three_times() {
    let called = call(&refusing_url(), &[], &["billing", "GET", "/x"]);
    let line = called.only();
    assert_eq!(called.code, 13, "{called:?}");
    assert_eq!((&line["status"], &line["error"]), (&serde_json::Value::Null, &"unreachable".into()), "{line}");
    assert_eq!(outcomes(line), ["connect"; 3]);
    assert!(line["attempts"].as_array().unwrap().iter().all(|attempt| attempt["sent"] == "no"), "{line}");
    assert_eq!(waits(line, "backoff").len(), 2, "{line}");
    assert!(called.run.stderr.contains("'billing'") && called.run.stderr.contains('3'), "{called:?}");
    assert!(!called.run.stderr.contains("127.0.0.77"), "{called:?}");
}

#[test]
fn c10_the_caller_may_forbid_a_retry_or_vouch_for_one() {
    let server = Server::new([answer(503), answer(200)]);
    let called = call(&server.url(), &[], &["GET", "/x", "--retry", "false"]);
    assert_eq!((server.count(), &called.only()["status"]), (1, &503.into()), "{called:?}");

    let server = Server::new([answer(503), answer(200)]);
    let called = call(&server.url(), &[], &["POST", "/x", "--retry", "true"]);
    assert_eq!((server.count(), &called.only()["status"]), (2, &200.into()), "{called:?}");
    assert_eq!(waits(called.only(), "backoff").len(), 1);
}

#[test]
fn c16_the_backoff_grows_to_its_cap_and_is_random() {
    let server = Server::new([answer(503)]);
    let mut keys = vec!["retries=5", "backoff_base=0.1", "backoff_max=0.5"];
    keys.extend(BREAKER_OFF);
    let called = call(&server.url(), &keys, &["GET", "/x"]);
    assert_eq!((called.code, server.count()), (0, 6), "{called:?}");
    let waits = waits(called.only(), "backoff");
    for (wait, cap) in waits.iter().zip([100.0, 200.0, 400.0, 500.0, 500.0]) {
        assert!((0.0..=cap).contains(wait), "{waits:?}");
    }
    assert!(waits.len() == 5 && waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
}

#[test]
fn c20_the_budget_bounds_what_retries_may_add() {
    let server = Server::new([answer(503)]);
    let mut keys = vec!["retry_budget_ratio=0.1", "retry_budget_min_per_second=0"];
    keys.extend(BREAKER_OFF);
    let called = call(&server.url(), &keys, &["GET", "/x", "--repeat", "20"]);
    assert_eq!((called.code, called.statuses(503)), (0, 20), "{called:?}");
    assert!((20..=23).contains(&server.count()), "{}", server.count());
    assert_eq!(called.summary["requests"], server.count());
    assert!(called.calls.iter().any(|line| line["ended"] == "budget_ceiling"), "{called:?}");
}
