//! The layers in virtual time, with no runtime: any slip to tokio's timers panics here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod context;
mod harness;
mod readiness;
mod shed;
