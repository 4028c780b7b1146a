//! The circuit breaker (contract 4).

use super::call;
use super::server::{Server, answer};

#[test]
fn c22_a_streak_opens_the_breaker_and_nothing_more_is_sent() {
    let server = Server::new([answer(503)]);
    let called = call(&server.url(), &["breaker_failures=3", "retries=0"], &["u", "GET", "/x", "--repeat", "4"]);
    let lines = called.by_number();
    assert_eq!((called.code, server.count()), (10, 3), "{called:?}");
    assert!(lines[..3].iter().all(|line| line["status"] == 503), "{called:?}");
    assert_eq!((&lines[1]["breaker"], &lines[2]["breaker"]), (&"closed".into(), &"open".into()), "{called:?}");
    let refused = lines[3];
    assert_eq!((&refused["error"], &refused["ended"]), (&"circuit_open".into(), &"circuit_open".into()));
    assert_eq!(refused["attempts"].as_array().map(Vec::len), Some(0));
    let left = refused["retry_after_ms"].as_u64().unwrap();
    assert!((14_000..=15_000).contains(&left), "{refused}");
    assert!(called.run.stderr.contains("circuit breaker 'u' is open"), "{called:?}");
}

#[test]
fn c23_a_success_ends_the_streak() {
    let script = [503, 503, 200, 503, 503, 200].map(answer);
    let server = Server::new(script);
    let called = call(&server.url(), &["breaker_failures=3", "retries=0"], &["GET", "/x", "--repeat", "6"]);
    assert_eq!((called.code, server.count()), (0, 6), "{called:?}");
    assert!(called.calls.iter().all(|line| line["breaker"] == "closed"), "{called:?}");
}

#[test]
fn c28_answers_that_prove_the_upstream_is_up_leave_the_breaker_closed() {
    for status in [500, 429, 404] {
        let server = Server::new([answer(status)]);
        let called = call(&server.url(), &["breaker_failures=3", "retries=0"], &["GET", "/x", "--repeat", "10"]);
        assert_eq!((called.code, server.count(), called.statuses(status)), (0, 10, 10), "{called:?}");
        assert!(called.calls.iter().all(|line| line["breaker"] == "closed"), "{called:?}");
    }
}

#[test]
fn c29_half_of_ten_failing_opens_the_breaker_at_the_tenth() {
    let script: Vec<_> = (0..10).map(|n| answer(if n % 2 == 0 { 503 } else { 200 })).collect();
    let server = Server::new(script);
    let keys = ["breaker_minimum_calls=10", "breaker_failure_rate=0.5", "breaker_failures=100", "retries=0"];
    let called = call(&server.url(), &keys, &["GET", "/x", "--repeat", "10"]);
    let lines = called.by_number();
    assert_eq!((called.code, server.count()), (0, 10), "{called:?}");
    assert_eq!((&lines[8]["breaker"], &lines[9]["breaker"]), (&"closed".into(), &"open".into()), "{called:?}");
}
