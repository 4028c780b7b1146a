//! The bulkhead (contract 5), seen with several calls in flight, and the rate limit (6).

use super::server::{Server, answer, answer_after};
use super::{call, waits};

/// So many calls at once.
fn at_once(n: &str) -> [&str; 6] {
    ["GET", "/x", "--repeat", n, "--concurrency", n]
}

#[test]
fn c33_without_a_slot_a_call_is_refused_at_once() {
    let server = Server::new([answer_after(200, 400)]);
    let called = call(&server.url(), &["max_concurrent=2", "bulkhead_wait=0"], &at_once("3"));
    assert_eq!((server.count(), called.statuses(200), called.errors("bulkhead_full")), (2, 2, 1), "{called:?}");
    // Lines come in order of completion: the refusal first.
    assert_eq!(called.calls[0]["error"], "bulkhead_full", "{called:?}");
    assert_eq!(called.calls[0]["attempts"].as_array().map(Vec::len), Some(0));
    assert!(called.calls.iter().all(|line| line["breaker"] == "closed"), "{called:?}");
    // Calls enter in the order of their numbers, and the exit status is that of the last.
    assert_eq!(called.calls[0]["call"], 3, "{called:?}");
    assert_eq!(called.code, 11, "{called:?}");
}

#[test]
fn c34_a_call_waits_for_a_slot_and_attempts_never_overlap() {
    let server = Server::new([answer_after(200, 50)]);
    let called = call(&server.url(), &["max_concurrent=1", "bulkhead_wait=1"], &at_once("2"));
    let requests = server.requests();
    assert_eq!((called.code, requests.len(), called.statuses(200)), (0, 2, 2), "{called:?}");
    assert!(requests[1].came >= requests[0].answered.unwrap(), "{requests:?}");
    let waits: Vec<_> = called.calls.iter().flat_map(|line| line["waits"].as_array().unwrap()).collect();
    assert!(waits.len() == 1 && waits[0]["reason"] == "bulkhead", "{called:?}");
}

#[test]
fn c35_a_call_that_waited_asks_the_breaker_again() {
    let server = Server::new([answer_after(503, 150)]);
    let keys = ["max_concurrent=1", "bulkhead_wait=5", "breaker_failures=1", "retries=0"];
    let called = call(&server.url(), &keys, &at_once("6"));
    assert_eq!((called.code, server.count()), (10, 1), "{called:?}");
    assert_eq!((called.statuses(503), called.errors("circuit_open")), (1, 5), "{called:?}");
}

#[test]
fn c6_3_without_a_place_in_time_a_call_is_refused_with_the_time_to_come_back() {
    let server = Server::new([answer(200)]);
    let keys = ["rate_limit=1", "rate_limit_period=10s", "rate_limit_wait=0"];
    let called = call(&server.url(), &keys, &["GET", "/x", "--repeat", "2"]);
    let refused = called.by_number()[1];
    assert_eq!((called.code, server.count(), &refused["error"]), (14, 1, &"rate_limited".into()), "{called:?}");
    assert_eq!((&refused["ended"], &refused["breaker"]), (&"rate_limited".into(), &"closed".into()), "{refused}");
    assert!((1..=10_000).contains(&refused["retry_after_ms"].as_u64().unwrap()), "{refused}");
}

#[test]
fn c6_2_a_call_waits_for_its_place() {
    let server = Server::new([answer(200)]);
    let called = call(&server.url(), &["rate_limit=1", "rate_limit_period=200ms"], &["GET", "/x", "--repeat", "2"]);
    let requests = server.requests();
    assert_eq!((called.code, requests.len()), (0, 2), "{called:?}");
    let waits = waits(called.by_number()[1], "rate_limit");
    assert!(waits.len() == 1 && waits[0] < 1_000.0, "{waits:?}");
}
