//! What the layer takes from a request, and what it tells the response.

use std::future::{pending, ready};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_util::future::join_all;
use http::{HeaderName, Request};
use steadfast::testing::VirtualClock;
use steadfast::{CallContext, Clock, Guard, context};
use steadfast_axum::ContextLayer;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::harness::{Answer, Body, answer, ms, request, secs, text};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const X_TIME_LEFT: HeaderName = HeaderName::from_static("x-time-left-ms");

/// What a service behind the layer finds as its context; and the response.
fn seen(layer: &ContextLayer, headers: &[(&str, &str)]) -> (CallContext, http::Response<Body>) {
    let clock = VirtualClock::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    let inner = service_fn(move |request: Request<Body>| {
        let sender = sender.clone();
        async move {
            let here = context::current().unwrap();
            let id = here.request_id().unwrap();
            assert_eq!(request.headers().get_all("x-request-id").iter().collect::<Vec<_>>(), [id]);
            assert_eq!(request.extensions().get::<CallContext>().unwrap().request_id(), Some(id));
            sender.send(here).unwrap();
            answer("")
        }
    });
    let layer = layer.clone().clock(clock.clone());
    let response = clock.run(layer.layer(inner).oneshot(request(headers))).unwrap().unwrap();
    (receiver.recv().unwrap(), response)
}

#[test]
fn c8_2_a_sane_request_id_is_kept_and_another_is_made() {
    let layer = ContextLayer::new();
    let (here, response) = seen(&layer, &[("x-request-id", "r-42")]);
    assert_eq!(here.request_id(), Some("r-42"));
    assert_eq!(response.headers()["x-request-id"], "r-42");
    let (here, _) = seen(&layer, &[("x-request-id", "first"), ("x-request-id", "second")]);
    assert_eq!(here.request_id(), Some("first"));
    let long = "x".repeat(129);
    let mut made = Vec::new();
    for bad in [None, Some(""), Some("a b"), Some("r\tx"), Some(long.as_str())] {
        let headers: Vec<_> = bad.map(|bad| ("x-request-id", bad)).into_iter().collect();
        let (here, response) = seen(&layer, &headers);
        let id = here.request_id().unwrap().to_owned();
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{bad:?} -> {id}");
        assert_eq!(response.headers().get_all("x-request-id").iter().collect::<Vec<_>>(), [id.as_str()]);
        made.push(id);
    }
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 5, "each is another");
}

#[test]
fn c8_3_bearer_and_trace_are_taken_by_their_rules() {
    let layer = ContextLayer::new();
    let (here, _) = seen(&layer, &[("authorization", "Bearer t0ken"), ("traceparent", PARENT), ("tracestate", "a=1")]);
    assert_eq!(here.bearer().unwrap(), "Bearer t0ken");
    assert_eq!(here.trace().unwrap().to_string(), PARENT);
    assert_eq!(here.trace().unwrap().state().unwrap(), "a=1");
    for bad in [&[("authorization", "Basic eDp5"), ("traceparent", "00-x")][..], &[("traceparent", PARENT); 2], &[]] {
        let (here, _) = seen(&layer, bad);
        assert_eq!((here.bearer(), here.trace()), (None, None), "telemetry off adds nothing: {bad:?}");
    }
}

#[test]
fn c8_5_a_trace_begins_here_only_if_it_is_told_to() {
    let layer = ContextLayer::new().start_traces(true);
    let begun = |headers| seen(&layer, headers).0.trace().cloned().unwrap();
    let (one, two) = (begun(&[]), begun(&[("traceparent", "00-x"), ("tracestate", "a=1")]));
    assert_ne!(one.trace_id(), two.trace_id());
    assert_eq!((one.is_sampled(), one.flags(), two.state()), (false, 2, None));
    assert_eq!(begun(&[("traceparent", PARENT)]).to_string(), PARENT);
}

#[test]
fn c1_1_the_requests_own_deadline() {
    let none = ContextLayer::new();
    let own = ContextLayer::new().deadline_header(X_TIME_LEFT);
    let grpc = ContextLayer::new().deadline_header(HeaderName::from_static("grpc-timeout"));
    let limited = own.clone().time_limit(secs(2));
    for (layer, headers, expected) in [
        (&none, &[("x-time-left-ms", "250")][..], None),
        (&own, &[("x-time-left-ms", "250")], Some(ms(250))),
        (&own, &[("x-time-left-ms", "250"), ("x-time-left-ms", "90")], Some(ms(90))),
        (&own, &[("x-time-left-ms", "soon")], None),
        (&grpc, &[("grpc-timeout", "3S")], Some(secs(3))),
        (&limited, &[("x-time-left-ms", "250")], Some(ms(250))),
        (&limited, &[("x-time-left-ms", "99999999999999999999")], Some(secs(2))),
        (&limited, &[], Some(secs(2))),
    ] {
        assert_eq!(seen(layer, headers).0.time_left(), expected, "{layer:?} {headers:?}");
    }
}

/// 1.1: it counts from the request's arrival, by the layer's clock.
#[test]
fn c1_1_what_was_waited_for_is_gone() {
    let clock = VirtualClock::new();
    let inner_clock = Clock::from(clock.clone());
    let inner = service_fn(move |_: Request<Body>| {
        let clock = inner_clock.clone();
        async move {
            clock.wait(ms(200)).await;
            answer(format!("{:?}", context::time_left().unwrap()))
        }
    });
    let layer = ContextLayer::new().deadline_header(X_TIME_LEFT).clock(clock.clone());
    let response = clock.run(layer.layer(inner).oneshot(request(&[("x-time-left-ms", "250")]))).unwrap().unwrap();
    assert_eq!(text(response), "50ms");
}

/// A service that serves a stand-in for each dependency whose name the request's header `down` has.
fn degrading(
    clock: &VirtualClock,
) -> impl Service<Request<Body>, Response = http::Response<Body>, Error = std::convert::Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let clock = clock.clone();
    service_fn(move |request: Request<Body>| {
        let clock = clock.clone();
        async move {
            for name in request.headers().get_all("down") {
                let guard = Guard::builder(name.to_str().unwrap()).clock(clock.clone()).build().unwrap();
                let failing = || ready(Err::<&str, _>(io::Error::other("down")));
                assert_eq!(guard.fallback("instead").call(failing).await.unwrap(), "instead");
            }
            answer("whole")
        }
    })
}

/// 11.5, K9: a caller can tell a stand-in from the real thing.
#[test]
fn c11_5_what_was_degraded_is_in_the_response() {
    let clock = VirtualClock::new();
    let names = |layer: &ContextLayer, name: &str, down: &[(&str, &str)]| -> Vec<String> {
        let response = clock.run(layer.layer(degrading(&clock)).oneshot(request(down))).unwrap().unwrap();
        response.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let layer = ContextLayer::new();
    let down = [("down", "billing"), ("down", "tariffs"), ("down", "billing")];
    assert_eq!(names(&layer, "x-degraded", &down), ["billing, tariffs"]);
    assert_eq!(names(&layer, "x-degraded", &[("down", "a b")]), ["a%20b"]);
    assert!(names(&layer, "x-degraded", &[]).is_empty());
    let named = layer.clone().degraded_header(HeaderName::from_static("x-partly"));
    assert_eq!(names(&named, "x-partly", &down), ["billing, tariffs"]);
    assert!(names(&layer.without_degraded_header(), "x-degraded", &down).is_empty());
}

/// 8.2, 8.3: a thousand requests of two users over one service, each in the middle when others go on.
#[test]
fn c8_3_interleaved_requests_see_only_their_own() {
    let clock = VirtualClock::new();
    let layer = ContextLayer::new().clock(clock.clone());
    let inner_clock = Clock::from(clock.clone());
    let service = layer.layer(service_fn(move |request: Request<Body>| {
        let clock = inner_clock.clone();
        async move {
            let user = request.headers()["user"].to_str().unwrap().to_owned();
            for round in 0..3 {
                clock.wait(ms(round + user.len() as u64 % 5)).await;
                let here = context::current().unwrap();
                assert_eq!(here.request_id().unwrap(), format!("id-{user}"));
                assert_eq!(here.bearer().unwrap(), &format!("Bearer {user}"));
            }
            answer(user)
        }
    }));
    let call = async |number: usize| {
        let user = "a".repeat(number % 97 + 1) + if number.is_multiple_of(2) { "x" } else { "y" };
        let headers = [("user", user.as_str()), ("x-request-id", &format!("id-{user}"))];
        let bearer = format!("Bearer {user}");
        let mut request = request(&headers);
        request.headers_mut().insert("authorization", bearer.parse().unwrap());
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["x-request-id"], format!("id-{user}"));
        assert_eq!(text(response), user);
    };
    clock.run(join_all((0..1_000).map(call))).unwrap();
}

/// What a service does in `call` itself, before there is a future to poll.
#[test]
fn the_service_has_its_context_from_the_first() {
    let clock = VirtualClock::new();
    let inner = service_fn(|_: Request<Body>| {
        let here = context::current().and_then(|here| here.request_id().map(str::to_owned));
        ready(answer(here.unwrap_or_default()))
    });
    let call = ContextLayer::new().layer(inner).oneshot(request(&[("x-request-id", "r-1")]));
    assert_eq!(text(clock.run(call).unwrap().unwrap()), "r-1");
}

#[test]
fn an_error_of_the_service_passes_as_it_is() {
    let inner = service_fn(|_: Request<Body>| ready(Err::<http::Response<Body>, _>(io::Error::other("mine"))));
    let error = VirtualClock::new().run(ContextLayer::new().layer(inner).oneshot(request(&[]))).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "mine");
}

#[test]
fn a_request_that_is_dropped_leaves_no_context_behind() {
    let inner = service_fn(|_: Request<Body>| pending::<Answer>());
    {
        let mut call = pin!(ContextLayer::new().layer(inner).oneshot(request(&[])));
        assert!(matches!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        assert!(context::current().is_none());
    }
    assert!(context::current().is_none());
}
