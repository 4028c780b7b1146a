//! HTTP calls: an INTERNAL span for the call, a CLIENT span for each attempt, by the conventions.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::FutureExt as _;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use steadfast::{CallContext, ErrorKind, TraceContext, context};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::receiver::telemetry;
use crate::scene::{ROOT, Upstream, client, facts, is, says, trace, traceparent, within};

/// 8.5, 2.8: each attempt is a CLIENT span below the call, and what the upstream is told is that span.
#[test]
fn c8_5_each_attempt_is_a_client_span_of_the_call() {
    let (upstream, spans) = within(trace(), async {
        let upstream = Upstream::start(&[503, 200]).await;
        let client = upstream.client(|builder| builder);
        assert_eq!(client.get("/orders/S3CR3T").query(&[("key", "S3CR3T")]).send().await.unwrap().status(), 200);
        upstream
    });
    let [call, first, second] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!(is(call), ("GET billing", SpanKind::Internal, false));
    assert_eq!(call.parent_span_id, ROOT.to_be_bytes());
    let ended = [("steadfast.ended", "response"), ("steadfast.retries", "1"), ("steadfast.upstream", "billing")];
    assert_eq!(says(call), facts(&ended));

    let port = upstream.port.to_string();
    let request = [
        ("http.request.method", "GET"),
        ("network.protocol.version", "1.1"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port),
        ("steadfast.upstream", "billing"),
    ];
    for attempt in [first, second] {
        assert_eq!(attempt.parent_span_id, call.span_id);
    }
    assert_eq!(is(first), ("GET", SpanKind::Client, true));
    let failed = [("http.response.status_code", "503"), ("error.type", "503")];
    assert_eq!(says(first), facts(&[&request[..], &failed].concat()));
    assert_eq!(is(second), ("GET", SpanKind::Client, false));
    let answered = [("http.response.status_code", "200"), ("http.request.resend_count", "1")];
    assert_eq!(says(second), facts(&[&request[..], &answered].concat()));

    assert_eq!(upstream.traceparents(), [traceparent(first), traceparent(second)]);
    assert_eq!(upstream.states(), ["vendor=a1", "vendor=a1"]);
    assert!(!format!("{spans:?}").contains("S3CR3T"), "8.6");
}

/// What is wrong is in `error.type`, from a closed list; what never went out has no CLIENT span.
#[test]
fn c8_5_errors_have_a_type_and_no_status() {
    let (port, spans) = within(trace(), async {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let client = client(closed, |builder| builder.retries(0).breaker_failures(1));
        assert_eq!(client.get("/").send().await.unwrap_err().kind(), ErrorKind::Unreachable);
        assert_eq!(client.get("/").send().await.unwrap_err().kind(), ErrorKind::CircuitOpen);
        closed
    });
    let [call, attempt, refused] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!(is(call), ("GET billing", SpanKind::Internal, true));
    assert_eq!(says(call)["error.type"], "connect");
    assert_eq!(says(call)["steadfast.ended"], "attempts_exhausted");
    assert_eq!(is(attempt), ("GET", SpanKind::Client, true));
    let request = [
        ("error.type", "connect"),
        ("http.request.method", "GET"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port.to_string()),
        ("steadfast.upstream", "billing"),
    ];
    assert_eq!(says(attempt), facts(&request));
    assert_eq!(is(refused), ("GET billing", SpanKind::Internal, true));
    assert_eq!(says(refused)["error.type"], "circuit_open");
    assert_eq!(says(refused)["steadfast.ended"], "circuit_open");
}

/// A client error is an error of a CLIENT span, and of the call that returns it.
#[test]
fn c8_5_a_404_is_an_error() {
    let (_, spans) = within(trace(), async {
        let upstream = Upstream::start(&[404]).await;
        upstream.client(|builder| builder).get("/").send().await.unwrap();
    });
    let errors: Vec<_> = spans.iter().map(|span| (is(span).2, says(span)["error.type"].clone())).collect();
    assert_eq!(errors, [(true, "404".to_owned()), (true, "404".to_owned())]);
}

/// 8.5, 8.6: the URL is there where `record_url` is on, without the query's values; a method that nobody knows is one word
/// to whoever counts.
#[test]
fn c8_5_c8_6_the_url_only_where_it_was_asked_for() {
    let (port, spans) = within(trace(), async {
        let upstream = Upstream::start(&[200]).await;
        let client = upstream.client(|builder| builder.record_url(true));
        let purge = http::Method::from_bytes(b"PURGE").unwrap();
        client
            .request(purge, "/orders/7?S3CR3T&UzNDUjNU==")
            .query(&[("key", "S3CR3T"), ("q", "")])
            .send()
            .await
            .unwrap();
        upstream.port
    });
    let [call, attempt] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((call.name.as_str(), attempt.name.as_str()), ("HTTP billing", "HTTP"));
    let said = says(attempt);
    assert_eq!(said["http.request.method"], "_OTHER");
    assert_eq!(said["http.request.method_original"], "PURGE");
    let url = format!("http://127.0.0.1:{port}/api/orders/7?REDACTED&REDACTED&key=REDACTED&REDACTED");
    assert_eq!(said["url.full"], url);
    assert!(!format!("{spans:?}").contains("S3CR3T"));
}

/// The seed's way: one CLIENT span for the call, whose attempts all send it.
#[test]
fn s87_one_span_for_the_call_where_that_is_set() {
    let (upstream, spans) = within(trace(), async {
        let upstream = Upstream::start(&[503, 503, 429]).await;
        upstream.client(|builder| builder.attempt_spans(false)).get("/").send().await.unwrap();
        upstream
    });
    let [call] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!(is(call), ("GET billing", SpanKind::Client, true));
    assert_eq!(call.parent_span_id, ROOT.to_be_bytes());
    let expected = [
        ("error.type", "429"),
        ("http.request.method", "GET"),
        ("http.request.resend_count", "2"),
        ("http.response.status_code", "429"),
        ("network.protocol.version", "1.1"),
        ("server.address", "127.0.0.1"),
        ("server.port", &upstream.port.to_string()),
        ("steadfast.ended", "attempts_exhausted"),
        ("steadfast.retries", "2"),
        ("steadfast.upstream", "billing"),
    ];
    assert_eq!(says(call), facts(&expected));
    assert_eq!(upstream.traceparents(), vec![traceparent(call); 3]);
}

/// 1.6: a call that is dropped ends its spans, and says why.
#[test]
fn c1_6_a_dropped_call_ends_its_spans() {
    let (_, spans) = within(trace(), async {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(silent.local_addr().unwrap().port(), |builder| builder);
        let call = client.get("/").send();
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            // The request has come.
            peer = silent.accept() => peer.unwrap().0.readable().await.unwrap(),
        }
    });
    let [call, attempt] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((is(call).2, is(attempt).2), (true, true));
    assert_eq!(says(call)["steadfast.ended"], "cancelled");
    for span in [call, attempt] {
        assert_eq!(says(span)["error.type"], "cancelled");
    }
}

/// An attempt that its own limit cuts is an error of that name.
#[test]
fn c8_5_a_timeout_has_its_name() {
    let (_, spans) = within(trace(), async {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cut = Duration::from_millis(20);
        let client = client(silent.local_addr().unwrap().port(), |builder| builder.attempt_timeout(cut).retries(0));
        client.get("/").send().await.unwrap_err();
    });
    let types: Vec<_> = spans.iter().map(|span| says(span)["error.type"].clone()).collect();
    assert_eq!(types, ["attempt_timeout", "attempt_timeout"]);
}

/// A response that is handed over as it comes ends its call, and so its spans, at the head.
#[test]
fn c7_6_a_streamed_response_ends_its_spans_at_the_head() {
    let trace = trace();
    let (response, spans) = within(trace, async {
        let upstream = Upstream::start(&[200]).await;
        upstream.client(|builder| builder).get("/").send_streaming().await.unwrap()
    });
    assert_eq!(spans.len(), 2);
    assert_eq!(says(&spans[1])["http.response.status_code"], "200");
    drop(response);
    assert_eq!(telemetry().spans(trace).len(), 2);
}

/// Where OpenTelemetry has no current span, a call is a child of the request being served; what its caller does not
/// record, is not recorded here, and said so.
#[test]
fn c8_5_the_request_being_served_is_the_parent_where_there_is_no_other() {
    let telemetry = telemetry();
    for (flags, recorded) in [("01", 2), ("00", 0)] {
        let trace = trace();
        let served = format!("00-{trace:032x}-0c0c0c0c0c0c0c0c-{flags}");
        let served = TraceContext::parse([served.as_bytes()], [&b"vendor=b2"[..]]).unwrap();
        let sent = Runtime::new().unwrap().block_on(async {
            let upstream = Upstream::start(&[200]).await;
            let client = upstream.client(|builder| builder);
            let work = async { client.get("/").send().await.unwrap() };
            context::scope(CallContext::new().with_trace(served), work).await;
            assert_eq!(upstream.states(), ["vendor=b2"]);
            upstream.traceparents()
        });
        let spans = telemetry.spans(trace);
        assert_eq!(spans.len(), recorded);
        if let [call, attempt] = &spans[..] {
            assert_eq!(call.parent_span_id, [0x0c; 8]);
            assert_eq!(sent, [traceparent(attempt)]);
        } else {
            assert_eq!(sent.len(), 1);
            assert!(sent[0].starts_with(&format!("00-{trace:032x}-")) && sent[0].ends_with("-00"), "{sent:?}");
            assert!(!sent[0].contains("0c0c"), "a span of its own");
        }
    }
}

/// A call that belongs to nothing begins a trace; one that is made where telemetry is suppressed does not.
#[test]
fn a_call_of_no_trace_begins_one_unless_telemetry_is_suppressed() {
    let telemetry = telemetry();
    let sent = Runtime::new().unwrap().block_on(async {
        let upstream = Upstream::start(&[200]).await;
        let client = upstream.client(|builder| builder);
        client.get("/").send().await.unwrap();
        let quiet = Context::new().with_telemetry_suppressed();
        client.get("/").send().with_context(quiet).await.unwrap();
        upstream.traceparents()
    });
    let trace = u128::from_str_radix(&sent[0][3..35], 16).unwrap();
    let spans = telemetry.spans(trace);
    assert_eq!(spans.len(), 2);
    assert!(spans[0].parent_span_id.is_empty());
    assert_eq!(sent, [traceparent(&spans[1]), String::new()]);
}
