//! The command as a check: what it prints, and its exit status.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn acceptance(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steadfast-acceptance")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const ONE_CELL: [&str; 4] = ["--only", "budget.G", "--cell", "1 calls a minute, new process"];

#[test]
fn thresholds_that_are_met_are_a_success() {
    let output = acceptance(&[&ONE_CELL[..], &["--seeds", "3"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("3 runs, "), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1 thresholds, 0 missed"), "{}", text(&output.stdout));
}

#[test]
fn the_same_seeds_give_the_same_text_with_any_number_of_jobs() {
    let with = |jobs| acceptance(&[&ONE_CELL[..], &["--jobs", jobs]].concat()).stdout;
    assert_eq!(text(&with("1")), text(&with("3")));
}

#[test]
fn what_cannot_be_run_is_neither() {
    for arguments in [&["--only", "budget.Z"][..], &["--seeds", "0"], &["--fast"]] {
        let output = acceptance(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(acceptance(&["--help"]).status.code(), Some(0));
}
