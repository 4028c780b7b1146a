//! What travels with a call, and what never does (contract section 8).

use http::HeaderMap;
use steadfast::testing::Step;
use steadfast::{CallContext, ErrorKind};

use crate::harness::{World, kind, status};

/// What the request being served brought along.
fn inbound(pairs: &[(&'static str, &str)]) -> CallContext {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    CallContext::extract(&headers)
}

#[test]
fn c36_a_redirect_is_returned_and_not_followed() {
    let step = Step::status(302).header("Location", "http://evil.test/");
    let world = World::with([step], |client| client.forward_authorization(true));
    let context = inbound(&[("authorization", "Bearer t0ken")]);
    let result = world.run(world.client.get("/x").context(&context).send());
    assert_eq!(status(&result), 302);
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].uri.host(), Some("billing.test"));
}

#[test]
fn c37_only_a_bearer_and_only_where_it_is_allowed() {
    for (forward, value, expected) in [
        (true, Some("Bearer t0ken"), Some("Bearer t0ken")),
        (true, Some("bearer t0ken"), Some("bearer t0ken")),
        (true, Some("Basic dXNlcjpwYXNz"), None),
        (true, None, None),
        (false, Some("Bearer t0ken"), None),
    ] {
        let world = World::with([Step::status(200)], |client| client.forward_authorization(forward));
        let pairs: Vec<_> = value.map(|value| ("authorization", value)).into_iter().collect();
        world.run(world.client.get("/x").context(&inbound(&pairs)).send()).unwrap();
        let seen = world.upstream.seen();
        let sent = seen[0].headers.get("authorization").map(|value| value.to_str().unwrap());
        assert_eq!(sent, expected, "{forward} {value:?}");
    }
}

#[test]
fn c38_the_calls_own_headers_win_over_what_is_propagated_and_that_over_what_is_configured() {
    let world = World::with([Step::status(200)], |client| {
        client.header("X-A", "configured").header("X-Request-ID", "configured").header("X-B", "configured")
    });
    let context = inbound(&[("x-request-id", "req-1")]);
    world.run(world.client.get("/x").context(&context).header("X-A", "own").send()).unwrap();
    world.run(world.client.get("/x").context(&context).header("X-Request-ID", "own").send()).unwrap();
    let seen = world.upstream.seen();
    let all = |index: usize, name: &str| -> Vec<String> {
        seen[index].headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(all(0, "x-a"), ["own"]);
    assert_eq!(all(0, "x-b"), ["configured"]);
    assert_eq!(all(0, "x-request-id"), ["req-1"]);
    assert_eq!(all(1, "x-request-id"), ["own"]);
}

#[test]
fn c39_there_is_no_cookie_jar() {
    let world = World::new([Step::status(200).header("Set-Cookie", "sid=1"), Step::status(200)]);
    world.get().unwrap();
    world.get().unwrap();
    assert!(world.upstream.seen().iter().all(|seen| !seen.headers.contains_key("cookie")));
}

#[test]
fn c40_a_request_never_leaves_its_upstream() {
    let world = World::new([Step::status(200)]);
    for path in
        ["http://evil.test/x", "https://evil.test", "//evil.test/x", "\\\\evil.test", "/../x", "/%2e%2e/x", "/a\nb"]
    {
        let result = world.run(world.client.get(path).send());
        assert_eq!(kind(&result), ErrorKind::InvalidRequest, "{path}");
    }
    assert_eq!(world.upstream.requests(), 0);
}

#[test]
fn c8_4_the_prefix_is_kept_and_a_leading_slash_makes_no_difference() {
    let world = World::new([Step::status(200)]);
    for path in ["/x", "x", "/a%20b?q=1", "x?a=1"] {
        world.run(world.client.get(path).query(&[("b", "2 3")]).send()).unwrap();
    }
    let uris: Vec<_> = world.upstream.seen().iter().map(|seen| seen.uri.to_string()).collect();
    assert_eq!(
        uris,
        [
            "http://billing.test/api/x?b=2+3",
            "http://billing.test/api/x?b=2+3",
            "http://billing.test/api/a%20b?q=1&b=2+3",
            "http://billing.test/api/x?a=1&b=2+3",
        ]
    );
}

#[test]
fn c8_2_no_request_id_is_invented() {
    let world = World::new([Step::status(200)]);
    world.get().unwrap();
    assert!(!world.upstream.seen()[0].headers.contains_key("x-request-id"));
    let too_long = "x".repeat(129);
    world.run(world.client.get("/x").context(&inbound(&[("x-request-id", &too_long)])).send()).unwrap();
    assert!(!world.upstream.seen()[1].headers.contains_key("x-request-id"));
}

#[test]
fn a136_retries_keep_the_trace_id_and_get_a_parent_id_of_their_own() {
    let world = World::new([Step::status(503), Step::status(503), Step::status(200)]);
    let context =
        inbound(&[("traceparent", "00-12345678901234567890123456789012-1234567890123456-01"), ("tracestate", "foo=1")]);
    world.run(world.client.get("/x").context(&context).send()).unwrap();
    let seen = world.upstream.seen();
    let mut parents = Vec::new();
    for request in &seen {
        assert_eq!(request.headers.get_all("traceparent").iter().count(), 1);
        assert_eq!(request.headers["tracestate"], "foo=1");
        let value = request.headers["traceparent"].to_str().unwrap().to_owned();
        assert!(value.starts_with("00-12345678901234567890123456789012-") && value.ends_with("-01"));
        parents.push(value);
    }
    parents.push("00-12345678901234567890123456789012-1234567890123456-01".to_owned());
    parents.sort();
    parents.dedup();
    assert_eq!(parents.len(), 4);
}

#[test]
fn the_default_user_agent_gives_way_to_the_calls_own() {
    let world = World::new([Step::status(200)]);
    world.get().unwrap();
    world.run(world.client.get("/x").header("User-Agent", "mine/1").send()).unwrap();
    let seen = world.upstream.seen();
    assert!(seen[0].headers["user-agent"].to_str().unwrap().starts_with("steadfast/"));
    assert_eq!(seen[1].headers["user-agent"], "mine/1");
}

#[test]
fn bodies_bring_their_content_type() {
    let world = World::new([Step::status(200)]);
    world.run(world.client.put("/x").json(&serde_json::json!({"a": 1})).send()).unwrap();
    world.run(world.client.put("/x").form(&[("a", "1 2")]).send()).unwrap();
    world.run(world.client.put("/x").json(&1).header("Content-Type", "application/x-own").send()).unwrap();
    let seen = world.upstream.seen();
    assert_eq!(
        (seen[0].headers["content-type"].to_str().unwrap(), &seen[0].body[..]),
        ("application/json", &b"{\"a\":1}"[..])
    );
    assert_eq!(seen[1].headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(seen[1].body, "a=1+2");
    assert_eq!(seen[2].headers["content-type"], "application/x-own");
}
