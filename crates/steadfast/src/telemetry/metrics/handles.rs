//! What one upstream's calls are counted in: handles that were asked for once, and what an event does to them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Histogram, Key, Label as KeyLabel, Level, Metadata, Recorder, SharedString, Unit};
use steadfast_policy::breaker::{State, Why};

use super::names::{self, BodyEnd, Kind, Metric, OutcomeClass};
use crate::error::ErrorKind;
use crate::event::Event;
use crate::report::{Ended, WaitReason};

pub(super) const METADATA: Metadata<'_> = Metadata::new("steadfast", Level::INFO, Some("steadfast"));

/// Where the calls of one upstream are counted, once there is somebody who counts. Guards of one kind share one.
pub(crate) struct Meter {
    name: Arc<str>,
    handles: OnceLock<Handles>,
}

impl Meter {
    /// Asks the recorder that is installed now, if there is one.
    pub(super) fn new(name: Arc<str>) -> Arc<Self> {
        let meter = Self { name, handles: OnceLock::new() };
        metrics::with_recorder(|recorder| meter.listen_to(recorder));
        Arc::new(meter)
    }

    /// The value of the label `upstream`.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Asks this recorder for handles, unless another one was asked before.
    pub(super) fn listen_to(&self, recorder: &dyn Recorder) {
        if self.handles.get().is_none() && is_one(recorder) {
            describe(recorder);
            let _ = self.handles.set(Handles::new(recorder, &self.name));
        }
    }

    /// The handles, if anybody counts.
    #[inline]
    pub(crate) fn handles(&self) -> Option<&Handles> {
        self.handles.get()
    }
}

/// Whether it is a recorder at all. The facade's stand-in where none is installed is a type without fields, and nothing else
/// tells it from others.
pub(super) fn is_one(recorder: &dyn Recorder) -> bool {
    size_of_val(recorder) > 0
}

/// Tells the recorder what each metric says.
pub(super) fn describe(recorder: &dyn Recorder) {
    for metric in names::TABLE {
        let unit = Some(if metric.in_seconds { Unit::Seconds } else { Unit::Count });
        let (name, help) = (metric.name.into(), SharedString::const_str(metric.help));
        match metric.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
            Kind::Histogram => recorder.describe_histogram(name, unit, help),
        }
    }
}

/// One time series: the metric of this upstream, with these values for its other labels.
pub(super) fn key(metric: &Metric, upstream: &Arc<str>, values: &[&'static str]) -> Key {
    let upstream = SharedString::from_shared(Arc::clone(upstream));
    let others = metric.labels.iter().skip(1).zip(values);
    let labels = others.map(|(label, value)| KeyLabel::from_static_parts(label.name(), value));
    Key::from_parts(metric.name, [KeyLabel::new("upstream", upstream)].into_iter().chain(labels).collect::<Vec<_>>())
}

/// A handle for each value of a label; the most frequent one first.
struct ByValue<V, H>(Box<[(V, H)]>);

impl<V: Copy + PartialEq, H> ByValue<V, H> {
    fn new(values: &[V], handle: impl Fn(V) -> H) -> Self {
        Self(values.iter().map(|value| (*value, handle(*value))).collect())
    }

    #[inline]
    fn of(&self, value: V) -> Option<&H> {
        self.0.iter().find(|(known, _)| *known == value).map(|(_, handle)| handle)
    }
}

impl<V: Copy + PartialEq> ByValue<V, Counter> {
    #[inline]
    fn count(&self, value: V) {
        if let Some(counter) = self.of(value) {
            counter.increment(1);
        }
    }
}

/// All of one upstream's counters and histograms, registered, so that they show as zero from the beginning: the first
/// failure is a change that an alert can see.
pub(crate) struct Handles {
    calls: ByValue<Ended, Counter>,
    call_duration: Histogram,
    attempts: ByValue<OutcomeClass, Counter>,
    attempt_duration: Histogram,
    retries: ByValue<WaitReason, Counter>,
    denials: ByValue<Ended, Counter>,
    rejections: ByValue<ErrorKind, Counter>,
    transitions: ByValue<(State, Why), Counter>,
    waits: ByValue<WaitReason, Histogram>,
    degraded: Counter,
    bodies: ByValue<BodyEnd, Counter>,
    cancelled: Counter,
}

impl Handles {
    fn new(recorder: &dyn Recorder, upstream: &Arc<str>) -> Self {
        let counter = |metric: &Metric, values: &[&'static str]| {
            recorder.register_counter(&key(metric, upstream, values), &METADATA)
        };
        let histogram = |metric: &Metric, values: &[&'static str]| {
            recorder.register_histogram(&key(metric, upstream, values), &METADATA)
        };
        Self {
            calls: ByValue::new(names::ENDED, |ended| counter(&names::CALLS, &[ended.name()])),
            call_duration: histogram(&names::CALL_DURATION, &[]),
            attempts: ByValue::new(names::OUTCOMES, |outcome| counter(&names::ATTEMPTS, &[outcome.name()])),
            attempt_duration: histogram(&names::ATTEMPT_DURATION, &[]),
            retries: ByValue::new(names::RETRY_REASONS, |reason| counter(&names::RETRIES, &[reason.name()])),
            denials: ByValue::new(names::DENIALS, |reason| counter(&names::BUDGET_DENIALS, &[reason.name()])),
            rejections: ByValue::new(names::REJECTIONS, |kind| counter(&names::REJECTIONS_BY_KIND, &[kind.name()])),
            transitions: ByValue::new(names::TRANSITIONS, |(to, why)| {
                counter(&names::BREAKER_TRANSITIONS, &[to.name(), why.name()])
            }),
            waits: ByValue::new(names::WAIT_REASONS, |reason| histogram(&names::WAIT_DURATION, &[reason.name()])),
            degraded: counter(&names::DEGRADED, &[]),
            cancelled: counter(&names::CANCELLED_CALLS, &[]),
            bodies: ByValue::new(names::BODY_ENDS, |end| counter(&names::STREAMED_BODIES, &[end.name()])),
        }
    }

    /// Counts what happened.
    #[inline]
    pub(crate) fn count(&self, event: &Event) {
        match event {
            Event::Attempt { attempt, .. } => {
                self.attempts.count(attempt.outcome.into());
                self.attempt_duration.record(attempt.duration);
            }
            Event::Ended { ended, duration, .. } => {
                self.calls.count(*ended);
                self.call_duration.record(*duration);
            }
            Event::Transition { transition, .. } => self.transitions.count((transition.to, transition.why)),
            Event::Retry { reason, .. } => self.retries.count(*reason),
            Event::BudgetDenied { reason, .. } => self.denials.count(*reason),
            Event::Rejected { kind, .. } => self.rejections.count(*kind),
            Event::Cancelled { .. } => self.cancelled.increment(1),
            Event::Degraded { .. } => self.degraded.increment(1),
            Event::BodyEnded { fault, .. } => self.bodies.count((*fault).into()),
        }
    }

    /// Counts a wait that is over.
    pub(crate) fn count_wait(&self, reason: WaitReason, duration: Duration) {
        if let Some(waits) = self.waits.of(reason) {
            waits.record(duration);
        }
    }
}
