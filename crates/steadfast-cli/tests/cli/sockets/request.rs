//! What goes out, and where to (contract 8).

use super::server::{Server, answer, answer_with};
use super::{call, called};
use crate::support::{File, steadfast, steadfast_reading};

const SECRET: &str = "Bearer abc-secret-def";

#[test]
fn c36_a_redirect_is_returned_and_the_token_goes_nowhere_else() {
    let other = Server::new([answer(200)]);
    let server = Server::new([answer_with(302, format!("Location: {}/elsewhere\r\n", other.url()))]);
    let config = File::new(
        "c36.toml",
        &format!("[upstreams.billing]\nbase_url = \"{}\"\nforward_authorization = true\n", server.url()),
    );
    let header = format!("Authorization: {SECRET}");
    let args = ["call", "--output", "json", "--config", config.path(), "billing", "GET", "/x", "-H", &header];
    let called = called(steadfast(&args));
    assert_eq!((called.code, server.count(), other.count()), (0, 1, 0), "{called:?}");
    assert_eq!(called.only()["status"], 302);
    assert_eq!(server.requests()[0].header("authorization"), Some(SECRET));
    assert!(!called.run.stdout.contains("secret") && !called.run.stderr.contains("secret"), "{called:?}");
}

#[test]
fn c39_a_cookie_is_not_kept_for_the_next_call() {
    let server = Server::new([answer_with(200, "Set-Cookie: session=ann; Path=/\r\n"), answer(200)]);
    let called = call(&server.url(), &[], &["GET", "/x", "--repeat", "2"]);
    assert_eq!((called.code, server.count()), (0, 2), "{called:?}");
    assert_eq!(server.requests()[1].header("cookie"), None);
}

#[test]
fn c40_a_request_cannot_leave_its_upstream() {
    let (server, other) = (Server::new([answer(200)]), Server::new([answer(200)]));
    let absolute = format!("{}/x", other.url());
    let header = format!("Authorization: {SECRET}");
    for path in [absolute.as_str(), &absolute.replace("http:", ""), "/../../x"] {
        let called = call(&format!("{}/api", server.url()), &[], &["GET", path, "-H", &header]);
        assert_eq!((called.code, server.count(), other.count()), (64, 0, 0), "{path}: {called:?}");
        let line = called.only();
        assert_eq!((&line["error"], &line["ended"]), (&"invalid_request".into(), &"invalid_request".into()), "{line}");
        assert_eq!(line["attempts"].as_array().map(Vec::len), Some(0));
        assert!(!called.run.stderr.contains("secret"), "{called:?}");
    }
}

#[test]
fn c41_a_configuration_with_a_problem_calls_nothing() {
    let faults = [
        ("base_url = \"http://127.0.0.1:9\"\nretrys = 1", "upstreams.billing.retrys"),
        ("base_url = \"http://127.0.0.1:9\"\ntotal_timeout = 0", "upstreams.billing.total_timeout"),
        ("base_url = \"http://127.0.0.1:9\"\nretries = -1", "upstreams.billing.retries"),
        ("retries = 1", "upstreams.billing.base_url"),
        ("base_url = \"http://127.0.0.1:9\"\nread_timeout = inf", "upstreams.billing.read_timeout"),
        ("base_url = \"ftp://127.0.0.1:9\"", "upstreams.billing.base_url"),
    ];
    for (index, (text, path)) in faults.into_iter().enumerate() {
        let config = File::new(&format!("c41-{index}.toml"), &format!("[upstreams.billing]\n{text}\n"));
        let run = steadfast(&["call", "--output", "json", "--config", config.path(), "billing", "GET", "/x"]);
        assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
        assert!(run.stderr.contains(path) && run.stderr.contains(config.path()), "{run:?}");
    }
}

#[test]
fn the_request_is_what_was_typed() {
    let server = Server::new([answer(200)]);
    let url = format!("{}/api", server.url());
    let base = ["call", "--output", "json", "--url", &url];
    let args = ["put", "items/7?a=1&b=%20", "-H", "X-One:1", "-H", "x-two:  two ", "-d", "@-"];
    let run = steadfast_reading(&[&base[..], &args[..]].concat(), "from standard input\n");
    let request = &server.requests()[0];
    assert_eq!(called(run).only()["method"], "PUT");
    assert!(request.head.starts_with("PUT /api/items/7?a=1&b=%20 HTTP/1.1\r\n"), "{request:?}");
    assert_eq!((request.header("x-one"), request.header("x-two")), (Some("1"), Some("two")));
    assert_eq!(request.body, b"from standard input\n");
    assert_eq!(request.header("content-type"), None);

    let file = File::new("body.json", "{\"a\": [1, 2]}");
    let data = format!("@{}", file.path());
    call(&url, &[], &["POST", "/x", "-d", &data, "--json-body", "-H", "content-type: application/merge-patch+json"]);
    let request = &server.requests()[1];
    assert_eq!(request.body, b"{\"a\": [1, 2]}");
    assert_eq!(request.header("content-type"), Some("application/merge-patch+json"));
}
