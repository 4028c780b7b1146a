//! What leaked, and what was passed on that should not have been (A130, A133, A135, A139, A141).

use std::error::Error as _;

use http::HeaderMap;
use steadfast::testing::Step;
use steadfast::{CallContext, ErrorKind, Fault, Sent};

use crate::harness::{World, kind, status};

/// The error with every cause behind it, the report, and every event, as text.
fn everything(world: &World, error: &steadfast::Error) -> String {
    let mut shown = format!("{error} {error:?} {} {:?}", error.report(), world.client);
    let mut cause = error.source();
    while let Some(error) = cause {
        shown += &format!("{error} {error:?}");
        cause = error.source();
    }
    shown += &format!("{:?} {:?}", world.events.lock().unwrap(), world.client.snapshot());
    shown + &String::from_utf8(error.to_problem().to_json()).unwrap()
}

#[test]
fn a130_a131_a133_no_text_of_ours_shows_a_secret() {
    for step in [Step::refuse(), Step::reset(), Step::fail(Fault::Certificate, Sent::No), Step::hang()] {
        let world = World::with([step], |client| client.header("X-Api-Key", "C0NFIGURED"));
        let mut served = HeaderMap::new();
        served.insert("authorization", "Bearer B3ARER".parse().unwrap());
        let request = world
            .client
            .post("/bot123:T0KEN/x?apikey=S3CR3T")
            .query(&[("sig", "QU3RY")])
            .form(&[("password", "hunter2")])
            .idempotency_key("K3Y")
            .bearer_auth("0WN")
            .context(&CallContext::extract(&served));
        let mut shown = format!("{request:?}");
        let error = world.run(request.send()).unwrap_err();
        shown += &everything(&world, &error);
        for secret in ["C0NFIGURED", "B3ARER", "T0KEN", "S3CR3T", "QU3RY", "hunter2", "K3Y", "0WN", "billing.test"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

/// A mistake in the request is told without what was in it.
#[test]
fn a130_a124_an_invalid_request_repeats_nothing_of_it() {
    let world = World::new([Step::status(200)]);
    for request in [
        world.client.get("https://evil.test/S3CR3T"),
        world.client.get("//user:S3CR3T@evil.test/"),
        world.client.get("/../S3CR3T"),
        world.client.get("/x").header("Authorization", "S3CR3T\n"),
        world.client.get("/x").header("S3CR3T ", "x"),
        world.client.get("/x").idempotency_key("S3CR3T\0"),
    ] {
        let error = world.run(request.send()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let shown = everything(&world, &error);
        assert!(!shown.contains("S3CR3T"), "{shown}");
    }
}

#[test]
fn a135_each_attempt_carries_each_header_once() {
    let world = World::new([Step::status(503), Step::status(503), Step::status(200)]);
    let mut served = HeaderMap::new();
    served.insert("x-request-id", "r-1".parse().unwrap());
    served.insert("traceparent", "00-12345678901234567890123456789012-1234567890123456-01".parse().unwrap());
    let request = world.client.put("/x").json(&1).idempotency_key("k").header("X-Own", "1");
    assert_eq!(status(&world.run(request.context(&CallContext::extract(&served)).send())), 200);
    let seen = world.upstream.seen();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        for name in ["traceparent", "x-request-id", "idempotency-key", "x-own", "content-type", "user-agent"] {
            assert_eq!(request.headers.get_all(name).iter().count(), 1, "{name}");
        }
    }
}

/// RFC 9110 section 5.5
#[test]
fn a139_no_line_can_be_smuggled_into_a_header() {
    let world = World::new([Step::status(200)]);
    for value in ["a\r\nX-Evil: 1", "a\rb", "a\nb", "a\0b", "\r\n"] {
        for request in [
            world.client.get("/x").header("X-Own", value),
            world.client.get("/x").bearer_auth(value),
            world.client.get("/x").idempotency_key(value),
            world.client.get(&format!("/{value}")),
        ] {
            assert_eq!(kind(&world.run(request.send())), ErrorKind::InvalidRequest, "{value:?}");
        }
        let client = steadfast::ServiceClient::builder("http://billing.test").header("X-Own", value);
        assert!(client.build().is_err(), "{value:?}");
        // What comes in with such an id goes on without one.
        let context = CallContext::new().with_request_id(value);
        assert_eq!(context.request_id(), None, "{value:?}");
    }
    assert_eq!(world.upstream.requests(), 0);
}

/// RFC 9110 section 7.6.1: a caller that copies all headers of the request it serves.
#[test]
fn a141_what_belongs_to_one_connection_is_not_passed_on() {
    let world = World::new([Step::status(200)]);
    let mut copied = HeaderMap::new();
    for (name, value) in [
        ("connection", "keep-alive, X-Foo"),
        ("x-foo", "1"),
        ("te", "trailers"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("proxy-authorization", "Basic eDp5"),
        ("x-bar", "2"),
    ] {
        copied.append(name, value.parse().unwrap());
    }
    let mut passed_on = copied.clone();
    world.run(world.client.get("/x").headers(copied).send()).unwrap();
    let seen = &world.upstream.seen()[0].headers;
    passed_on.remove("x-bar");
    for name in passed_on.keys() {
        assert!(!seen.contains_key(name), "{name}");
    }
    assert_eq!(seen["x-bar"], "2");
}
