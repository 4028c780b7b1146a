//! OpenTelemetry by its HTTP conventions (semantic conventions 1.x, `http-spans` and `http-metrics`): an INTERNAL span per
//! call, a CLIENT span per attempt, and the histogram `http.client.request.duration`.
//!
//! | file | decides |
//! |---|---|
//! | `source` | whether there is an SDK to tell |
//! | `trace` | which spans a call has, whose children they are, when they end |
//! | `request` | what they say of an HTTP request: the conventions' attributes, and which secrets are left out |
//!
//! Only the API is used, never an SDK, and no type of it is in a public signature: a service is free in what it installs.

mod request;
mod source;
mod trace;

pub(crate) use source::Source;
pub(crate) use trace::{CallTrace, Within};
