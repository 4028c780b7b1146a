//! A wrong expectation fails, with a difference that says what was expected, what was seen, and what happened around it.

use crate::{differs, play};

const BILLING: &str = r#"
[upstreams.billing]
base_url = "http://billing.test"
backoff_base = "100ms"
jitter = "none"
[[script.billing]]
status = 503
[[script.billing]]
status = 200
after = "20ms"
body = "paid"
"#;

/// As it is printed.
#[test]
fn a_wrong_expectation_shows_the_time_line() {
    let outcome = play(&format!(
        "{BILLING}
[[step]]
advance = \"1s\"
[[step]]
look = \"billing\"
[[step]]
call = \"billing\"
path = \"/invoices/7?token=s3cret\"
[step.expect]
result = 201
requests = 3
waits = [{{ backoff = \"0s..50ms\" }}]
[[step]]
look = \"billing\"
expect = {{ breaker = \"open\" }}
"
    ));
    assert!(!outcome.passed());
    insta::assert_snapshot!(outcome.to_string());
}

/// Every key of `expect` can fail.
#[test]
fn each_expectation_can_fail() {
    for (expect, expected, seen) in [
        ("result = \"timeout\"", "timeout", "200"),
        ("results = { 200 = 2 }", "200: 2", "200: 1"),
        ("results = { 503 = \"0..\" }", "503: 0..", "200: 1"),
        ("requests = 3", "3", "2"),
        ("requests = \"..1\"", "0..1", "2"),
        ("attempts = 1", "1", "2"),
        ("outcomes = [\"200\"]", "200", "503, 200"),
        ("waits = []", "none", "backoff 100ms"),
        ("waits = [{ retry_after = \"100ms\" }]", "retry_after 100ms", "backoff 100ms"),
        ("ended = \"deadline\"", "deadline", "response"),
        ("retry_after = \"1s\"", "1s", "none"),
        ("took = \"119ms\"", "119ms", "120ms"),
        ("message = \"x\"", "\"x\"", "none"),
        ("body = \"p*x\"", "\"p*x\"", "\"paid\""),
        ("degraded = true", "true", "false"),
        ("breaker = \"half_open\"", "half_open", "closed"),
        ("in_flight = 1", "1", "0"),
        ("ready = \"degraded\"", "degraded", "ok"),
        ("ready_detail = \"x\"", "\"x\"", "\"\""),
    ] {
        let found = differs(&format!("{BILLING}[[step]]\ncall = \"billing\"\nexpect = {{ {expect} }}\n"));
        let key = expect.split(' ').next().unwrap();
        assert_eq!(found, [[key, expected, seen].map(str::to_owned)], "{expect}");
    }
}

#[test]
fn each_expectation_of_a_request_can_fail() {
    for (expect, what, expected, seen) in [
        ("method = \"PUT\"", "seen.method", "PUT", "POST"),
        ("path = \"/x*\"", "seen.path", "/x*", "/?…"),
        ("body = \"x\"", "seen.body", "\"x\"", "\"abc\""),
        ("headers = { x-a = \"2\" }", "seen.headers.x-a", "2", "1"),
        ("headers = { x-b = \"*\" }", "seen.headers.x-b", "*", "none"),
        ("no_headers = [\"X-A\"]", "seen.no_headers", "no x-a", "a x-a"),
    ] {
        let call = "call = \"billing\"\nmethod = \"POST\"\nbody = \"abc\"\npath = \"/?a=1\"\nheaders = { X-A = \"1\" }";
        let found = differs(&format!("{BILLING}[[step]]\n{call}\nexpect = {{ seen = {{ {expect} }} }}\n"));
        assert_eq!(found, [[what, expected, seen].map(str::to_owned)], "{expect}");
    }
}

/// Of several calls the first that differs is told, and how many others do.
#[test]
fn of_many_calls_the_first_is_told() {
    let found = differs(&format!("{BILLING}[[step]]\ncall = \"billing\"\ntimes = 4\nexpect = {{ attempts = 2 }}\n"));
    assert_eq!(found, [["attempts of call 2", "2", "1 (and 2 calls more)"].map(str::to_owned)]);
}

/// A long time line is cut, and says so.
#[test]
fn a_long_time_line_is_cut() {
    let outcome = play(&format!("{BILLING}[[step]]\ncall = \"billing\"\ntimes = 2000\nexpect = {{ result = 201 }}\n"));
    let text = outcome.to_string();
    assert!(text.lines().count() < 100 && text.contains("… 59"), "{text}");
    assert!(outcome.moments.len() <= 5_000 && outcome.moments_left_out > 0);
}

/// What is expected and what was sent may be secrets of the service that is tested.
#[test]
fn neither_a_query_nor_a_token_is_shown() {
    let found = crate::differs(
        r#"
[upstreams.billing]
base_url = "http://billing.test"
forward_authorization = true
[[script.billing]]
status = 200
[[step]]
call = "billing"
path = "/x?token=s3cret"
inbound = { headers = { Authorization = "Bearer s3cret" } }
expect = { seen = { path = "/y?token=hidden", headers = { Authorization = "Bearer hidden" } } }
"#,
    );
    let text = format!("{found:?}");
    assert_eq!(found.len(), 2, "{text}");
    assert!(text.contains("/x?…") && text.contains("another value"), "{text}");
    assert!(!text.contains("s3cret") && !text.contains("hidden"), "{text}");
}
