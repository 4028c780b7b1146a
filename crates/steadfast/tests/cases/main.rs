//! The acceptance cases of the contract, in virtual time, with no runtime: any slip to tokio's timers panics here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod breaker;
mod bulkhead;
mod cancellation;
mod cancelled;
mod closing;
mod closure;
mod codings;
mod context;
mod deadlines;
mod guard;
mod guard_blocking;
mod guards;
mod harness;
mod headers;
mod hostile;
mod hostile_guard;
mod layers;
mod pieces;
mod pieces_blocking;
mod pieces_stacked;
mod profiles;
mod rate_limit;
mod rate_proof;
mod reload;
mod reports;
mod results;
mod retries;
mod services;
mod snapshot_data;
mod streaming;
mod streaming_attacks;
mod testkit;
mod types;
mod uploads;
mod watch;
