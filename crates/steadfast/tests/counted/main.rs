//! Metrics, as a recorder gets them; and what is written about them elsewhere: the page, the dashboard, the alert rules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod calls;
mod ops;
mod queries;
mod recorder;
mod upstreams;
mod world;
