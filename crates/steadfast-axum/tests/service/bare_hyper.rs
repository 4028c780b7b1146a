//! The layers on hyper alone, without axum.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use steadfast::context;
use steadfast_axum::{ContextLayer, Readiness, ShedLayer};
use tokio::net::TcpListener;
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::caller::Caller;

#[tokio::test]
async fn a_service_on_bare_hyper_has_the_same_layers() {
    let ready = Readiness::builder().build().unwrap();
    let inner = service_fn(move |request: Request<Incoming>| {
        let ready = ready.clone();
        async move {
            if request.uri().path() == "/ready" {
                return ready.oneshot(request).await;
            }
            let id = context::current().unwrap().request_id().unwrap().to_owned();
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(id))))
        }
    });
    let stack = ServiceBuilder::new()
        .layer(ContextLayer::new().deadline_header(HeaderName::from_static("x-time-left-ms")))
        .layer(ShedLayer::new(10))
        .service(inner);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let caller = Caller::of(listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(stack.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let answer = caller.get("/", &[("x-request-id", "r-9")]).await;
    assert_eq!((answer.status, &*answer.body, answer.header("x-request-id")), (200, &b"r-9"[..], Some("r-9")));
    assert_eq!(caller.get("/", &[("x-time-left-ms", "0")]).await.status, 504);
    assert_eq!(caller.get("/ready", &[]).await.json(), serde_json::json!({ "status": "ok", "checks": {} }));
}
