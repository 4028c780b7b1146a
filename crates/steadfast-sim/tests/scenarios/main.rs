//! Scenario files: what is wrong in one, what differs, and that those of the project pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod project;
