//! A service on axum, and one on bare hyper, over loopback sockets: what a caller sees, and what an upstream does
//! (C36-C43 of the seed's cases; contract 7.3, 8, 10.1).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bare_hyper;
mod caller;
mod cases;
mod service;
mod shedding;
mod two_users;
mod upstream;
