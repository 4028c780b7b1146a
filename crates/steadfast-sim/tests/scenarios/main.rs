//! Scenario files: what is wrong in one, what differs, what each key does, and that those of the project pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod differences;
mod files;
mod keys;
mod problems;
mod project;
mod schema;
mod sockets;
mod stages;
#[path = "../../../steadfast/tests/config/schema/validator.rs"]
mod validator;

use steadfast_sim::scenario::{Outcome, Scenario, play_in_time};

/// The one scenario of this text.
fn read(text: &str) -> Scenario {
    let mut scenarios = Scenario::parse("a.toml", text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert_eq!(scenarios.len(), 1);
    scenarios.remove(0)
}

/// What comes of these tables, below the title.
fn play(tables: &str) -> Outcome {
    play_in_time(&read(&format!("title = \"a\"\nwhy = \"b\"\n{tables}"))).unwrap()
}

/// The same of a scenario that passes.
fn passes(tables: &str) {
    let outcome = play(tables);
    assert!(outcome.passed(), "{outcome}");
}

/// The same of one that does not: what differs.
fn differs(tables: &str) -> Vec<[String; 3]> {
    let outcome = play(tables);
    assert!(!outcome.passed(), "{tables}");
    outcome.differences.into_iter().map(|one| [one.what, one.expected, one.seen]).collect()
}
