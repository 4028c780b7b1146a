//! Random whole calls in virtual time, and an independent observer at both edges: whatever the settings, the upstream, the
//! callers and the operators are, the contract holds.
//!
//! One number makes one world. A test that fails names it, what is wrong, and prints the log of the smallest world in which
//! the same is wrong; `STEADFAST_SEED=1234 cargo test -p steadfast-sim --test whole_calls one_seed -- --ignored --nocapture`
//! does so for any.
//!
//! What the observer is worth is shown with faults that are planted in the shipped code (`planted`).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![forbid(unsafe_code)]

mod hunt;
mod log;
mod observer;
mod plan;
#[cfg(steadfast_planted)]
mod planted;
mod run;

use std::sync::Arc;
use std::time::Instant;

use plan::Plan;

/// As many calls as a debug build makes in some ten seconds on two cores.
const IN_EVERY_TEST_RUN: u64 = 300_000;

#[test]
fn whatever_happens_whole_calls_keep_the_contract() {
    let tally = hunt::calls(0, IN_EVERY_TEST_RUN);
    println!("{tally}");
    hunt::report(tally);
}

/// `cargo test -p steadfast-sim --test whole_calls a_million -- --ignored --nocapture`: about half a minute on two cores.
#[test]
#[ignore = "a step of its own in .ci/run"]
fn a_million_whole_calls_keep_the_contract() {
    let began = Instant::now();
    let tally = hunt::calls(1_000_000, 1_000_000);
    println!("{tally}, in {:.1} s", began.elapsed().as_secs_f64());
    hunt::report(tally);
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in 0..20 {
        let plan = Arc::new(Plan::new(seed));
        assert_eq!(run::run(&plan), run::run(&plan), "seed {seed}");
    }
}

/// The seed in `STEADFAST_SEED`, with its log.
#[test]
#[ignore = "by hand"]
fn one_seed() {
    let seed = std::env::var("STEADFAST_SEED").unwrap().parse().unwrap();
    let found = hunt::seed(seed);
    println!("{}", hunt::reproduction(seed, &found.complaints));
    assert!(found.complaints.is_empty());
}
