//! A request under construction: what reqwest users write, with a deadline they cannot forget.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Version};
use serde::Serialize;
use steadfast_http::headers::Layers;
use steadfast_http::{CallContext, Payload, Repeat};

use super::Shared;
use super::exchange::{Answered, HttpOperation, Prepared, Reading};
use super::multipart::Form;
use super::response::Response;
use super::streaming::StreamingResponse;
use crate::call::{Call, Finished, Options};
use crate::context;
use crate::error::{Error, ErrorKind};
use crate::report::{Outcome, Report};
use crate::transport::{RequestBody, TransportError, UploadHook, Uploaded};

/// A request under construction. A mistake in it is reported by [`send`](Self::send), and nothing is sent then.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    shared: Arc<Shared>,
    method: Method,
    path: String,
    query: String,
    headers: HeaderMap,
    content_type: Option<HeaderValue>,
    body: RequestBody,
    on_upload: Option<UploadHook>,
    idempotency_key: Option<HeaderValue>,
    retry: Option<bool>,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    timeout_is_evidence: bool,
    context: Option<CallContext>,
    mistake: Option<String>,
}

impl RequestBuilder {
    pub(crate) fn new(shared: Arc<Shared>, method: Method, path: &str) -> Self {
        Self {
            shared,
            method,
            path: path.to_owned(),
            query: String::new(),
            headers: HeaderMap::new(),
            content_type: None,
            body: RequestBody::empty(),
            on_upload: None,
            idempotency_key: None,
            retry: None,
            timeout: None,
            deadline: None,
            timeout_is_evidence: true,
            context: None,
            mistake: None,
        }
    }

    /// Adds query parameters: pairs, or a struct of plain values. What the path brings along is kept, in front.
    pub fn query<T: Serialize + ?Sized>(mut self, parameters: &T) -> Self {
        match serde_urlencoded::to_string(parameters) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => {
                if !self.query.is_empty() {
                    self.query.push('&');
                }
                self.query.push_str(&text);
            }
            Err(error) => self.mistaken(format_args!("the query cannot be encoded: {error}")),
        }
        self
    }

    /// Sets a header of this call; it wins over everything that is configured or propagated. A name given twice is
    /// sent twice.
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => {
                if self.headers.try_append(name, value).is_err() {
                    self.mistaken("there are more headers than a request can carry");
                }
            }
            (Err(_), _) => self.mistaken("a header name is not a token of RFC 9110"),
            (Ok(name), Err(_)) => {
                self.mistaken(format_args!("the value of header {name} has characters that none may have"))
            }
        }
        self
    }

    /// Sets all these headers, as [`header`](Self::header) does.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        let mut last = None;
        for (name, value) in headers {
            last = name.or(last);
            if let Some(name) = &last {
                self = self.header(name.clone(), value);
            }
        }
        self
    }

    /// `Authorization: Bearer …` of this call.
    pub fn bearer_auth(self, token: impl fmt::Display) -> Self {
        self.header(AUTHORIZATION, format!("Bearer {token}"))
    }

    /// A JSON body.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match Payload::json(value) {
            Ok(payload) => self.carry(payload),
            Err(error) => self.mistaken(error),
        }
        self
    }

    /// A form body (`application/x-www-form-urlencoded`): pairs, or a struct of plain values.
    pub fn form<T: Serialize + ?Sized>(mut self, fields: &T) -> Self {
        match serde_urlencoded::to_string(fields) {
            Ok(text) => self.carry(Payload::form_encoded(text)),
            Err(error) => self.mistaken(format_args!("the form cannot be encoded: {error}")),
        }
        self
    }

    /// A body as it is: bytes, text, or pieces that come one after the other ([`RequestBody`]). It has no content type
    /// unless a header gives one.
    ///
    /// A body in pieces is kept as it is sent, up to `replay_buffer_bytes` (64 KiB, or what [`RequestBody::keep`] says); a
    /// call that has sent more than that is not repeated. If its source fails, the call ends: `Unreachable`, outcome
    /// `request_body`, with the source's error behind it, and no verdict for the breaker.
    pub fn body(mut self, body: impl Into<RequestBody>) -> Self {
        (self.body, self.content_type) = (body.into(), None);
        self
    }

    /// A multipart form (RFC 7578). One whose parts are all whole can be repeated like any other body; one with parts that
    /// come in pieces as far as `replay_buffer_bytes` goes.
    pub fn multipart(mut self, form: Form) -> Self {
        match form.into_body() {
            Ok((body, content_type)) => (self.body, self.content_type) = (body, Some(content_type)),
            Err(error) => self.mistaken(error),
        }
        self
    }

    /// Tells `hook` how far the body has got: after each piece that is handed to the connection, which has at most 16 KiB.
    /// A further attempt starts from zero again.
    pub fn on_upload(mut self, hook: impl Fn(Uploaded) + Send + Sync + 'static) -> Self {
        self.on_upload = Some(Arc::new(hook));
        self
    }

    /// Sends `Idempotency-Key`, the same on every attempt, and thereby lets any method be repeated (2.2).
    pub fn idempotency_key(mut self, key: &str) -> Self {
        match HeaderValue::from_str(key) {
            Ok(value) => self.idempotency_key = Some(value),
            Err(_) => self.mistaken("the idempotency key has characters that no header value may have"),
        }
        self
    }

    /// `false` forbids retries; `true` vouches for a request that the rules would not repeat.
    pub fn retry(mut self, retry: bool) -> Self {
        self.retry = Some(retry);
        self
    }

    /// A deadline for this call; it can only shorten the upstream's. `Duration::MAX` means no further limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The instant at which the call must be over: the deadline of the request being served, however many calls it makes.
    /// It can only shorten.
    pub fn deadline(mut self, at: Instant) -> Self {
        self.deadline = Some(at);
        self
    }

    /// `false` for a route that is known to be slow: an attempt that the call's deadline cuts is then no verdict for the
    /// circuit breaker (1.5).
    pub fn timeout_is_evidence(mut self, evidence: bool) -> Self {
        self.timeout_is_evidence = evidence;
        self
    }

    /// What travels with the call: the request id, bearer and trace of the request being served. Its time left, where it
    /// has one, counts from [`send`](Self::send); who makes several calls gives each the same
    /// [`deadline`](Self::deadline) instead. Unless given, that of the task, where it has one: see
    /// [`context`](crate::context).
    pub fn context(mut self, context: &CallContext) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// Whose call it is, and how long it may take at the longest.
    #[cfg(feature = "blocking")]
    pub(crate) fn bounds(&self) -> (&Arc<crate::upstream::Upstream>, Duration) {
        (&self.shared.upstream, self.shared.rules.total_timeout)
    }

    fn carry(&mut self, payload: Payload) {
        (self.body, self.content_type) = (payload.bytes.into(), payload.content_type);
    }

    fn mistaken(&mut self, mistake: impl fmt::Display) {
        self.mistake.get_or_insert_with(|| mistake.to_string());
    }

    /// Sends the request, and reads the response whole.
    ///
    /// Cancel safe: dropping the future sends nothing further, closes the connection in use, gives slot, place and
    /// budget back at once, and is no verdict for the circuit breaker.
    ///
    /// # Errors
    /// Only if no attempt got a response. See [`ErrorKind`](crate::ErrorKind).
    ///
    /// # Panics
    /// In a tokio runtime that was built without time or I/O (`enable_all`), as everything of tokio's does, where the call
    /// has to wait or to connect. Outside of any runtime a call that has to connect is an error.
    pub fn send(self) -> impl Future<Output = Result<Response, Error>> + Send + 'static {
        // Outside of the future, which would otherwise hold the whole builder as well.
        let ready = self.ready(Reading::Whole);
        async move {
            // Borrowed where it lies: it is large, and moving it costs more than most of what follows.
            let Ready { shared, options, prepared } = match ready {
                Ok(ref ready) => ready,
                Err(mistake) => return Err(mistake),
            };
            let mut operation = HttpOperation::new(shared, prepared);
            let mut call = Call::begin(&shared.upstream, &shared.rules, options);
            let Finished { response, failure, .. } = call.run(&mut operation).await;
            let Some(Ok(Answered { head, body, .. })) = response else {
                return Err(unanswered(shared, failure, call.kind(), call.report()));
            };
            Ok(Response { upstream: shared.upstream.name.clone(), head, body, report: call.report() })
        }
    }

    /// Sends the request, and hands the response over as soon as its head is there; its body is read as it comes, and may
    /// be of any length (7.6).
    ///
    /// Up to the head everything is as with [`send`](Self::send): a response that another attempt may fix is read whole
    /// and retried. After it nothing is retried. The call's deadline covers the body too: then the stream ends with a
    /// `Timeout`, and slot and connection are given back even if nobody reads. `read_timeout` runs only while somebody
    /// reads. A classifier (`classify`) sees the head and an empty body.
    ///
    /// Cancel safe, as `send`. Dropping the response closes its connection, unless its body was read to the end.
    ///
    /// # Errors
    /// Only if no attempt got a head. What happens to the body afterwards is an error of the body.
    ///
    /// # Panics
    /// As `send`.
    pub fn send_streaming(self) -> impl Future<Output = Result<StreamingResponse, Error>> + Send + 'static {
        let ready = self.ready(Reading::AsItComes);
        async move { ready?.stream().await }
    }

    /// The call as it is about to be made, or the first mistake in it.
    #[inline]
    fn ready(mut self, reading: Reading) -> Result<Ready, Error> {
        if self.context.is_none() {
            self.context = context::current();
        }
        let options = Options {
            bell: None,
            key: "",
            timeout: self.timeout,
            deadline: self.deadline,
            inherited: (self.context.as_ref().and_then(CallContext::time_left))
                .map(|left| self.shared.upstream.clock.now() + left),
            of_task: false,
            timeout_is_evidence: self.timeout_is_evidence,
        };
        let shared = Arc::clone(&self.shared);
        match self.prepare(&shared, reading) {
            Ok(prepared) => Ok(Ready { shared, options, prepared }),
            Err(mistake) => Err(Error::invalid_request(&shared.upstream.name, mistake)),
        }
    }

    /// Everything that is the same on each attempt, or the first mistake.
    #[inline]
    fn prepare(self, shared: &Shared, reading: Reading) -> Result<Prepared, String> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let query = (!self.query.is_empty()).then_some(self.query.as_str());
        let uri = shared.settings.base_url.join(&self.path, query).map_err(|error| error.to_string())?;
        let context = self.context.as_ref();
        let layers = Layers {
            content_type: self.content_type.as_ref(),
            request_id: context.and_then(CallContext::request_id_header),
            bearer: context.and_then(CallContext::bearer).filter(|_| shared.settings.forward_authorization),
            idempotency_key: self.idempotency_key.as_ref(),
            call: Some(&self.headers).filter(|own| !own.is_empty()),
            ..Layers::default()
        };
        let headers = if is_plain(&layers) {
            Arc::clone(&shared.plain_headers)
        } else {
            Arc::new(shared.plain_headers.with(&layers).map_err(|error| error.to_string())?)
        };
        let repeat = Repeat::of(&self.method, headers.headers(), self.retry).map_err(|error| error.to_string())?;
        let trace = context.and_then(CallContext::trace).cloned();
        let body = match self.on_upload {
            Some(hook) => self.body.on_progress(hook),
            None => self.body,
        };
        body.keep_unless_set(shared.settings.replay_buffer_bytes);
        let (version, extensions) = (Version::HTTP_11, Extensions::new());
        Ok(Prepared { method: self.method, uri, version, extensions, headers, body, repeat, trace, reading })
    }
}

/// A call that is about to be made.
pub(crate) struct Ready {
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: Options<'static>,
    pub(crate) prepared: Prepared,
}

impl Ready {
    /// Makes the call, and hands the response over as soon as its head is there.
    pub(crate) async fn stream(self) -> Result<StreamingResponse, Error> {
        let Self { shared, options, prepared } = self;
        let mut operation = HttpOperation::new(&shared, &prepared);
        let mut call = Call::begin(&shared.upstream, &shared.rules, &options);
        let Finished { response, failure, held } = call.run(&mut operation).await;
        let (kind, report) = (call.kind(), call.report());
        let Some(Ok(answered)) = response else { return Err(unanswered(&shared, failure, kind, report)) };
        Ok(StreamingResponse::new(&shared.upstream, answered, report, held))
    }
}

/// The error of a call that got no response.
fn unanswered(
    shared: &Shared,
    failure: Option<Box<Result<Answered, TransportError>>>,
    kind: ErrorKind,
    report: Report,
) -> Error {
    // Only that of the last attempt: one that was cut brought none, whatever those before it did.
    let last = report.attempts().last().map(|attempt| attempt.outcome);
    let source = failure
        .and_then(|failure| failure.err())
        .filter(|error: &TransportError| last == Some(Outcome::Fault(error.fault())))
        .map(TransportError::into_refusal);
    match source {
        // A client or layer of ours further in has refused: its word is the answer.
        Some(Ok(refusal)) => refusal,
        Some(Err(error)) => Error::new(kind, &shared.upstream.name, report).with_source(Some(error.into())),
        None => Error::new(kind, &shared.upstream.name, report),
    }
}

/// Whether the call adds nothing to what every call has.
fn is_plain(layers: &Layers<'_>) -> bool {
    layers.content_type.is_none()
        && layers.request_id.is_none()
        && layers.bearer.is_none()
        && layers.idempotency_key.is_none()
        && layers.call.is_none()
}

impl fmt::Debug for RequestBuilder {
    /// Without query, headers and body: they can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("upstream", &self.shared.upstream.name)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
