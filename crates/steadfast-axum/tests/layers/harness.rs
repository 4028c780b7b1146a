//! Requests, and services made of a closure.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::testing::VirtualClock;

pub(crate) type Body = Full<Bytes>;
pub(crate) type Answer = Result<Response<Body>, Infallible>;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn request(headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder();
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::default()).unwrap()
}

pub(crate) fn answer(text: impl Into<Bytes>) -> Answer {
    Ok(Response::new(Body::new(text.into())))
}

pub(crate) fn text(response: Response<Body>) -> Bytes {
    VirtualClock::new().run(response.into_body().collect()).unwrap().unwrap().to_bytes()
}

pub(crate) fn json(response: Response<Body>) -> serde_json::Value {
    serde_json::from_slice(&text(response)).unwrap()
}
