//! What the log says of a degraded answer. A process of its own: `tracing` remembers for the whole process whether anybody
//! listens.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../steadfast/tests/log_support/mod.rs"]
mod log_support;

use std::convert::Infallible;
use std::future::ready;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::Guard;
use steadfast::testing::VirtualClock;
use steadfast_axum::ContextLayer;
use tower::{Layer, ServiceExt, service_fn};

use log_support::Log;

/// 11.5, 8.6: one line for the request, with the reasons and its id, and nothing of the error.
#[test]
fn c11_5_the_log_names_what_was_degraded_and_why() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let clock = VirtualClock::new();
        let guards = ["billing", "tariffs"].map(|name| Guard::builder(name).clock(clock.clone()).build().unwrap());
        guards[1].force_open();
        let service = ContextLayer::new().layer(service_fn(move |_: Request<Full<Bytes>>| {
            let guards = guards.clone();
            async move {
                for guard in guards {
                    let failing = || ready(Err::<(), _>(std::io::Error::other("S3CR3T")));
                    guard.fallback(()).call(failing).await.unwrap();
                }
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
            }
        }));
        let request = Request::get("/S3CR3T").header("x-request-id", "r-42").header("authorization", "Bearer S3CR3T");
        clock.run(service.oneshot(request.body(Full::default()).unwrap())).unwrap().unwrap();
    });
    let lines = log.lines();
    let expected =
        "WARN the answer is degraded request_id=r-42 degraded=billing (not_repeatable), tariffs (circuit_open)";
    assert_eq!(lines.iter().filter(|line| line.as_str() == expected).count(), 1, "{lines:?}");
    assert!(!lines.join("\n").contains("S3CR3T"));
}
