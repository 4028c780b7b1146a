//! One call while somebody watches it: its span of `tracing`, and its trace in OpenTelemetry.
//!
//! The loop is polled inside of the span ([`Traced`]), so that whatever is logged while a call runs, by the client or by the
//! operation, says which call it was. What the span says at its end is taken from the report, the one account of a call
//! that there is. Without a subscriber that wants the span, and without an SDK, there is nothing here but empty pointers.
//!
//! Invariants: each span of OpenTelemetry that was begun ends exactly once, at the latest when the call is dropped.
//! One of `tracing` closes with the last that is in it: an operation on a helper thread may go on after its call. Nothing of
//! a request but its method is in a span of `tracing`.
//!
//! Limits: the body of a response that is read as it comes lies outside of its call's span, as the call ended at the head.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Method;
use pin_project_lite::pin_project;
use steadfast_policy::Time;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing::{Level, Span};

use crate::error::ErrorKind;
use crate::report::{Outcome, Report};
use crate::upstream::Upstream;

#[cfg(feature = "otel")]
use super::otel;

/// The word for a call whose future was dropped.
pub(super) const CANCELLED: &str = "cancelled";

/// What spans may show of an HTTP request.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) method: &'a Method,
    #[cfg(feature = "otel")]
    pub(crate) uri: &'a http::Uri,
    #[cfg(feature = "otel")]
    pub(crate) settings: &'a crate::config::Settings,
    /// Among them `Host`, where the request brought one along.
    #[cfg(feature = "otel")]
    pub(crate) headers: &'a http::HeaderMap,
    /// The trace of the request being served.
    #[cfg(feature = "otel")]
    pub(crate) trace: Option<&'a steadfast_http::TraceContext>,
}

/// A call that is watched.
pub(crate) struct Watched {
    span: Span,
    #[cfg(feature = "otel")]
    pub(crate) otel: Option<otel::CallTrace>,
}

impl Watched {
    /// The call that begins now, if anybody watches. `shown` is what it shows; `None` for an operation that is not HTTP.
    /// `of_task`: whether it is made for the request that the task serves.
    #[inline]
    #[cfg_attr(not(feature = "otel"), allow(unused_variables))]
    pub(crate) fn begin<'a>(
        upstream: &Arc<Upstream>,
        now: Time,
        of_task: bool,
        shown: impl FnOnce() -> Option<Shown<'a>>,
    ) -> Option<Arc<Self>> {
        if upstream.is_part {
            return None;
        }
        let is_listened = Level::INFO <= STATIC_MAX_LEVEL && Level::INFO <= LevelFilter::current();
        #[cfg(feature = "otel")]
        let is_traced = upstream.otel.is_on(now);
        #[cfg(not(feature = "otel"))]
        let is_traced = false;
        if !is_listened && !is_traced {
            return None;
        }
        let shown = shown();
        let span = if is_listened { span(&upstream.name, shown.map(|shown| shown.method)) } else { Span::none() };
        Self::watch(span, upstream, of_task, shown)
    }

    #[cold]
    #[cfg_attr(not(feature = "otel"), allow(unused_variables))]
    fn watch(span: Span, upstream: &Arc<Upstream>, of_task: bool, shown: Option<Shown<'_>>) -> Option<Arc<Self>> {
        #[cfg(feature = "otel")]
        let otel = upstream.otel.found().and_then(|found| otel::CallTrace::begin(found, upstream, of_task, shown));
        #[cfg(feature = "otel")]
        let is_traced = otel.is_some();
        #[cfg(not(feature = "otel"))]
        let is_traced = false;
        (is_traced || !span.is_disabled()).then(|| {
            Arc::new(Self {
                span,
                #[cfg(feature = "otel")]
                otel,
            })
        })
    }

    /// Runs a part of the call that is not polled with it: what is logged in there belongs to the call too.
    pub(crate) fn around<R>(watched: Option<&Arc<Self>>, work: impl FnOnce() -> R) -> R {
        let Some(watched) = watched else { return work() };
        #[cfg(feature = "otel")]
        let _attempt = watched.otel.as_ref().map(otel::CallTrace::enter);
        watched.span.in_scope(work)
    }

    /// The call has ended.
    #[cold]
    #[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "spans of tracing do not show it"))]
    pub(crate) fn finish(&self, answered: bool, kind: ErrorKind, report: &Report) {
        self.record(report, report.ended().name());
        #[cfg(feature = "otel")]
        if let Some(otel) = &self.otel {
            otel.finish(answered, kind, report);
        }
    }

    fn record(&self, report: &Report, ended: &str) {
        if let Some(Outcome::Status(status)) = report.attempts().last().map(|last| last.outcome) {
            self.span.record("status", status);
        }
        self.span.record("retries", report.attempt_count().saturating_sub(1));
        self.span.record("ended", ended);
    }

    /// The call's future was dropped.
    #[cold]
    pub(crate) fn cancel(&self) {
        self.span.record("ended", CANCELLED);
        #[cfg(feature = "otel")]
        if let Some(otel) = &self.otel {
            otel.cancel();
        }
    }
}

/// What a call is called: `GET billing`, or the dependency's name alone.
fn name_of<'a>(upstream: &'a str, method: Option<&Method>) -> Cow<'a, str> {
    match method {
        Some(method) => Cow::Owned(format!("{method} {upstream}")),
        None => Cow::Borrowed(upstream),
    }
}

#[cold]
fn span(upstream: &str, method: Option<&Method>) -> Span {
    tracing::info_span!(
        target: "steadfast::call",
        "call",
        otel.name = name_of(upstream, method).as_ref(),
        upstream,
        method = method.map(Method::as_str),
        status = tracing::field::Empty,
        retries = tracing::field::Empty,
        ended = tracing::field::Empty,
    )
}

pin_project! {
    /// A call's future, polled inside of its span.
    pub(crate) struct Traced<F> {
        #[pin]
        call: F,
        watched: Option<Arc<Watched>>,
    }
}

impl<F> Traced<F> {
    #[inline]
    pub(crate) fn new(call: F, watched: Option<Arc<Watched>>) -> Self {
        Self { call, watched }
    }

    /// What watches the call.
    #[inline]
    pub(crate) fn watched(&self) -> Option<Arc<Watched>> {
        self.watched.clone()
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _inside = this.watched.as_ref().map(|watched| watched.span.enter());
        this.call.poll(cx)
    }
}
