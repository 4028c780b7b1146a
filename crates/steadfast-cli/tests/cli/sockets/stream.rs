//! `call --stream`: the body on standard output, byte for byte, and nothing else.

use std::time::Duration;

use super::server::{Server, Step, answer, refusing_url};
use crate::support::{Run, steadfast};

fn stream(url: &str, args: &[&str]) -> Run {
    let mut all = vec!["call", "--url", url, "--stream"];
    all.extend(args);
    steadfast(&all)
}

#[test]
fn c7_6_the_body_alone_is_on_standard_output() {
    let server = Server::new([answer(503), answer(200)]);
    let run = stream(&server.url(), &["GET", "/x"]);
    assert_eq!((run.code, run.stdout.as_str(), server.count()), (0, "ok", 2), "{run:?}");
    assert!(run.stderr.contains("200 OK, 2 bytes") && run.stderr.contains("attempt 1: 503"), "{run:?}");
}

#[test]
fn c7_6_the_deadline_ends_a_body_without_an_end() {
    let server = Server::new([Step::Drip { every: Duration::from_millis(20) }]);
    let run = stream(&server.url(), &["GET", "/x", "--timeout", "400ms"]);
    assert_eq!(run.code, 12, "{run:?}");
    assert!(run.stdout.len() > 2 && run.stdout.bytes().all(|byte| byte == b'.'), "{run:?}");
    assert!(run.stderr.contains("error: upstream 'url' did not answer before the deadline"), "{run:?}");
}

#[test]
fn the_exit_status_is_that_of_a_call() {
    let server = Server::new([answer(500)]);
    let run = stream(&server.url(), &["GET", "/x", "--fail"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "ok"), "{run:?}");
    let run = stream(&refusing_url(), &["GET", "/x", "--set", "retries=0"]);
    assert_eq!((run.code, run.stdout.as_str()), (13, ""), "{run:?}");
    assert!(run.stderr.contains("(connect)"), "{run:?}");
}

#[test]
fn one_body_at_a_time_and_nothing_beside_it() {
    for other in [&["--repeat", "2"][..], &["--output", "json"], &["--body"], &["--rate", "5"], &["--concurrency", "2"]]
    {
        let run = stream("http://127.0.0.1:1", &[&["GET", "/x"], other].concat());
        assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{run:?}");
        assert!(run.stderr.contains("--stream") && run.stderr.contains(other[0]), "{run:?}");
    }
}
