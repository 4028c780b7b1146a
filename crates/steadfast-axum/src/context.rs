//! The layer that makes a request's context the one of every call that is made for it.
//!
//! Decides what is taken from the request, and from which header, and what of it the response tells. Each request has a
//! context and a collector of its own, around the service inside from its call to its response's head, and at no other
//! time: requests that one task or thread serves in turns never see each other's.
//!
//! Invariants: the request that goes in and the response that comes out have the same one `X-Request-ID`. The bearer is in
//! the context, and in nothing that is logged or stored.
//!
//! Limits: a body that the response sends as it comes is outside of the scope; a handler that makes calls for it takes the
//! context along itself ([`steadfast::context::carry`]), and what degrades in them is in the log only.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use steadfast::context::{Scope, scope_blocking_on, scope_on};
use steadfast::degraded::Collector;
use steadfast::{CallContext, Clock, TraceContext};
use tower_layer::Layer;
use tower_service::Service;

use crate::degraded;
use crate::ids::Ids;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_DEGRADED: HeaderName = HeaderName::from_static("x-degraded");

/// Puts the [`CallContext`] of each request around the service inside: every call that it makes, through clients, guards
/// and layers of Steadfast's, has it unless it is given another (see [`steadfast::context`]). As it
/// arrived it is among the request's extensions, too, for looking at: its time left is that of the arrival, so a call is
/// given [`current`](steadfast::context::current), or nothing.
///
/// | of the request | is taken |
/// |---|---|
/// | `X-Request-ID` | if it is 1 to 128 visible ASCII characters; else one is made. The response names it |
/// | `traceparent`, `tracestate` | if they are valid (W3C Trace Context, level 2), over all their lines; else there is no trace, unless [`start_traces`](Self::start_traces) |
/// | `Authorization` | if it is a `Bearer`. It is forwarded to upstreams with `forward_authorization`, and to no other |
/// | its deadline | from the header of [`deadline_header`](Self::deadline_header), if that is set |
///
/// When an answer that stands in for a better one was served meanwhile ([`steadfast::degraded`]), the response has the
/// names of those dependencies, `X-Degraded: billing, tariffs`, and the log has them with the reasons, at WARN.
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct ContextLayer(Arc<Settings>);

#[derive(Clone)]
struct Settings {
    deadline_header: Option<HeaderName>,
    time_limit: Option<Duration>,
    start_traces: bool,
    degraded_header: Option<HeaderName>,
    clock: Clock,
    ids: Arc<Ids>,
}

impl ContextLayer {
    /// A layer that takes no deadline from any header, starts no traces, and names degraded dependencies in `X-Degraded`.
    pub fn new() -> Self {
        Self(Arc::new(Settings {
            deadline_header: None,
            time_limit: None,
            start_traces: false,
            degraded_header: Some(X_DEGRADED),
            clock: Clock::system(),
            ids: Arc::default(),
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The header that says how much time the request has left: whole milliseconds, or gRPC's form in `grpc-timeout`; the
    /// shortest of several lines counts, and what cannot be read is ignored. No header, unless set: there is no standard
    /// one. Whoever can send it can only shorten his own calls.
    pub fn deadline_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.deadline_header = Some(name))
    }

    /// The longest that any request may have, whatever it says: the calls made for it are over by then. No limit, unless
    /// set; each call has its upstream's `total_timeout` anyway.
    pub fn time_limit(self, limit: Duration) -> Self {
        self.with(|settings| settings.time_limit = Some(limit))
    }

    /// Whether a request without a valid trace gets a new one, not sampled. `false`: without telemetry nothing is added.
    pub fn start_traces(self, start: bool) -> Self {
        self.with(|settings| settings.start_traces = start)
    }

    /// The response header that names degraded dependencies. `X-Degraded`.
    pub fn degraded_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.degraded_header = Some(name))
    }

    /// No response header names degraded dependencies: for an edge whose callers are none of ours. The log still does.
    pub fn without_degraded_header(self) -> Self {
        self.with(|settings| settings.degraded_header = None)
    }

    /// Another clock than the system's, by which deadlines are told.
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        self.with(|settings| settings.clock = clock.into())
    }
}

impl Default for ContextLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl Settings {
    /// What a request with these headers brings along; its id, made where it brought none.
    fn context(&self, headers: &HeaderMap) -> (CallContext, HeaderValue) {
        let mut context = CallContext::extract(headers);
        if let Some(name) = &self.deadline_header {
            context = context.with_time_left_from(headers, name);
        }
        // A layer further out has said how long, and none makes it longer.
        if let Some(outer) = steadfast::context::time_left() {
            let left = context.time_left().map_or(outer, |left| left.min(outer));
            context = context.with_time_left(left);
        }
        if let Some(limit) = self.time_limit {
            let left = context.time_left().map_or(limit, |left| left.min(limit));
            context = context.with_time_left(left);
        }
        if self.start_traces && context.trace().is_none() {
            let outer = steadfast::context::current().and_then(|outer| outer.trace().cloned());
            let trace = outer.unwrap_or_else(|| TraceContext::root(self.ids.long(), self.ids.short(), false));
            context = context.with_trace(trace);
        }
        if let Some(id) = context.request_id_header().cloned() {
            return (context, id);
        }
        let (id, value) = self.ids.request_id();
        (context.with_request_id(&id), value)
    }

    /// What the response tells of the request that it answers.
    fn mark(&self, headers: &mut HeaderMap, request_id: &HeaderValue, collector: &Collector) {
        let _ = headers.try_insert(X_REQUEST_ID, request_id.clone());
        if collector.is_empty() {
            return;
        }
        let noted = collector.noted();
        degraded::log(&noted, request_id);
        if let (Some(name), Some(names)) = (&self.degraded_header, degraded::names(&noted)) {
            let _ = headers.try_append(name, names);
        }
    }
}

impl<S> Layer<S> for ContextLayer {
    type Service = ContextService<S>;

    fn layer(&self, inner: S) -> ContextService<S> {
        ContextService { inner, settings: Arc::clone(&self.0) }
    }
}

impl fmt::Debug for ContextLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextLayer")
            .field("deadline_header", &self.0.deadline_header)
            .field("time_limit", &self.0.time_limit)
            .field("start_traces", &self.0.start_traces)
            .field("degraded_header", &self.0.degraded_header)
            .finish_non_exhaustive()
    }
}

/// A service that has each request's context around it. Made by [`ContextLayer`].
#[derive(Clone)]
pub struct ContextService<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S, B, R> Service<Request<B>> for ContextService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ContextFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let settings = Arc::clone(&self.settings);
        let (context, request_id) = settings.context(request.headers());
        // Not `insert`, which panics where there are more headers than a map can hold; then the context alone has the id.
        let _ = request.headers_mut().try_insert(X_REQUEST_ID, request_id.clone());
        request.extensions_mut().insert(context.clone());
        let collector = Collector::new();
        let (clock, inner) = (&settings.clock, &mut self.inner);
        // The service may look for the context before its future is polled.
        let call = || scope_blocking_on(clock, context.clone(), || inner.call(request));
        let future = collector.scope_blocking(call);
        let inner = scope_on(clock, context, future);
        ContextFuture { inner, collector, request_id, settings }
    }
}

impl<S> fmt::Debug for ContextService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextService").finish_non_exhaustive()
    }
}

pin_project! {
    /// A request that is being served with its context around it.
    ///
    /// Cancel safe if the service's own future is: dropping it drops that one, and nothing is left of the context.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ContextFuture<F> {
        #[pin]
        inner: Scope<F>,
        collector: Collector,
        request_id: HeaderValue,
        settings: Arc<Settings>,
    }
}

impl<F, R, E> Future for ContextFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut response = ready!(this.collector.scope_blocking(|| this.inner.poll(cx)))?;
        this.settings.mark(response.headers_mut(), this.request_id, this.collector);
        Poll::Ready(Ok(response))
    }
}

impl<F> fmt::Debug for ContextFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextFuture").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}
