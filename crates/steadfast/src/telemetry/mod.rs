//! What a call shows of itself to those who watch the service: spans of `tracing`, and with the feature `otel` spans and
//! metrics of OpenTelemetry.
//!
//! Nothing has to be switched on. A call makes a span where a subscriber wants one, and spans of OpenTelemetry once the
//! service has installed an SDK; where neither is, a call looks at two numbers in memory and does no more. Names,
//! attributes and kinds are a contract: they are on the page `docs/telemetry.md`.
//!
//! A span is made for a call, not for a part of one: a single policy ([`pieces`](crate::pieces), the single layers) has
//! none, since a stack of them is one call.

#[cfg(feature = "otel")]
pub(crate) mod otel;
mod span;

pub(crate) use span::{Shown, Traced, Watched};
