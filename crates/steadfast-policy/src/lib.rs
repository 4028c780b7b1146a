//! The decisions of Steadfast, as plain state machines.
//!
//! Nothing here waits, reads a clock, takes a lock, or does I/O. Time is a [`Time`] that the caller passes in,
//! randomness a `u64` that the caller draws, and every decision and event is a return value. Time that goes backwards
//! means that no time has passed. That is what makes each rule provable in virtual time, and what lets the simulator
//! run the shipped code instead of a model of it.
//!
//! | module | decides |
//! |---|---|
//! | [`deadline`] | the one instant at which a call must be over |
//! | [`backoff`] | how long to wait before a retry |
//! | [`budget`] | whether a retry may be paid for |
//! | [`breaker`] | whether the upstream is called at all |
//! | [`mod@line`] | when an attempt may start: the bulkhead's slot and the rate limit's place, one line for both |
//! | [`retry`] | after an attempt: return, give up (and why), or try again (and when) |
//!
//! [`judgement`] is the vocabulary between an attempt and these rules.

pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod deadline;
pub mod judgement;
pub mod line;
pub mod retry;
pub mod time;

pub use judgement::{Advice, Answer, Cause, Judgement, Verdict};
pub use time::Time;
