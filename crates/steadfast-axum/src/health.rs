//! `/health`: the process answers, and that is all there is to say.
//!
//! Decides nothing: a dependency that is down, or a breaker that is open, must not get this process restarted (10.1).

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use tower_service::Service;

/// Answers every request with 200 and `{"status":"ok"}`. A service for a route: `route_service("/health", Health)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health;

impl Health {
    /// The answer, for a handler of one's own.
    pub fn respond(self) -> Response<Full<Bytes>> {
        json(200, Bytes::from_static(br#"{"status":"ok"}"#))
    }
}

impl<B> Service<Request<B>> for Health {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(self.respond()))
    }
}

/// An answer that nobody may keep.
pub(crate) fn json(status: u16, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
