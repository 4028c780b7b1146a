//! The command as its users meet it: the built binary, its output and its exit status.
//!
//! `sockets` drives it against scripted servers on loopback, one test per case of the contract.

// The lint's exception for tests does not reach the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod adoption;
mod check;
mod completions;
mod demo;
mod help;
mod init;
mod overrides;
mod scenarios;
mod schema;
mod simulate;
mod sockets;
mod support;
mod usage;
