//! Steadfast and its peers, side by side.
//!
//! A machine's speed drifts, by a factor of two on a shared one, so a figure on its own says little. Every comparison
//! here is made inside one run: the contenders take turns in short rounds whose order rotates ([`rounds`]), each ratio
//! is taken within a round, and the baseline enters twice under two names, so that a table also shows how far two equal
//! things came apart. What is reported is the median of the rounds, with the lowest and the highest.
//!
//! | module | what |
//! |---|---|
//! | [`options`] | the arguments both benchmarks understand |
//! | [`machine`] | CPU time, pinning, the counting child process |
//! | [`rounds`] | taking turns, medians, ratios |
//! | [`table`] | the table for people and the lines for machines |
//! | [`closure`] | one call of a closure through tower's stack and through Steadfast |
//! | [`http`] | one HTTP request through hyper, hyper-util, reqwest and Steadfast |

pub mod closure;
pub mod http;
pub mod machine;
pub mod options;
pub mod rounds;
pub mod table;

/// Whatever stops a benchmark.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
