//! The circuit breaker's rule: against a slow and obvious reference, against the plain rule that it refines, and its
//! properties, over random histories and by example.

// Helpers outside of `#[test]` functions may fail loudly too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// proptest's macros name `Arc`.
#![allow(clippy::disallowed_types)]

mod against_reference;
mod examples;
mod history;
mod plain_rule;
mod properties;
mod reconfigure;
mod reference;
