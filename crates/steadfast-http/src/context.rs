//! What a call inherits from the request that is being served.
//!
//! Decides what is taken over from it, and what of that may be kept for a job that runs later. Tenant, cookies and
//! baggage are not taken over.
//!
//! Invariants: a request id is one that may be forwarded (contract 8.2), the bearer is a `Bearer` and nothing else
//! (8.3), marked sensitive, so that no `Debug` shows it, and it is never serialised.

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::headers::{X_REQUEST_ID, request_id};
use crate::time_left;
use crate::trace::TraceContext;

#[cfg(test)]
mod tests;

/// Request id, bearer token, trace and remaining time of the request that is being served, or of the job that runs.
///
/// It serialises (for a job's payload) as the request id and the trace alone. Reading it back drops what is invalid.
///
/// ```
/// use http::HeaderMap;
/// use steadfast_http::CallContext;
///
/// let mut served = HeaderMap::new();
/// served.insert("x-request-id", "r-42".parse().unwrap());
/// served.insert("authorization", "Bearer s3cret".parse().unwrap());
///
/// let context = CallContext::extract(&served);
/// assert_eq!(context.request_id(), Some("r-42"));
/// assert!(context.bearer().is_some());
/// assert!(context.for_job().bearer().is_none());
/// assert!(!format!("{context:?}").contains("s3cret"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct CallContext {
    request_id: Option<HeaderValue>,
    bearer: Option<HeaderValue>,
    trace: Option<TraceContext>,
    time_left: Option<Duration>,
}

impl CallContext {
    /// A context without anything in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over what the headers of a request being served say: the first `X-Request-ID`, the first
    /// `Authorization`, and the trace.
    pub fn extract(headers: &HeaderMap) -> Self {
        Self {
            request_id: headers.get(X_REQUEST_ID).and_then(|id| request_id(id.as_bytes())),
            bearer: headers.get(AUTHORIZATION).and_then(bearer),
            trace: TraceContext::extract(headers),
            time_left: None,
        }
    }

    /// The same with this request id; one that may not be forwarded leaves none.
    #[must_use]
    pub fn with_request_id(self, id: &str) -> Self {
        Self { request_id: request_id(id.as_bytes()), ..self }
    }

    /// The same with the value of this `Authorization` header; one that is no `Bearer` leaves none.
    #[must_use]
    pub fn with_bearer(self, authorization: &HeaderValue) -> Self {
        Self { bearer: bearer(authorization), ..self }
    }

    /// The same with this trace.
    #[must_use]
    pub fn with_trace(self, trace: TraceContext) -> Self {
        Self { trace: Some(trace), ..self }
    }

    /// The same with so much time left, counted from now.
    #[must_use]
    pub fn with_time_left(self, left: Duration) -> Self {
        Self { time_left: Some(left), ..self }
    }

    /// The same with the time left that the header `name` of a request being served tells; see
    /// [`time_left`] for the forms. A header that says nothing changes nothing.
    #[must_use]
    pub fn with_time_left_from(self, headers: &HeaderMap, name: &HeaderName) -> Self {
        let left = time_left::read(headers, name);
        Self { time_left: left.or(self.time_left), ..self }
    }

    /// What a job that runs later may keep: request id and trace. Not the bearer, which is the user's and expires,
    /// and not the time left, which is the waiting caller's.
    #[must_use]
    pub fn for_job(&self) -> Self {
        Self { request_id: self.request_id.clone(), bearer: None, trace: self.trace.clone(), time_left: None }
    }

    /// The request id.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_ref().and_then(|id| id.to_str().ok())
    }

    /// The request id as the value of `X-Request-ID`.
    pub const fn request_id_header(&self) -> Option<&HeaderValue> {
        self.request_id.as_ref()
    }

    /// The value of `Authorization`, with its scheme; marked sensitive.
    pub const fn bearer(&self) -> Option<&HeaderValue> {
        self.bearer.as_ref()
    }

    /// The trace; its parent is the span of the request being served.
    pub const fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// How much time the request being served had left when the context was made. Whoever keeps the context must
    /// subtract the time that has passed since.
    pub const fn time_left(&self) -> Option<Duration> {
        self.time_left
    }
}

/// The value of an `Authorization` header if its scheme is `Bearer`, in any case, with something behind it.
fn bearer(authorization: &HeaderValue) -> Option<HeaderValue> {
    let (scheme, token) = authorization.as_bytes().split_at_checked(6)?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && token.first() == Some(&b' ');
    if !is_bearer || token.trim_ascii().is_empty() {
        return None;
    }
    let mut value = authorization.clone();
    value.set_sensitive(true);
    Some(value)
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl From<CallContext> for Stored {
    fn from(context: CallContext) -> Self {
        let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
        Self {
            request_id: context.request_id.as_ref().and_then(text),
            traceparent: context.trace.as_ref().map(ToString::to_string),
            tracestate: context.trace.as_ref().and_then(TraceContext::state).and_then(text),
        }
    }
}

impl From<Stored> for CallContext {
    fn from(stored: Stored) -> Self {
        let parent = stored.traceparent.as_deref().map(str::as_bytes);
        let state = stored.tracestate.as_deref().map(str::as_bytes);
        let trace = TraceContext::parse(parent, state);
        Self {
            request_id: stored.request_id.and_then(|id| request_id(id.as_bytes())),
            bearer: None,
            trace,
            time_left: None,
        }
    }
}
