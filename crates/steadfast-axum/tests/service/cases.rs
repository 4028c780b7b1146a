//! The seed's own cases C36-C43, through the service.

use axum::body::Body;
use axum::http::Response;
use serde_json::json;

use crate::service::start;
use crate::upstream::{Upstream, status};

fn billing(upstream: &Upstream, keys: &str) -> String {
    format!("[upstreams.billing]\nbase_url = '{}'\nproxy = false\n{keys}\n", upstream.url)
}

#[tokio::test]
async fn c36_a_redirect_is_passed_on_and_the_token_stays() {
    let other = Upstream::start(|_| status(200)).await;
    let location = other.url.clone();
    let upstream = Upstream::start(move |_| {
        Response::builder().status(302).header("location", &location).body(Body::empty()).unwrap()
    });
    let upstream = upstream.await;
    let service = start(&billing(&upstream, "forward_authorization = true"), &[]).await.unwrap();
    let answer = service.caller.get("/pass/x", &[("authorization", "Bearer t0ken")]).await;
    assert_eq!((answer.status, upstream.seen().len(), other.seen().len()), (302, 1, 0));
    assert_eq!(upstream.seen()[0].lines("authorization"), ["Bearer t0ken"]);
}

#[tokio::test]
async fn c37_the_token_goes_where_it_may_and_only_if_it_is_one() {
    for (forward, inbound, expected) in [
        (true, Some("Bearer t0ken"), Some("Bearer t0ken")),
        (true, Some("bearer t0ken"), Some("bearer t0ken")),
        (true, Some("Basic dXNlcjpwYXNz"), None),
        (true, None, None),
        (false, Some("Bearer t0ken"), None),
    ] {
        let upstream = Upstream::start(|_| status(200)).await;
        let keys = format!("forward_authorization = {forward}");
        let service = start(&billing(&upstream, &keys), &[]).await.unwrap();
        let headers: Vec<_> = inbound.map(|value| ("authorization", value)).into_iter().collect();
        assert_eq!(service.caller.get("/pass/x", &headers).await.status, 200);
        let seen = upstream.seen();
        assert_eq!(seen[0].lines("authorization"), expected.into_iter().collect::<Vec<_>>(), "{forward} {inbound:?}");
    }
}

#[tokio::test]
async fn c38_own_headers_win_over_inherited_ones_and_those_over_configured_ones() {
    let upstream = Upstream::start(|_| status(200)).await;
    let keys = "headers = { X-A = 'configured', X-B = 'configured', X-Request-ID = 'configured' }";
    let service = start(&billing(&upstream, keys), &[]).await.unwrap();
    let inherited = service.caller.get("/pass/x", &[("x-request-id", "r-1")]).await;
    let made = service.caller.get("/pass/x", &[]).await;
    let own = service.caller.get("/own", &[("x-request-id", "r-1")]).await;
    let seen = upstream.seen();
    let three = |index: usize| ["x-a", "x-b", "x-request-id"].map(|name| seen[index].lines(name).join("|"));
    let made = made.header("x-request-id").unwrap();
    assert_eq!(three(0), ["configured", "configured", "r-1"]);
    assert_eq!(three(1), ["configured", "configured", made], "the edge's own id is inherited, too");
    assert_eq!(three(2), ["own", "configured", "own"]);
    assert_eq!((inherited.header("x-request-id"), own.header("x-request-id")), (Some("r-1"), Some("r-1")));
}

#[tokio::test]
async fn c39_no_cookie_goes_to_another_user() {
    let upstream =
        Upstream::start(|_| Response::builder().header("set-cookie", "sid=ann").body(Body::empty()).unwrap()).await;
    let service = start(&billing(&upstream, ""), &[]).await.unwrap();
    service.caller.get("/pass/ann", &[("cookie", "session=ann")]).await;
    service.caller.get("/pass/bob", &[]).await;
    let seen = upstream.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| seen.lines("cookie").is_empty()));
}

/// And B17: what is answered names neither the path nor the reason.
#[tokio::test]
async fn c40_a_call_never_leaves_its_upstream() {
    let other = Upstream::start(|_| status(200)).await;
    let upstream = Upstream::start(|_| status(200)).await;
    let service = start(&billing(&upstream, "forward_authorization = true"), &[]).await.unwrap();
    let host = other.url.trim_start_matches("http:").to_owned();
    for target in [other.url.as_str(), &host, "/../x", "/%2e%2e/x"] {
        let answer = service.caller.get("/elsewhere", &[("target", target), ("authorization", "Bearer t0ken")]).await;
        assert_eq!(answer.status, 500, "{target}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let id = answer.header("x-request-id").unwrap();
        let expected = json!({
            "type": "about:blank", "title": "Internal Server Error", "status": 500, "reason": "invalid_request",
            "detail": "the request to upstream 'billing' could not be made", "upstream": "billing",
            "request_id": id, "attempts": 0,
        });
        assert_eq!(answer.json(), expected, "{target}");
    }
    assert_eq!((upstream.seen().len(), other.seen().len()), (0, 0));
}

#[tokio::test]
async fn c41_a_mistake_in_the_configuration_keeps_the_service_from_starting() {
    for (keys, place) in [
        ("base_url = 'http://b'\nretrys = 1", "retrys"),
        ("base_url = 'http://b'\ntotal_timeout = 0", "total_timeout"),
        ("base_url = 'http://b'\nretries = -1", "retries"),
        ("base_url = 'http://b'\nread_timeout = inf", "read_timeout"),
        ("base_url = 'ftp://b'", "base_url"),
        ("retries = 1", "base_url"),
    ] {
        let Err(problems) = start(&format!("[upstreams.billing]\n{keys}\n"), &[]).await else {
            panic!("it has started with {keys}")
        };
        let text = problems.to_string();
        assert!(text.contains("app.toml") && text.contains("upstreams.billing") && text.contains(place), "{text}");
    }
}

#[tokio::test]
async fn c42_the_environment_says_where_and_the_file_how() {
    let (file, env) = (Upstream::start(|_| status(503)).await, Upstream::start(|_| status(503)).await);
    let variables =
        [("STEADFAST_UPSTREAMS__BILLING__BASE_URL", env.url.as_str()), ("STEADFAST_UPSTREAMS__BILLING__RETRIES", "9")];
    let service = start(&billing(&file, "retries = 1\nbackoff_base = 0.001"), &variables).await.unwrap();
    assert_eq!(service.caller.get("/pass/x", &[]).await.status, 503);
    assert_eq!((file.seen().len(), env.seen().len()), (0, 2));
}

/// And 7.3: what a caller is told meanwhile.
#[tokio::test]
async fn c43_an_open_breaker_degrades_and_nothing_is_sent() {
    let upstream = Upstream::start(|_| status(503)).await;
    let keys = "retries = 0\nbreaker_failures = 1\nbreaker_cool_down = 1000";
    let service = start(&billing(&upstream, keys), &[]).await.unwrap();
    let ready = service.caller.get("/ready", &[]).await;
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("ok")));
    assert_eq!(service.caller.get("/pass/x", &[]).await.status, 503);
    let ready = service.caller.get("/ready", &[]).await;
    let check = &ready.json()["checks"]["http"];
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("degraded")));
    assert_eq!((&check["status"], &check["critical"]), (&json!("fail"), &json!(false)));
    assert_eq!(check["meta"]["breakers"]["billing"]["state"], "open");
    let wait = check["meta"]["breakers"]["billing"]["retry_after"].as_f64().unwrap();
    assert!((900.0..=1_000.0).contains(&wait), "{wait}");
    let health = service.caller.get("/health", &[]).await;
    assert_eq!((health.status, health.json()), (200, json!({ "status": "ok" })));
    let refused = service.caller.get("/pass/s3cret?key=s3cret", &[("x-request-id", "r-7")]).await;
    let told: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((900..=1_000).contains(&told));
    let mut problem = refused.json();
    assert_eq!(problem["retry_after"].as_f64().unwrap().ceil() as u64, told);
    problem["retry_after"] = json!(0);
    let expected = json!({
        "type": "about:blank", "title": "Upstream Circuit Open", "status": 503, "reason": "circuit_open",
        "detail": "circuit breaker 'billing' is open", "upstream": "billing",
        "request_id": "r-7", "attempts": 0, "retry_after": 0,
    });
    assert_eq!((refused.status, problem), (503, expected));
    assert_eq!(upstream.seen().len(), 1);
    assert_eq!(service.clients.snapshot().len(), 1);
}

/// 11.5: over the wire.
#[tokio::test]
async fn c11_5_an_estimate_says_that_it_is_one() {
    // Bound and let go: nobody listens there.
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let toml = format!("[upstreams.billing]\nbase_url = 'http://{nobody}'\nproxy = false\nretries = 0\n");
    let service = start(&toml, &[]).await.unwrap();
    let answer = service.caller.get("/estimate", &[]).await;
    assert_eq!((answer.status, &*answer.body), (200, &b"about 10"[..]));
    assert_eq!(answer.header("x-degraded"), Some("billing"));
}

/// 1.1: the caller's deadline bounds the calls that are made for him.
#[tokio::test]
async fn c1_1_a_request_without_time_makes_no_calls() {
    let upstream = Upstream::start(|_| status(200)).await;
    let service = start(&billing(&upstream, ""), &[]).await.unwrap();
    let answer = service.caller.get("/pass/x", &[("x-time-left-ms", "0")]).await;
    assert_eq!((answer.status, answer.json()["reason"].as_str()), (503, Some("timeout")));
    assert_eq!(upstream.seen().len(), 0);
    assert_eq!(service.caller.get("/pass/x", &[("x-time-left-ms", "15000")]).await.status, 200);
}
