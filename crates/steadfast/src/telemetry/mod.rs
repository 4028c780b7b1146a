//! What a call shows of itself to those who watch the service: spans of `tracing`, and with the feature `otel` spans and
//! metrics of OpenTelemetry; with the feature `metrics` counters for any recorder.
//!
//! Nothing has to be switched on. A call makes a span where a subscriber wants one, and spans of OpenTelemetry once the
//! service has installed an SDK; where neither is, a call looks at two numbers in memory and does no more. Names,
//! attributes and kinds are a contract: they are on the page `docs/telemetry.md`.
//!
//! A span is made for a call, not for a part of one: a single policy ([`pieces`](crate::pieces), the single layers) has
//! none, since a stack of them is one call.

#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "otel")]
pub(crate) mod otel;
mod span;

#[cfg(feature = "metrics")]
pub(crate) use metrics::Handles;

pub(crate) use span::{Shown, Traced, Watched};
#[cfg(not(feature = "metrics"))]
pub(crate) use uncounted::Handles;

/// What there is in the place of metrics without their feature: a type that has no value.
#[cfg(not(feature = "metrics"))]
mod uncounted {
    use std::time::Duration;

    use crate::event::Event;
    use crate::report::WaitReason;

    pub(crate) enum Handles {}

    impl Handles {
        pub(crate) fn count(&self, _: &Event) {
            match *self {}
        }

        pub(crate) fn count_wait(&self, _: WaitReason, _: Duration) {
            match *self {}
        }
    }
}
