//! A request under construction, sent and waited for on the thread that makes it.
//!
//! The async builder holds everything; this one adds only the wait, so that the two cannot come apart.

use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use steadfast_http::CallContext;

use super::body::from_reader;
use super::response::StreamingResponse;
use super::runtime::Wait;
use crate::client::{self, Response};
use crate::error::Error;
use crate::transport::{RequestBody, Uploaded};

/// A request under construction. A mistake in it is reported by [`send`](Self::send), and nothing is sent then.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder(client::RequestBuilder);

impl RequestBuilder {
    pub(super) fn new(request: client::RequestBuilder) -> Self {
        Self(request)
    }

    fn map(self, change: impl FnOnce(client::RequestBuilder) -> client::RequestBuilder) -> Self {
        Self(change(self.0))
    }

    /// Adds query parameters: pairs, or a struct of plain values. What the path brings along is kept, in front.
    pub fn query<T: Serialize + ?Sized>(self, parameters: &T) -> Self {
        self.map(|request| request.query(parameters))
    }

    /// Sets a header of this call; it wins over everything that is configured or propagated. A name given twice is
    /// sent twice.
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.map(|request| request.header(name, value))
    }

    /// Sets all these headers, as [`header`](Self::header) does.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.map(|request| request.headers(headers))
    }

    /// `Authorization: Bearer …` of this call.
    pub fn bearer_auth(self, token: impl fmt::Display) -> Self {
        self.map(|request| request.bearer_auth(token))
    }

    /// A JSON body.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Self {
        self.map(|request| request.json(value))
    }

    /// A form body (`application/x-www-form-urlencoded`): pairs, or a struct of plain values.
    pub fn form<T: Serialize + ?Sized>(self, fields: &T) -> Self {
        self.map(|request| request.form(fields))
    }

    /// A body as it is: bytes, text, or pieces that come one after the other ([`RequestBody`]); see the async
    /// [`body`](client::RequestBuilder::body). It has no content type unless a header gives one.
    ///
    /// A stream of pieces is polled on the background thread of all blocking calls, and must not block there; what does
    /// block goes through [`body_reader`](Self::body_reader).
    pub fn body(self, body: impl Into<RequestBody>) -> Self {
        self.map(|request| request.body(body))
    }

    /// What a reader gives, such as a file; see [`from_reader`]. Without a `length` (in bytes) it is sent in chunks
    /// (HTTP/1.1) or frames; with one, a reader that gives more or less is an error of the call.
    pub fn body_reader(self, reader: impl Read + Send + 'static, length: Option<u64>) -> Self {
        self.body(from_reader(reader, length))
    }

    /// Tells `hook` how far the body has got: after each piece that is handed to the connection, which has at most 16 KiB.
    /// A further attempt starts from zero again.
    /// Called on the background thread of all blocking calls: it must not block.
    pub fn on_upload(self, hook: impl Fn(Uploaded) + Send + Sync + 'static) -> Self {
        self.map(|request| request.on_upload(hook))
    }

    /// Sends `Idempotency-Key`, the same on every attempt, and thereby lets any method be repeated (2.2).
    pub fn idempotency_key(self, key: &str) -> Self {
        self.map(|request| request.idempotency_key(key))
    }

    /// `false` forbids retries; `true` vouches for a request that the rules would not repeat.
    pub fn retry(self, retry: bool) -> Self {
        self.map(|request| request.retry(retry))
    }

    /// A deadline for this call; it can only shorten the upstream's. `Duration::MAX` means no further limit.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.map(|request| request.timeout(timeout))
    }

    /// The instant at which the call must be over: the deadline of the request being served, however many calls it makes.
    /// It can only shorten.
    pub fn deadline(self, at: Instant) -> Self {
        self.map(|request| request.deadline(at))
    }

    /// `false` for a route that is known to be slow: an attempt that the call's deadline cuts is then no verdict for the
    /// circuit breaker (1.5).
    pub fn timeout_is_evidence(self, evidence: bool) -> Self {
        self.map(|request| request.timeout_is_evidence(evidence))
    }

    /// What travels with the call: the request id, bearer and trace of the request being served. Its time left, where it
    /// has one, counts from [`send`](Self::send); who makes several calls gives each the same
    /// [`deadline`](Self::deadline) instead.
    pub fn context(self, context: &CallContext) -> Self {
        self.map(|request| request.context(context))
    }

    /// Sends the request, and reads the response whole. The thread waits, at the longest until the call's deadline.
    ///
    /// # Errors
    /// Only if no attempt got a response. See [`ErrorKind`](crate::ErrorKind). `InvalidRequest`, with nothing sent, also
    /// where a blocking call may not be made: on a thread that runs tokio tasks, in an event hook, more than four deep in
    /// other hooks; and where the background thread cannot be started.
    pub fn send(self) -> Result<Response, Error> {
        Wait::begin(&self.0).run(self.0.send())
    }

    /// Sends the request, and hands the response over as soon as its head is there; its body is read as it comes, and may
    /// be of any length (7.6).
    ///
    /// Up to the head everything is as with [`send`](Self::send): a response that another attempt may fix is read whole
    /// and retried. After it nothing is retried. The call's deadline covers the body too: then reading it fails with a
    /// `Timeout`, and slot and connection are given back even if nobody reads. `read_timeout` runs only while somebody
    /// reads. Dropping the response closes its connection, unless its body was read to the end.
    ///
    /// # Errors
    /// Only if no attempt got a head, and as `send`. What happens to the body afterwards is an error of the body.
    pub fn send_streaming(self) -> Result<StreamingResponse, Error> {
        let wait = Wait::begin(&self.0);
        let response = wait.run(self.0.send_streaming())?;
        Ok(StreamingResponse::new(response, wait))
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
