//! What HTTP means to Steadfast. Pure: no runtime, no clock, no I/O, no lock.
//!
//! | module | decides |
//! |---|---|
//! | [`base_url`] | which text is an upstream's address |
//! | [`target`] | where a request goes: never anywhere but below that address |
//! | [`repeat`] | whether a request may be sent twice |
//! | [`retry_after`](mod@retry_after) | how long the upstream asked us to wait |
//! | [`classify`] | what a response or a fault tells the policies |
//! | [`headers`] | which of several sources a header comes from |
//! | [`context`] | what a call inherits from the request that is being served |
//! | [`trace`] | whether a W3C trace context is valid, and what an attempt sends |
//! | [`time_left`] | how the other side is told how much time is left |
//! | [`payload`] | a body's bytes and type, so that it can be sent again |
//! | [`problem`] | how a failed call looks at a service's edge |
//!
//! [`fault`] and [`status`] are the vocabulary. Whatever comes from outside (a header, a configured URL, a path made
//! from data) is read strictly: what is not understood is refused or ignored, never repaired, and no bytes panic.

pub mod base_url;
pub mod classify;
pub mod context;
pub mod fault;
pub mod headers;
pub mod payload;
pub mod problem;
pub mod repeat;
pub mod retry_after;
pub mod status;
pub mod target;
#[cfg(test)]
mod testing;
pub mod time_left;
pub mod trace;

pub use base_url::{BaseUrl, BaseUrlError};
pub use classify::{Rules, judge_fault, judge_response};
pub use context::CallContext;
pub use fault::{Fault, Sent};
pub use headers::{CallHeaders, InvalidHeader, Layers, X_REQUEST_ID, compose};
pub use payload::{Payload, PayloadError};
pub use problem::ProblemDetails;
pub use repeat::{EmptyIdempotencyKey, IDEMPOTENCY_KEY, Repeat};
pub use retry_after::retry_after;
pub use status::StatusSet;
pub use target::{TargetError, encode_segment};
pub use trace::{TRACEPARENT, TRACESTATE, TraceContext};
