//! The transport on real sockets: every test plays the upstream byte by byte.
//!
//! These are the only tests that wait for real. Timeouts are short, upper bounds generous, and everything is bounded.

// clippy's allowance for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod alarms;
mod basics;
mod blocking;
mod cancel;
mod capacity;
mod client;
mod conformance;
mod framing;
mod gzip;
mod h2_attacks;
mod h2_basics;
mod h2_departures;
mod h2_faults;
mod h2_limits;
mod h2_peer;
mod h2_sharing;
mod h2_tls;
mod h2_waits;
mod proxy;
mod reload;
mod resets;
mod server;
mod slow_source;
mod streaming;
mod stress;
mod timeouts;
mod tls;
mod tls_config;
mod tls_failure;
mod tls_identity;
mod tls_reload;
mod tls_server;
