//! What a service's operators see: traces and metrics. Each lies behind a feature of its own.

#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "metrics")]
pub(crate) use metrics::Handles;
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
