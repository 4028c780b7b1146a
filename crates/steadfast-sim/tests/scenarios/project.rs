//! The project's own scenarios.

use std::path::Path;

use steadfast_sim::scenario::{Scenario, files, play_in_time};

#[test]
fn every_scenario_of_the_project_passes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = files(&directory).unwrap();
    let readme = std::fs::read_to_string(directory.join("README.md")).unwrap();
    let named: std::collections::BTreeSet<&str> = readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|to| to.ends_with(".toml"))
        .collect();
    assert!(named.len() > 30);
    for name in named {
        assert!(files.iter().any(|file| file.ends_with(name)), "README.md names {name}, which is not there");
    }
    for file in files {
        for scenario in Scenario::read(&file).unwrap_or_else(|problems| panic!("{problems}")) {
            let outcome = play_in_time(&scenario).unwrap();
            assert!(outcome.passed(), "{outcome}");
        }
    }
}
