//! The client that a service uses to call other services.

pub mod config;
pub mod transport;
