//! The pages of `docs/` about this crate, so that every example in them is compiled and run.

#[doc = include_str!("../../../docs/scenarios.md")]
struct Scenarios;

#[doc = include_str!("../../../docs/simulator.md")]
struct Simulator;
