//! The circuit breaker against the contract, on the machine alone: the cases C22 to C29, the statements of section 4,
//! and the bug reports A71 to A85 of other breakers.

mod cases;
mod kit;
