//! The programs themselves. Their `main` is not called here.

#![allow(dead_code, reason = "a test needs what a program does, not how it starts")]

#[path = "../../examples/resilient_client.rs"]
pub(crate) mod resilient_client;
