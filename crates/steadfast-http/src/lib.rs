//! What HTTP means to Steadfast. Pure: no runtime, no clock, no I/O, no lock.
//!
//! | module | decides |
//! |---|---|
//! | [`base_url`] | which text is an upstream's address |
//! | [`target`] | where a request goes: never anywhere but below that address |
//! | [`repeat`] | whether a request may be sent twice |
//! | [`retry_after`](mod@retry_after) | how long the upstream asked us to wait |
//! | [`classify`] | what a response or a fault tells the policies |
//!
//! [`fault`] and [`status`] are the vocabulary. Whatever comes from outside (a header, a configured URL, a path made
//! from data) is read strictly: what is not understood is refused or ignored, never repaired, and no bytes panic.

pub mod base_url;
pub mod classify;
pub mod fault;
pub mod repeat;
pub mod retry_after;
pub mod status;
pub mod target;

pub use base_url::{BaseUrl, BaseUrlError};
pub use classify::{Rules, judge_fault, judge_response};
pub use fault::{Fault, Sent};
pub use repeat::{EmptyIdempotencyKey, IDEMPOTENCY_KEY, Repeat};
pub use retry_after::retry_after;
pub use status::StatusSet;
pub use target::{TargetError, encode_segment};
