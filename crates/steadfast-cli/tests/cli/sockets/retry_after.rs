//! `Retry-After` (contract 2.6).

use std::time::Duration;

use super::server::{Server, answer, answer_with};
use super::{call, outcomes, waits};

#[test]
fn c11_the_time_that_the_upstream_names_is_waited_exactly() {
    let server = Server::new([answer_with(429, "Retry-After: 2\r\n"), answer(200)]);
    let called = call(&server.url(), &[], &["GET", "/x"]);
    let line = called.only();
    assert_eq!((called.code, &line["status"]), (0, &200.into()), "{called:?}");
    assert_eq!(waits(line, "retry_after"), [2000.0]);
    assert!(called.run.stdout.contains(r#"{"ms":2000,"reason":"retry_after"}"#), "{called:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let gap = requests[1].came - requests[0].answered.unwrap();
    assert!((Duration::from_secs(2)..Duration::from_secs(3)).contains(&gap), "{gap:?}");
}

#[test]
fn c12_longer_than_is_allowed_is_not_waited_for() {
    let server = Server::new([answer_with(429, "Retry-After: 120\r\n"), answer(200)]);
    let called = call(&server.url(), &[], &["GET", "/x"]);
    let line = called.only();
    assert_eq!((called.code, server.count()), (0, 1), "{called:?}");
    assert_eq!((&line["status"], &line["ended"]), (&429.into(), &"retry_after_too_long".into()), "{line}");
    assert!(waits(line, "none").is_empty());
}

#[test]
fn c14_what_is_no_retry_after_is_ignored_whatever_bytes_it_holds() {
    let values: [&[u8]; 6] = [b"soon", b"1.5", b"-1", b"", b"\xb2", b"Wed, 21 Oct 2065 07:28:00 +00000000000000000001"];
    for value in values {
        let header = [b"Retry-After: ", value, b"\r\n"].concat();
        let server = Server::new([answer_with(503, header), answer(200)]);
        let called = call(&server.url(), &[], &["GET", "/x"]);
        let line = called.only();
        assert_eq!((called.code, server.count()), (0, 2), "{value:?}: {called:?}");
        assert_eq!(outcomes(line), ["503", "200"]);
        let waits = waits(line, "backoff");
        assert!(waits.len() == 1 && waits[0] <= 100.0, "{value:?}: {waits:?}");
    }
}

#[test]
fn c15_longer_than_the_deadline_leaves_is_not_waited_for() {
    let server = Server::new([answer_with(503, "Retry-After: 5\r\n"), answer(200)]);
    let called = call(&server.url(), &[], &["GET", "/x", "--timeout", "2s"]);
    let line = called.only();
    assert_eq!((called.code, server.count()), (0, 1), "{called:?}");
    assert_eq!((&line["status"], &line["ended"]), (&503.into(), &"retry_after_too_long".into()), "{line}");
    assert!(line["attempts"][0]["duration_ms"].as_f64().unwrap() < 1000.0, "{line}");
}
