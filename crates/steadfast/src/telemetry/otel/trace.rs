//! The spans of one call, and when they end.
//!
//! A call is an INTERNAL span that has a CLIENT span for each attempt: an attempt is what the conventions call a request,
//! and the upstream's own span is the child of the attempt that it answered. With `attempt_spans = false` the call is one
//! CLIENT span for all attempts. A guard's attempts are INTERNAL too: whoever knows the protocol in there (a database's
//! driver, another client) makes the CLIENT span, as a child of the attempt.
//!
//! The parent is the context that is current in OpenTelemetry where the call is first polled, else the trace of the request
//! being served (`steadfast::context`). What an attempt sends in `traceparent` is its span.
//!
//! Invariants: each span ends once, at the latest with the call's future; the histogram counts each attempt once, also one
//! that was dropped, also where no span is made of it.

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};
use std::time::Duration;

use http::Version;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    Tracer as _,
};
use opentelemetry::{Context, ContextGuard, KeyValue};
use pin_project_lite::pin_project;
use steadfast_http::TraceContext;
use steadfast_policy::Time;

use super::super::Shown;
use super::super::span::CANCELLED;
use super::request::{self, Request};
use super::source::Found;
use crate::context;
use crate::error::ErrorKind;
use crate::operation::Attempt;
use crate::report::{AttemptRecord, Report};
use crate::upstream::Upstream;

/// A call that OpenTelemetry is told of.
pub(crate) struct CallTrace {
    found: Arc<Found>,
    upstream: Arc<Upstream>,
    request: Option<Request>,
    /// With the call's span; none where only the histogram is told.
    call: Option<Context>,
    attempt_spans: bool,
    served: Option<TraceContext>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attempt: Option<Running>,
    /// That the last response came in.
    version: Option<Version>,
}

/// An attempt under way.
struct Running {
    started: Time,
    /// With the span that is current in it: its own, or the call's.
    context: Option<Context>,
}

impl CallTrace {
    /// `None` where there is nothing to tell: the call is made where telemetry is suppressed, or the SDK was shut down.
    #[cold]
    pub(crate) fn begin(
        found: Arc<Found>,
        upstream: &Arc<Upstream>,
        of_task: bool,
        shown: Option<Shown<'_>>,
    ) -> Option<Self> {
        let current = Context::current();
        if current.is_telemetry_suppressed() {
            return None;
        }
        let request = shown.as_ref().map(Request::new);
        let attempt_spans = shown.is_none_or(|shown| shown.settings.attempt_spans);
        let served = match shown {
            Some(shown) => shown.trace.cloned(),
            None if of_task => context::current_trace(),
            None => None,
        };
        let call = found.tracer.as_ref().and_then(|tracer| {
            let mut attributes = vec![named(upstream)];
            let mut kind = SpanKind::Internal;
            if let Some(request) = request.as_ref().filter(|_| !attempt_spans) {
                kind = SpanKind::Client;
                attributes.extend(request.attributes());
            }
            let name = match &request {
                Some(request) => format!("{} {}", request.name(), shown_as(upstream)),
                None => shown_as(upstream).to_owned(),
            };
            let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
            let parent = parent(current, served.as_ref());
            let span = parent.with_span(tracer.build_with_context(builder, &parent));
            span.span().span_context().is_valid().then_some(span)
        });
        let is_told = call.is_some() || (request.is_some() && found.duration.is_some());
        let (upstream, state) = (Arc::clone(upstream), Mutex::default());
        is_told.then_some(Self { found, upstream, request, call, attempt_spans, served, state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins. Returns the context in which the upstream is to see it.
    #[cold]
    pub(crate) fn begin_attempt(&self, attempt: Attempt) -> Option<TraceContext> {
        let context = self
            .call
            .as_ref()
            .map(|call| if self.attempt_spans { self.attempt_span(call, attempt.number) } else { call.clone() });
        let sent = context.as_ref().and_then(|context| sent(context.span().span_context(), self.served.as_ref()));
        self.lock().attempt = Some(Running { started: attempt.started, context });
        sent
    }

    fn attempt_span(&self, call: &Context, number: u32) -> Context {
        let Some(tracer) = &self.found.tracer else { return call.clone() };
        let (name, kind, mut attributes) = match &self.request {
            Some(request) => (request.name(), SpanKind::Client, request.attributes()),
            None => ("attempt".to_owned(), SpanKind::Internal, Vec::new()),
        };
        attributes.push(named(&self.upstream));
        attributes.extend(resend_count(number, self.request.is_some()));
        let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
        call.with_span(tracer.build_with_context(builder, call))
    }

    /// The attempt has ended; the version is that of its response.
    #[cold]
    pub(crate) fn end_attempt(&self, record: &AttemptRecord, version: Option<Version>) {
        let mut ending = Vec::with_capacity(3);
        let is_error = request::of_outcome(record.outcome, &mut ending);
        ending.extend(version.and_then(request::version));
        let attempt = {
            let mut state = self.lock();
            state.version = version;
            state.attempt.take()
        };
        self.end(attempt, record.duration, is_error, ending);
    }

    fn end(&self, attempt: Option<Running>, duration: Duration, is_error: bool, ending: Vec<KeyValue>) {
        let Some(attempt) = attempt else { return };
        if let (Some(histogram), Some(request)) = (&self.found.duration, &self.request) {
            let mut labels = request.labels();
            labels.extend(ending.iter().cloned());
            histogram.record(duration.as_secs_f64(), &labels);
        }
        if let Some(context) = attempt.context.filter(|_| self.attempt_spans) {
            end_span(&context, is_error, ending);
        }
    }

    /// Makes what the attempt does its span's children, for so long as this is kept.
    #[cold]
    pub(crate) fn enter(&self) -> Option<ContextGuard> {
        let attempt = self.lock().attempt.as_ref().and_then(|attempt| attempt.context.clone());
        attempt.or_else(|| self.call.clone()).map(Context::attach)
    }

    /// The call has ended.
    #[cold]
    pub(crate) fn finish(&self, is_answered: bool, kind: ErrorKind, report: &Report) {
        let Some(call) = &self.call else { return };
        let retries = report.attempt_count().saturating_sub(1);
        let last = report.attempts().last().map(|last| last.outcome);
        let mut ending = vec![
            KeyValue::new("steadfast.ended", report.ended().name()),
            KeyValue::new("steadfast.retries", i64::from(retries)),
        ];
        let error = match last {
            // 7.2: an attempt's own failure ends the call as `Unreachable`; else it was a limit of ours.
            Some(last) if is_answered || kind == ErrorKind::Unreachable => request::error_type(last),
            _ if is_answered => None,
            _ => Some(kind.name().to_owned()),
        };
        if !self.attempt_spans {
            if let Some(crate::report::Outcome::Status(status)) = last {
                ending.push(KeyValue::new("http.response.status_code", i64::from(status)));
            }
            ending.extend(resend_count(report.attempt_count(), true));
            ending.extend(self.lock().version.and_then(request::version));
        }
        let is_error = error.is_some();
        ending.extend(error.map(|error| KeyValue::new("error.type", error)));
        end_span(call, is_error, ending);
    }

    /// The call's future was dropped, and with it the attempt under way.
    #[cold]
    pub(crate) fn cancel(&self) {
        let error = || KeyValue::new("error.type", CANCELLED);
        let attempt = self.lock().attempt.take();
        let ran = attempt.as_ref().map_or(Duration::ZERO, |attempt| self.upstream.clock.now().since(attempt.started));
        self.end(attempt, ran, true, vec![error()]);
        if let Some(call) = &self.call {
            end_span(call, true, vec![KeyValue::new("steadfast.ended", CANCELLED), error()]);
        }
    }
}

/// The upstream, or the family of a guard that is one of several: names have few values.
fn shown_as(upstream: &Upstream) -> &str {
    request::cut(upstream.shown_as(), request::LONGEST)
}

fn named(upstream: &Upstream) -> KeyValue {
    KeyValue::new("steadfast.upstream", shown_as(upstream).to_owned())
}

fn end_span(context: &Context, is_error: bool, ending: Vec<KeyValue>) {
    let span = context.span();
    if span.is_recording() {
        span.set_attributes(ending);
        if is_error {
            // What it was is in `error.type`; a description would say it again.
            span.set_status(Status::error(""));
        }
    }
    span.end();
}

/// The ordinal of an attempt that is not the first, under the conventions' name for a request.
fn resend_count(number: u32, is_request: bool) -> Option<KeyValue> {
    let name = if is_request { "http.request.resend_count" } else { "steadfast.retry" };
    let count = i64::from(number.saturating_sub(1));
    (count > 0).then(|| KeyValue::new(name, count))
}

/// What a call's span is a child of.
fn parent(current: Context, served: Option<&TraceContext>) -> Context {
    match served {
        Some(served) if !current.span().span_context().is_valid() => current.with_remote_span_context(received(served)),
        _ => current,
    }
}

fn received(trace: &TraceContext) -> SpanContext {
    let state = trace.state().and_then(|state| state.to_str().ok());
    let state = state.and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let (trace_id, span_id) = (TraceId::from_bytes(trace.trace_id()), SpanId::from_bytes(trace.parent_id()));
    SpanContext::new(trace_id, span_id, TraceFlags::new(trace.flags()), true, state)
}

/// The context of a span, in the form in which it is sent. A state that OpenTelemetry does not take, and the W3C does, is
/// sent on as it came.
fn sent(span: &SpanContext, served: Option<&TraceContext>) -> Option<TraceContext> {
    let (trace_id, span_id, flags) = (span.trace_id(), span.span_id(), span.trace_flags().to_u8());
    let parent = format!("00-{trace_id:032x}-{span_id:016x}-{flags:02x}");
    let own = span.trace_state().header();
    let state = if own.is_empty() {
        served.filter(|served| served.trace_id() == trace_id.to_bytes()).and_then(TraceContext::state)
    } else {
        None
    };
    let state = state.map_or(own.as_bytes(), |state| state.as_bytes());
    TraceContext::parse([parent.as_bytes()], (!state.is_empty()).then_some(state))
}

pin_project! {
    /// An attempt's future, polled where its span is the current one.
    pub(crate) struct Within<'a, F> {
        #[pin]
        attempt: F,
        trace: Option<&'a CallTrace>,
    }
}

impl<'a, F> Within<'a, F> {
    pub(crate) fn new(attempt: F, trace: Option<&'a CallTrace>) -> Self {
        Self { attempt, trace }
    }
}

impl<F: Future> Future for Within<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _inside = this.trace.and_then(CallTrace::enter);
        this.attempt.poll(cx)
    }
}
