//! Problem details (RFC 9457): how a failed call looks at a service's edge.
//!
//! Decides what a caller of the service is told: the kind of failure and the upstream's name, and never the path, the
//! query, an address, or low-level text (contract 7.3). The type is `about:blank`, as there is no page to point to;
//! what a program should act on is `reason`.
//!
//! Reading is as tolerant as RFC 9457 3.1 asks: a member of the wrong type is as if absent, and unknown members are
//! kept as extensions.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// `application/problem+json`
pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

const BLANK: &str = "about:blank";

/// The members that are fields.
const FIELDS: [&str; 10] =
    ["type", "title", "status", "detail", "instance", "reason", "upstream", "request_id", "attempts", "retry_after"];

/// A problem document.
///
/// ```
/// use std::time::Duration;
/// use steadfast_http::ProblemDetails;
///
/// let problem = ProblemDetails::of_call("circuit_open", "billing").with_retry_after(Duration::from_millis(4200));
/// assert_eq!(problem.status, Some(503));
/// assert_eq!(problem.detail.as_deref(), Some("circuit breaker 'billing' is open"));
/// assert_eq!(problem.retry_after_header().unwrap(), "5");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub struct ProblemDetails {
    /// A URI that names the type of problem; absent means `about:blank`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A short summary, the same for every problem of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What happened this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// A URI that names this one occurrence, or the path of the route that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Extension: the kind of the error, for programs (`circuit_open`, `timeout`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Extension: the upstream that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Extension: the id of the request that was being served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Extension: attempts that were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Extension: seconds until another try makes sense, to the millisecond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<f64>,
    #[serde(flatten)]
    extensions: Map<String, Value>,
}

impl ProblemDetails {
    /// A problem with a status, a title and a detail.
    pub fn new(status: u16, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind: Some(BLANK.to_owned()),
            title: Some(title.into()),
            status: Some(status),
            detail: Some(detail.into()),
            ..Self::default()
        }
    }

    /// The problem of a call that failed with an error of the kind `reason` (the error kind's name). It is a 503; a
    /// request that could not be made at all (`invalid_request`) is a fault of the service itself, so a 500.
    pub fn of_call(reason: &str, upstream: &str) -> Self {
        let (status, title, detail) = match reason {
            "circuit_open" => (503, "Upstream Circuit Open", format!("circuit breaker '{upstream}' is open")),
            "bulkhead_full" => {
                (503, "Upstream Bulkhead Full", format!("too many calls to upstream '{upstream}' are in flight"))
            }
            "rate_limited" => {
                (503, "Upstream Rate Limited", format!("the rate limit of upstream '{upstream}' is used up"))
            }
            "timeout" => (503, "Upstream Timeout", format!("upstream '{upstream}' did not answer in time")),
            "unreachable" => (503, "Upstream Unreachable", format!("upstream '{upstream}' could not be reached")),
            "closed" => (503, "Upstream Client Closed", format!("the client of upstream '{upstream}' is closed")),
            "invalid_request" => {
                (500, "Internal Server Error", format!("the request to upstream '{upstream}' could not be made"))
            }
            "operation_failed" => (503, "Upstream Failed", format!("upstream '{upstream}' failed")),
            "operation_rejected" => {
                (500, "Internal Server Error", format!("what was asked of upstream '{upstream}' could not be done"))
            }
            _ => (503, "Upstream Unavailable", format!("upstream '{upstream}' is not available")),
        };
        Self {
            reason: Some(reason.to_owned()),
            upstream: Some(upstream.to_owned()),
            ..Self::new(status, title, detail)
        }
    }

    /// The problem of a request that the service itself did not take on, by `reason`: `overloaded`, or
    /// `deadline_passed` where its caller has given up already.
    pub fn of_service(reason: &str) -> Self {
        let (status, title, detail) = match reason {
            "overloaded" => (503, "Service Overloaded", "too many requests are being served"),
            "deadline_passed" => (504, "Deadline Passed", "the request's deadline passed before it could be served"),
            _ => (503, "Service Unavailable", "the service is not available"),
        };
        Self { reason: Some(reason.to_owned()), ..Self::new(status, title, detail) }
    }

    /// The same with the id of the request that was being served.
    #[must_use]
    pub fn with_request_id(self, id: impl Into<String>) -> Self {
        Self { request_id: Some(id.into()), ..self }
    }

    /// The same with the number of attempts that were made.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts: Some(attempts), ..self }
    }

    /// The same with the time after which another try makes sense, rounded up to the millisecond.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        let millis = wait.as_nanos().div_ceil(1_000_000);
        Self { retry_after: Some(millis as f64 / 1000.0), ..self }
    }

    /// The same with the path of the route that failed.
    #[must_use]
    pub fn with_instance(self, instance: impl Into<String>) -> Self {
        Self { instance: Some(instance.into()), ..self }
    }

    /// The same with an extension member. A name that has a field of its own is left alone.
    #[must_use]
    pub fn with_extension(mut self, name: &str, value: impl Into<Value>) -> Self {
        if !FIELDS.contains(&name) {
            self.extensions.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The extension members that have no field of their own.
    pub const fn extensions(&self) -> &Map<String, Value> {
        &self.extensions
    }

    /// The `Retry-After` header that belongs to it, if a time is known.
    pub fn retry_after_header(&self) -> Option<HeaderValue> {
        let seconds = self.retry_after.filter(|seconds| *seconds >= 0.0)?;
        Some(HeaderValue::from((seconds.ceil() as u64).max(1)))
    }

    /// The response that carries the document: its status (500 if it has none that is valid), its media type, and
    /// `Retry-After` where a time is known.
    pub fn to_response<B: From<Bytes>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(Bytes::from(self.to_json())));
        let status = self.status.and_then(|status| StatusCode::from_u16(status).ok());
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
        if let Some(wait) = self.retry_after_header() {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        response
    }

    /// The document as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Cannot fail: text, numbers and JSON values. A number that JSON does not have is written as null.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The value of a `Retry-After` header: whole seconds, rounded up, at least 1.
pub fn retry_after_header(wait: Duration) -> HeaderValue {
    let more = u64::from(wait.subsec_nanos() > 0);
    HeaderValue::from(wait.as_secs().saturating_add(more).max(1))
}

impl From<Map<String, Value>> for ProblemDetails {
    fn from(mut members: Map<String, Value>) -> Self {
        fn text(member: Option<Value>) -> Option<String> {
            if let Some(Value::String(text)) = member { Some(text) } else { None }
        }
        let mut take = |name: &str| members.remove(name);
        let number = |member: Option<Value>| member.and_then(|value| value.as_u64());
        let seconds = |member: Option<Value>| member.and_then(|value| value.as_f64());
        Self {
            kind: text(take("type")),
            title: text(take("title")),
            status: number(take("status")).and_then(|status| u16::try_from(status).ok()),
            detail: text(take("detail")),
            instance: text(take("instance")),
            reason: text(take("reason")),
            upstream: text(take("upstream")),
            request_id: text(take("request_id")),
            attempts: number(take("attempts")).and_then(|attempts| u32::try_from(attempts).ok()),
            retry_after: seconds(take("retry_after")).filter(|seconds| *seconds >= 0.0),
            extensions: members,
        }
    }
}
