//! Two of the programs as `cargo run --example` starts them.

use std::path::PathBuf;
use std::process::Command;

use crate::{RESILIENT_CLIENT, TARIFFS};

/// The example's binary, which `cargo test` builds beside the tests unless it is told which target to test.
fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

fn assert_prints(name: &str, facts: &[&str]) {
    let binary = binary(name);
    let built = "it is built by `cargo test -p steadfast`, and by `cargo build -p steadfast --examples`";
    assert!(binary.exists(), "{} is missing: {built}", binary.display());
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success(), "{name} ended with {}: {output:?}", output.status);
    let lines: Vec<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(lines, facts, "{name} prints something else; if it is only old, {built}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_resilient_client_runs() {
    assert_prints("resilient_client", &RESILIENT_CLIENT);
}

#[test]
fn tariffs_runs() {
    assert_prints("tariffs", &TARIFFS);
}
