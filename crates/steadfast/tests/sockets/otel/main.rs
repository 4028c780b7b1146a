//! Spans and metrics as a receiver of OTLP gets them: an SDK, its exporter, and a server on a loopback port that reads the
//! official messages.
//!
//! The SDK is installed once for all tests of this process. Each test has a trace of its own to be found by.

// clippy's allowance for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod guards;
mod hops;
mod metrics;
mod receiver;
mod requests;
mod scene;
