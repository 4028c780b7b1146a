//! The thresholds that the retry budget and the circuit breaker have to meet, checked with the shipped client in simulated
//! outages.
//!
//! ```sh
//! cargo run --release -p steadfast-acceptance                  # all of them, five seeds
//! cargo run --release -p steadfast-acceptance -- --quick       # a few, one seed
//! ```
//!
//! A crate of its own, and no example of the simulator: nobody learns from it how to use that, and it holds a rule that no
//! user should take for one of ours. Nothing of a shipped policy is written again here. The sections are lists of checks
//! ([`budget`], [`breaker`]), a check is a measure of one or two trials and a threshold ([`check`]), a trial is a scenario
//! ([`scenario`]) with a rule ([`rules`]); [`pool`] runs each trial once for each seed.
//!
//! `--quick` holds the run of one seed against the thresholds for means as they are: that is stricter than what they were
//! made for, and possible because a seed's run is always the same.
//!
//! Limits: a run is one thread; thresholds for means are not widened by the spread of five seeds.

pub mod breaker;
pub mod budget;
pub mod check;
pub mod figures;
mod list;
pub mod options;
pub mod pool;
mod rival;
pub mod rules;
pub mod scenario;
pub mod table;

/// What went wrong, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The checks that are asked for, in order.
pub fn selected(options: &options::Options) -> Vec<check::Check> {
    let all = budget::checks().into_iter().chain(breaker::checks());
    all.filter(|check| (!options.quick || check.quick) && options.includes(check)).collect()
}
