//! What HTTP means to Steadfast. Pure: no runtime, no clock, no I/O.

pub mod base_url;
pub mod fault;
pub mod status;

pub use base_url::BaseUrl;
pub use fault::{Fault, Sent};
pub use status::StatusSet;
