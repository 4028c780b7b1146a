//! An upstream that answers by script and keeps what it was sent, and a trace to be part of.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use opentelemetry::Context;
use opentelemetry::trace::{
    FutureExt as _, SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use steadfast::transport::Proxy;
use steadfast::{ClientBuilder, ServiceClient};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::receiver::{attributes, telemetry};

/// The span in whose context a test makes its calls.
pub(crate) const ROOT: u64 = 0x0b0b_0b0b_0b0b_0b0b;

/// A trace of one test's own.
pub(crate) fn trace() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    (0x0af7_6519_16cd_43dd_u128 << 64) | u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Runs the work in the context of `ROOT`, and returns what came of it and every span of the trace.
pub(crate) fn within<F: Future>(trace: u128, work: F) -> (F::Output, Vec<Span>) {
    let telemetry = telemetry();
    let state = TraceState::from_key_value([("vendor", "a1")]).unwrap();
    let root = SpanContext::new(TraceId::from(trace), SpanId::from(ROOT), TraceFlags::SAMPLED, true, state);
    let context = Context::new().with_remote_span_context(root);
    let out = Runtime::new().unwrap().block_on(work.with_context(context));
    (out, telemetry.spans(trace))
}

/// A server that answers with these statuses, the last for ever.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) port: u16,
    traceparents: Arc<Mutex<Vec<String>>>,
    states: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    pub(crate) async fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let this = Self { port, traceparents: Arc::default(), states: Arc::default() };
        let upstream = this.clone();
        let router = Router::new().fallback(move |request: Request| {
            let header = |name: &str| {
                request.headers().get(name).map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
            };
            upstream.states.lock().unwrap().push(header("tracestate"));
            let mut seen = upstream.traceparents.lock().unwrap();
            seen.push(header("traceparent"));
            let status = statuses[(seen.len() - 1).min(statuses.len() - 1)];
            async move { StatusCode::from_u16(status).unwrap() }
        });
        tokio::spawn(axum::serve(listener, router).into_future());
        this
    }

    pub(crate) fn client(&self, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> ServiceClient {
        client(self.port, configure)
    }

    pub(crate) fn traceparents(&self) -> Vec<String> {
        self.traceparents.lock().unwrap().clone()
    }

    pub(crate) fn states(&self) -> Vec<String> {
        self.states.lock().unwrap().clone()
    }
}

/// A client with short waits of what listens at this port.
pub(crate) fn client(port: u16, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> ServiceClient {
    let builder = ServiceClient::builder(&format!("http://127.0.0.1:{port}/api")).name("billing");
    configure(builder.backoff_base(std::time::Duration::from_millis(1)).proxy(Proxy::Off)).build().unwrap()
}

/// What a span is: name, kind, whether it is an error.
pub(crate) fn is(span: &Span) -> (&str, SpanKind, bool) {
    let status = span.status.as_ref().map_or(SpanStatus::Unset, |status| {
        assert_eq!(status.message, "", "error.type says it");
        status.code()
    });
    (&span.name, span.kind(), status == SpanStatus::Error)
}

/// What a span says, all of it.
pub(crate) fn says(span: &Span) -> BTreeMap<&str, String> {
    attributes(&span.attributes)
}

/// The same in a form to be compared with.
pub(crate) fn facts<'a>(facts: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    facts.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// `traceparent` as the span's child is to have it.
pub(crate) fn traceparent(span: &Span) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id))
}
