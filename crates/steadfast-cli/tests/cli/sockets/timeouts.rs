//! Deadlines and timeouts (contract 1), and what they tell the breaker.

use std::time::Duration;

use super::server::{Server, Step, answer};
use super::{call, outcomes, waits};

#[test]
fn c7_a_read_timeout_of_a_post_without_a_key_ends_the_call() {
    let server = Server::new([Step::Hang]);
    let called = call(&server.url(), &["read_timeout=150ms"], &["POST", "/x", "-d", "one"]);
    let line = called.only();
    assert_eq!((called.code, server.count()), (13, 1), "{called:?}");
    assert_eq!((&line["error"], &line["ended"]), (&"unreachable".into(), &"not_repeatable".into()), "{line}");
    assert_eq!(outcomes(line), ["read_timeout"]);
    assert_eq!(line["attempts"][0]["sent"], "unknown");
}

#[test]
fn c17_the_deadline_ends_the_call_and_the_next_one_works() {
    let server = Server::new([Step::Hang, answer(200)]);
    let called = call(&server.url(), &["total_timeout=0.2", "read_timeout=10"], &["GET", "/x", "--repeat", "2"]);
    let lines = called.by_number();
    assert_eq!((called.code, server.count()), (0, 2), "{called:?}");
    assert_eq!((&lines[0]["error"], &lines[0]["ended"]), (&"timeout".into(), &"deadline".into()), "{called:?}");
    assert_eq!(outcomes(lines[0]), ["deadline"]);
    let took = lines[0]["attempts"][0]["duration_ms"].as_f64().unwrap();
    assert!((190.0..500.0).contains(&took), "{took}");
    assert_eq!(lines[1]["status"], 200, "{called:?}");

    let hanging = Server::new([Step::Hang]);
    assert_eq!(call(&hanging.url(), &[], &["GET", "/x", "--timeout", "100ms"]).code, 12);
}

#[test]
fn c18_a_response_that_came_is_not_lost_to_a_later_timeout() {
    let server = Server::new([answer(503), Step::Hang]);
    let called = call(&server.url(), &["total_timeout=0.4"], &["GET", "/x"]);
    let line = called.only();
    assert_eq!((called.code, server.count()), (0, 2), "{called:?}");
    assert_eq!((&line["status"], &line["ended"]), (&503.into(), &"deadline".into()), "{line}");
    assert_eq!(outcomes(line), ["503", "deadline"]);
    assert_eq!(waits(line, "backoff").len(), 1);
}

#[test]
fn c31_deadlines_that_a_hanging_upstream_lets_pass_open_the_breaker() {
    let server = Server::new([Step::Hang]);
    let keys = ["total_timeout=0.05", "read_timeout=10", "breaker_failures=3", "retries=0"];
    let called = call(&server.url(), &keys, &["GET", "/x", "--repeat", "4"]);
    let lines = called.by_number();
    assert_eq!((called.code, server.count()), (10, 3), "{called:?}");
    assert!(lines[..3].iter().all(|line| line["error"] == "timeout"), "{called:?}");
    assert_eq!((&lines[2]["breaker"], &lines[3]["error"]), (&"open".into(), &"circuit_open".into()), "{called:?}");
}

#[test]
fn c32_a_drip_that_no_read_timeout_catches_opens_the_breaker() {
    let server = Server::new([Step::Drip { every: Duration::from_millis(30) }]);
    let keys = ["read_timeout=0.1", "total_timeout=0.3", "breaker_failures=2"];
    let called = call(&server.url(), &keys, &["GET", "/x", "--repeat", "3"]);
    let lines = called.by_number();
    assert_eq!((called.code, server.count()), (10, 2), "{called:?}");
    assert!(lines[..2].iter().all(|line| line["error"] == "timeout"), "{called:?}");
    assert_eq!(lines[2]["error"], "circuit_open", "{called:?}");
}
