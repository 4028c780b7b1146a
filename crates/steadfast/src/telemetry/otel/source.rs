//! Whether the service has installed an SDK of OpenTelemetry, asked so that the answer "no" costs nothing.
//!
//! The API does not tell, and gives a stand-in where there is none. Each upstream looks at its first call, and then once in
//! a second of its clock at the most; in between a call reads two numbers. So an SDK may be installed at any time, replaced,
//! or shut down: calls that begin a second later know.
//!
//! Limits: a clock that stands still looks once only.

use std::mem::size_of_val;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::metrics::{Histogram, MeterProvider};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, Tracer as _,
};
use opentelemetry::{Context, InstrumentationScope};
use steadfast_policy::Time;

/// How long an answer counts.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The bounds that the conventions advise for a duration in seconds.
const BOUNDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// What an SDK gave us to tell it with; at least one of them.
pub(crate) struct Found {
    pub(super) tracer: Option<BoxedTracer>,
    pub(super) duration: Option<Histogram<f64>>,
    /// Whose the histogram is. It is not kept alive: it may be shut down while we know of it.
    meters: Weak<dyn MeterProvider + Send + Sync>,
}

/// Where an upstream's calls learn whether there is an SDK.
pub(crate) struct Source {
    look_at: AtomicU64,
    is_on: AtomicBool,
    found: ArcSwapOption<Found>,
}

impl Source {
    pub(crate) fn new() -> Self {
        Self { look_at: AtomicU64::new(0), is_on: AtomicBool::new(false), found: ArcSwapOption::empty() }
    }

    /// Whether somebody is to be told of a call that begins now.
    #[inline]
    pub(crate) fn is_on(&self, now: Time) -> bool {
        if now.as_nanos() >= self.look_at.load(Ordering::Relaxed) {
            self.look(now);
        }
        self.is_on.load(Ordering::Relaxed)
    }

    /// What was found when it was last looked for.
    pub(crate) fn found(&self) -> Option<Arc<Found>> {
        self.found.load_full()
    }

    /// Several threads may look at once, and find the same.
    #[cold]
    fn look(&self, now: Time) {
        let found = Found::look(self.found.load_full().as_deref());
        let is_on = found.is_some();
        self.found.store(found.map(Arc::new));
        self.is_on.store(is_on, Ordering::Relaxed);
        self.look_at.store((now + LOOK_EVERY).as_nanos(), Ordering::Relaxed);
    }
}

impl Found {
    fn look(before: Option<&Self>) -> Option<Self> {
        let scope = || InstrumentationScope::builder("steadfast").with_version(env!("CARGO_PKG_VERSION")).build();
        let tracer = Some(global::tracer_with_scope(scope())).filter(|tracer| !is_stand_in(tracer));
        let provider = global::meter_provider();
        let meters = Arc::downgrade(&provider);
        let known = before.filter(|before| Weak::ptr_eq(&before.meters, &meters));
        let duration = match known {
            Some(known) => known.duration.clone(),
            // The API's own stand-in has no state; one that keeps what it is told must have some.
            None if size_of_val(&*provider) == 0 => None,
            None => {
                let meter = provider.meter_with_scope(scope());
                let histogram = meter.f64_histogram("http.client.request.duration").with_unit("s");
                let histogram = histogram.with_description("Duration of HTTP client requests.");
                Some(histogram.with_boundaries(BOUNDS.to_vec()).build())
            }
        };
        (tracer.is_some() || duration.is_some()).then_some(Self { tracer, duration, meters })
    }
}

/// Whether the tracer is the API's own, which makes no spans. It says the parent's context for its own; an SDK never does,
/// and makes nothing at all where telemetry is suppressed: this question leaves no trace.
fn is_stand_in(tracer: &BoxedTracer) -> bool {
    let id = SpanId::from(1);
    let parent = SpanContext::new(TraceId::from(1), id, TraceFlags::default(), true, TraceState::NONE);
    let parent = Context::new().with_remote_span_context(parent).with_telemetry_suppressed();
    let span = tracer.build_with_context(SpanBuilder::from_name("steadfast"), &parent);
    span.span_context().span_id() == id
}
