//! Two hops: a caller, a service with `ContextLayer`, and its upstream are one trace.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use steadfast::ServiceClient;
use steadfast_axum::ContextLayer;
use tokio::net::TcpListener;

use crate::scene::{ROOT, Upstream, client, is, says, trace, traceparent, within};

async fn order(State(billing): State<ServiceClient>) -> StatusCode {
    let answer = billing.get("/invoices").send().await.unwrap();
    StatusCode::from_u16(answer.status().as_u16()).unwrap()
}

/// Must show 3: parents over two hops. The service is told of the attempt that reached it, and its own call is that
/// attempt's child, whichever of its caller's attempts it was.
#[test]
fn c8_5_two_hops_are_one_trace() {
    let (upstream, spans) = within(trace(), async {
        let upstream = Upstream::start(&[503, 200]).await;
        let billing = upstream.client(|builder| builder.retries(0));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = Router::new().route("/api/orders", get(order)).layer(ContextLayer::new()).with_state(billing);
        tokio::spawn(axum::serve(listener, service).into_future());
        let orders = client(port, |builder| builder.name("orders"));
        assert_eq!(orders.get("/orders").send().await.unwrap().status(), 200);
        upstream
    });
    // Each begins after its parent.
    let names: Vec<_> = spans.iter().map(|span| (is(span).0, is(span).1)).collect();
    let (call, attempt) = (SpanKind::Internal, SpanKind::Client);
    let hop = [("GET", attempt), ("GET billing", call), ("GET", attempt)];
    assert_eq!(names, [&[("GET orders", call)][..], &hop, &hop].concat());
    assert_eq!(spans[0].parent_span_id, ROOT.to_be_bytes());
    for hop in spans[1..].chunks(3) {
        let [to_service, call, to_upstream] = hop else { panic!("{spans:#?}") };
        assert_eq!(to_service.parent_span_id, spans[0].span_id);
        assert_eq!(call.parent_span_id, to_service.span_id);
        assert_eq!(to_upstream.parent_span_id, call.span_id);
    }
    assert_eq!(says(&spans[4])["http.request.resend_count"], "1");
    assert_eq!(upstream.traceparents(), [traceparent(&spans[3]), traceparent(&spans[6])]);
    assert_eq!(upstream.states(), ["vendor=a1", "vendor=a1"]);
}
