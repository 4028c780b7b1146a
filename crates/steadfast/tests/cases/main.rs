//! The acceptance cases of the contract, in virtual time, with no runtime: any slip to tokio's timers panics here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod breaker;
mod bulkhead;
mod cancellation;
mod closing;
mod closure;
mod codings;
mod context;
mod deadlines;
mod guard;
mod harness;
mod headers;
mod hostile;
mod layers;
mod rate_limit;
mod reload;
mod reports;
mod results;
mod retries;
mod services;
mod streaming;
mod streaming_attacks;
mod types;
mod uploads;
mod watch;
