//! A response, read whole, with the report of the call that brought it.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::alike::of_head;
use crate::report::Report;

/// What the upstream answered, as it is: a 404, a 500 or the last 503 too. [`error_for_status`](Self::error_for_status)
/// turns those into an error where the caller wants one.
pub struct Response {
    pub(crate) upstream: Arc<str>,
    pub(crate) head: http::response::Parts,
    pub(crate) body: Bytes,
    pub(crate) report: Report,
}

impl Response {
    of_head!();

    /// The body.
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// The body, without the rest.
    pub fn into_bytes(self) -> Bytes {
        self.body
    }

    /// The body as text; bytes that are not UTF-8 become `U+FFFD`.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// [`BodyError`] when it is not, or not of this type. Neither its text nor its `Debug` quotes the body.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, BodyError> {
        serde_json::from_slice(&self.body).map_err(|source| BodyError { upstream: Arc::clone(&self.upstream), source })
    }

    /// Every attempt, every wait, and why the call ended.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The upstream's name.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// The response itself below 400, an error that holds it from 400 on.
    ///
    /// # Errors
    /// [`StatusError`] for 4xx and 5xx.
    pub fn error_for_status(self) -> Result<Self, StatusError> {
        if self.status().is_client_error() || self.status().is_server_error() {
            return Err(StatusError(Box::new(self)));
        }
        Ok(self)
    }

    /// As an `http::Response`, for code that speaks those types, and to answer with.
    ///
    /// Without what was about the upstream's connection (RFC 9110 section 7.6.1): `Connection` and the headers that it
    /// names, `Transfer-Encoding`, `Keep-Alive`, `Upgrade` and the like; and without a `Content-Length` that is not the
    /// body's. Beside a body that is empty it stays: that of a `HEAD` or a 304 is the length of what a `GET` would bring.
    pub fn into_http(self) -> http::Response<Bytes> {
        let Self { mut head, body, .. } = self;
        let length = body.len() as u64;
        keep_end_to_end(&mut head.headers, |announced| length == 0 || announced == Some(length));
        http::Response::from_parts(head, body)
    }
}

impl fmt::Debug for Response {
    /// Without headers and body: they can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("upstream", &self.upstream)
            .field("status", &self.head.status)
            .field("bytes", &self.body.len())
            .field("report", &self.report)
            .finish()
    }
}

/// Keeps what is still right where a response goes on to somebody else. `fits` is asked for the `Content-Length`, `None` if
/// it is no number.
pub(crate) fn keep_end_to_end(headers: &mut HeaderMap, fits: impl FnOnce(Option<u64>) -> bool) {
    steadfast_http::headers::keep_end_to_end(headers);
    if let Some(length) = headers.get(CONTENT_LENGTH)
        && !fits(length.to_str().ok().and_then(|length| length.parse().ok()))
    {
        headers.remove(CONTENT_LENGTH);
    }
}

/// A response whose status is an error for the caller.
pub struct StatusError(Box<Response>);

impl StatusError {
    /// The response.
    pub fn response(&self) -> &Response {
        &self.0
    }

    /// The response, by value.
    pub fn into_response(self) -> Response {
        *self.0
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upstream '{}' answered {}", self.0.upstream, self.0.status())
    }
}

impl fmt::Debug for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StatusError").field(&self.0).finish()
    }
}

impl StdError for StatusError {}

/// A body that is not the JSON that was expected. It says where; its [`source`](StdError::source), serde's own error, also
/// says what it found there, and so can quote the body.
pub struct BodyError {
    upstream: Arc<str>,
    source: serde_json::Error,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.source.line(), self.source.column());
        write!(f, "the body from upstream '{}' is not the expected JSON (line {line}, column {column})", self.upstream)
    }
}

impl fmt::Debug for BodyError {
    /// Without the source, which can quote the body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyError")
            .field("upstream", &self.upstream)
            .field("category", &self.source.classify())
            .field("line", &self.source.line())
            .field("column", &self.source.column())
            .finish_non_exhaustive()
    }
}

impl StdError for BodyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.source)
    }
}
