//! What a client tells whoever listens, while it happens. Delivered outside of every lock.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use steadfast_http::Fault;
use steadfast_policy::breaker::Transition;

use crate::error::ErrorKind;
use crate::report::{AttemptRecord, Ended, WaitReason};
use crate::telemetry::Handles;
#[cfg(feature = "metrics")]
use crate::telemetry::metrics::Meter;

/// Something that happened to a call, or to an upstream's state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The circuit breaker changed its state.
    Transition {
        /// The upstream's name.
        upstream: Arc<str>,
        /// From where to where, and why.
        transition: Transition,
    },
    /// An attempt ended.
    Attempt {
        /// The upstream's name.
        upstream: Arc<str>,
        /// What it was.
        attempt: AttemptRecord,
    },
    /// A retry was decided on.
    Retry {
        /// The upstream's name.
        upstream: Arc<str>,
        /// The number of the attempt that will be made; the first retry is attempt 2.
        attempt: u32,
        /// How long it waits first.
        wait: Duration,
        /// Why so long.
        reason: WaitReason,
    },
    /// A retry that made sense was not paid for.
    BudgetDenied {
        /// The upstream's name.
        upstream: Arc<str>,
        /// [`Ended::BudgetCeiling`] or [`Ended::BudgetEfficacy`].
        reason: Ended,
    },
    /// An attempt was refused by our own limits; nothing was sent.
    Rejected {
        /// The upstream's name.
        upstream: Arc<str>,
        /// By which limit.
        kind: ErrorKind,
        /// When it makes sense to come back, where that is known.
        retry_after: Option<Duration>,
    },
    /// A fallback was served instead of what the dependency did not bring.
    Degraded {
        /// The dependency's name.
        upstream: Arc<str>,
        /// Why its call ended without a value.
        reason: Ended,
    },
    /// The body of a response that was handed over as it came has ended; its call had ended at the head.
    BodyEnded {
        /// The upstream's name.
        upstream: Arc<str>,
        /// What ended it early; `None`: it came whole. A body that is dropped tells nothing.
        fault: Option<Fault>,
        /// How many bytes came, decoded.
        bytes: u64,
        /// How long it took, from the head.
        duration: Duration,
    },
    /// A call was dropped before it ended: its caller gave it up. It is no verdict, and is not [`Ended`](Self::Ended) too.
    Cancelled {
        /// The upstream's name.
        upstream: Arc<str>,
        /// How many attempts had begun.
        attempts: u32,
        /// How long it had taken by then.
        duration: Duration,
    },
    /// A call ended.
    Ended {
        /// The upstream's name.
        upstream: Arc<str>,
        /// Why: the one reason that its report has.
        ended: Ended,
        /// Whether there is something to return: a response, or an operation's value.
        answered: bool,
        /// How many attempts were made.
        attempts: u32,
        /// How long it took as a whole.
        duration: Duration,
    },
}

/// Where events go: to the log, and to whoever listens. Called on the calling task, outside of every lock: a hook may
/// read snapshots, and should return soon. One that panics is noted in the log, and changes nothing.
#[derive(Clone, Default)]
pub(crate) struct EventHook {
    hook: Option<Arc<Hook>>,
    #[cfg(feature = "metrics")]
    meter: Option<Arc<Meter>>,
}

type Hook = dyn Fn(&Event) + Send + Sync;

impl EventHook {
    /// The same, with another hook.
    pub(crate) fn with(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Has everything counted by this meter.
    #[cfg(feature = "metrics")]
    pub(crate) fn count_in(&mut self, meter: Arc<Meter>) {
        self.meter = Some(meter);
    }

    /// Where it counts, if it does.
    #[cfg(feature = "metrics")]
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.meter.as_deref()
    }

    /// The handles, if anybody counts.
    #[cfg(feature = "metrics")]
    #[inline]
    fn handles(&self) -> Option<&Handles> {
        self.meter.as_ref()?.handles()
    }

    /// Nobody counts: the feature is off.
    #[cfg(not(feature = "metrics"))]
    #[inline]
    fn handles(&self) -> Option<&Handles> {
        None
    }

    /// Tells what `event` makes, if anybody could hear it.
    #[cold]
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        let handles = self.handles();
        if handles.is_none() && self.hook.is_none() && !tracing::enabled!(tracing::Level::WARN) {
            return;
        }
        let event = event();
        if let Some(handles) = handles {
            handles.count(&event);
        }
        log(&event);
        let Some(hook) = &self.hook else { return };
        let _in_hook = InHook(HOOK.replace(true));
        // Events are told while permits and slots change hands, and while calls are dropped: a hook that panics must not
        // lose any, nor end the process with a panic inside a panic.
        if catch_unwind(AssertUnwindSafe(|| hook(&event))).is_err() {
            tracing::error!("an event hook panicked; the call goes on");
        }
    }

    /// Whether anybody hears of what happens on every call.
    #[inline(always)]
    pub(crate) fn hears_all(&self) -> bool {
        self.hook.is_some() || self.handles().is_some() || tracing::enabled!(tracing::Level::DEBUG)
    }

    /// The same for what happens on every call, which the log shows at its finest levels only.
    #[inline]
    pub(crate) fn emit_fine(&self, event: impl FnOnce() -> Event) {
        if self.hook.is_some() || tracing::enabled!(tracing::Level::DEBUG) {
            self.emit(event);
        } else if let Some(handles) = self.handles() {
            handles.count(&event());
        }
    }

    /// Tells that a call waited; only metrics are told, as the report says it of each call.
    pub(crate) fn waited(&self, reason: WaitReason, duration: Duration) {
        if let Some(handles) = self.handles() {
            handles.count_wait(reason, duration);
        }
    }
}

thread_local! {
    static HOOK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in an event hook, where nothing may wait: neither for a call, nor for one of its own upstream,
/// which would tell the hook of itself.
pub(crate) fn is_in_hook() -> bool {
    HOOK.get()
}

/// Marks, until it is dropped, that this thread is in an event hook.
struct InHook(bool);

impl Drop for InHook {
    fn drop(&mut self) {
        HOOK.set(self.0);
    }
}

/// The event's line in the log: the upstream and what happened, never a path, a query, or an address.
fn log(event: &Event) {
    match event {
        Event::Transition { upstream, transition } => {
            let (from, to, why) = (transition.from, transition.to, transition.why);
            tracing::warn!(%upstream, ?from, ?to, ?why, "circuit breaker changed its state");
        }
        Event::Attempt { upstream, attempt } => {
            let (number, duration, outcome) = (attempt.number, attempt.duration, attempt.outcome.name());
            tracing::trace!(%upstream, number, ?duration, %outcome, sent = attempt.sent.name(), "attempt");
        }
        Event::Retry { upstream, attempt, wait, reason } => {
            tracing::info!(%upstream, attempt, ?wait, reason = reason.name(), "retry");
        }
        Event::BudgetDenied { upstream, reason } => {
            tracing::warn!(%upstream, %reason, "the retry budget denied a retry");
        }
        Event::Degraded { upstream, reason } => {
            tracing::warn!(%upstream, %reason, "degraded: a fallback was served");
        }
        Event::Ended { upstream, ended, answered, attempts, duration } => {
            tracing::debug!(%upstream, %ended, answered, attempts, ?duration, "call ended");
        }
        Event::Cancelled { upstream, attempts, duration } => {
            tracing::debug!(%upstream, attempts, ?duration, "call cancelled");
        }
        Event::BodyEnded { upstream, fault, bytes, duration } => {
            let fault = fault.map_or("none", Fault::name);
            tracing::debug!(%upstream, fault, bytes, ?duration, "body ended");
        }
        Event::Rejected { upstream, kind, retry_after } => {
            tracing::info!(%upstream, %kind, ?retry_after, "refused, nothing sent");
        }
    }
}

impl fmt::Debug for EventHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.hook.is_some() { "EventHook(set)" } else { "EventHook(none)" })
    }
}
