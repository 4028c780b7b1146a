//! The walk-through of docs/orders.md, step by step, over sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod setting;
mod steps;
