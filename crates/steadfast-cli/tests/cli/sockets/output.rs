//! The forms of the output: the exact line, the summary, the table; rates and interrupts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::server::{Server, answer, answer_after, answer_with, refusing_url};
use super::{call, called};
use crate::support::{command, steadfast};

/// The line with `#` for every number that depends on the machine, so that the rest can be compared.
fn without_times(line: &str) -> String {
    let keys = ["_ms\":", "\"p50\":", "\"p90\":", "\"p99\":", "\"max\":"];
    let (mut out, mut rest) = (String::new(), line);
    while let Some(end) = keys.iter().filter_map(|key| rest.find(key).map(|at| at + key.len())).min() {
        out.push_str(&rest[..end]);
        let after = rest[end..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if after.len() < rest.len() - end {
            out.push('#');
        }
        rest = after;
    }
    out + rest
}

#[test]
fn a_line_has_exactly_these_fields_in_this_order() {
    let server = Server::new([answer_with(503, "Retry-After: 1\r\n"), answer(200)]);
    let run = steadfast(&["call", "--output", "json", "--url", &server.url(), "u", "GET", "/x"]);
    let lines: Vec<_> = run.stdout.lines().map(without_times).collect();
    assert_eq!(
        lines,
        [
            concat!(
                r#"{"call":1,"upstream":"u","method":"GET","status":200,"error":null,"attempts":["#,
                r#"{"attempt":1,"start_ms":#,"duration_ms":#,"outcome":"503","sent":"yes"},"#,
                r#"{"attempt":2,"start_ms":#,"duration_ms":#,"outcome":"200","sent":"yes"}],"#,
                r#""waits":[{"ms":1000,"reason":"retry_after"}],"ended":"response","retry_after_ms":null,"breaker":"closed"}"#,
            ),
            concat!(
                r#"{"summary":true,"calls":1,"requests":2,"retries":1,"outcomes":{"200":1},"#,
                r#""latency_ms":{"p50":#,"p90":#,"p99":#,"max":#}}"#,
            ),
        ]
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn text_shows_a_row_per_call_or_what_many_calls_came_to() {
    let server = Server::new([answer(503), answer(200)]);
    let run = steadfast(&["call", "--url", &server.url(), "GET", "/x", "--body"]);
    assert_eq!(run.code, 0, "{run:?}");
    for text in ["call", "503, 200", "backoff", "response", "closed", "1 call, 2 requests (1 retry): 1 × 200", "\nok\n"]
    {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    let run = steadfast(&["call", "--url", &server.url(), "GET", "/x", "--repeat", "40", "--concurrency", "4"]);
    assert!(run.stdout.contains("40 calls, 40 requests (0 retries): 40 × 200"), "{}", run.stdout);
    assert!(run.stdout.lines().count() < 12, "{}", run.stdout);
}

#[test]
fn a_rate_spaces_the_starts() {
    let server = Server::new([answer(200)]);
    let began = Instant::now();
    let called = call(&server.url(), &[], &["GET", "/x", "--repeat", "5", "--rate", "20"]);
    assert_eq!((called.code, server.count()), (0, 5), "{called:?}");
    // Four intervals at the least; what the machine adds only lengthens it.
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
}

#[test]
fn an_unreachable_call_exits_with_its_code_after_calls_that_worked() {
    let server = Server::new([answer(200), answer(200), answer_after(200, 5_000)]);
    let called = call(&server.url(), &["attempt_timeout=100ms", "retries=0"], &["GET", "/x", "--repeat", "3"]);
    assert_eq!(called.code, 13, "{called:?}");
    assert_eq!(called.summary["outcomes"], serde_json::json!({ "200": 2, "unreachable": 1 }));
}

#[test]
fn an_interrupt_ends_the_run_with_the_summary_so_far() {
    let server = Server::new([answer(200), answer_after(200, 60_000)]);
    let url = server.url();
    let args = ["call", "--output", "json", "--url", &url, "GET", "/x", "--repeat", "9"];
    let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with(r#"{"call":1,"#));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let summary: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&summary["summary"], &summary["calls"]), (&true.into(), &1.into()), "{summary}");
    assert!(lines.next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let server = Server::new([answer(200)]);
    let url = server.url();
    let args = ["call", "--output", "json", "--url", &url, "GET", "/x", "--repeat", "1000000"];
    let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(1), &b""[..]), "{output:?}");
}

#[test]
fn the_only_thing_on_standard_output_is_json_whatever_goes_wrong() {
    let server = Server::new([answer(200)]);
    let run = steadfast(&["call", "--output", "json", "--url", &server.url(), "GET", "http://elsewhere/x"]);
    assert_eq!(called(run).errors("invalid_request"), 1);
}

/// 7.2: what lies behind an error is its source; whoever calls from a terminal is told, once.
#[test]
fn c7_2_an_error_is_told_with_its_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let refused = refusing_url();
    let causes =
        [(&url, "(tls): the upstream does not speak TLS; is it http?\n"), (&refused, "(connect): Connection refused")];
    for (url, cause) in causes {
        for form in [&["--output", "json"][..], &["--output", "text"], &["--stream"]] {
            let run = steadfast(&[&["call", "--set", "retries=0", "--url", url, "GET", "/x"], form].concat());
            assert_eq!(run.code, 13, "{run:?}");
            assert_eq!(run.stderr.matches(cause).count(), 1, "{run:?}");
            assert_eq!(run.stderr.matches("): ").count(), 1, "{run:?}");
        }
    }
}
