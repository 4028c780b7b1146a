//! The circuit breaker against the contract, on the machine alone: the seed's cases C22 to C31, the statements of
//! section 4, and what other breakers got wrong (bug reports A71 to A85).

// Helpers outside of `#[test]` functions may fail loudly too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod closed_and_open;
mod half_open;
mod kit;
mod operator;
mod reconfigure;
mod reports;
mod seen_from_outside;
mod start_of_the_cool_down;
