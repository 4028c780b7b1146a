//! What a client tells whoever listens, while it happens. Delivered outside of every lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast_policy::breaker::Transition;

use crate::error::ErrorKind;
use crate::report::{AttemptRecord, Ended, WaitReason};

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
}

/// Where events go. Called on the calling task, outside of every lock: it may read snapshots, and should return soon.
#[derive(Clone, Default)]
pub(crate) struct EventHook(Option<Arc<dyn Fn(&Event) + Send + Sync>>);

impl EventHook {
    pub(crate) fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Emits what `event` makes, if anybody listens.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if let Some(hook) = &self.0 {
            hook(&event());
        }
    }
}

impl fmt::Debug for EventHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "EventHook(set)" } else { "EventHook(none)" })
    }
}
