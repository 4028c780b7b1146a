//! The project's own scenarios.

use std::path::Path;

use steadfast_sim::scenario::{Scenario, files, play_in_time};

#[test]
fn every_scenario_of_the_project_passes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = files(&directory).unwrap();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        for scenario in Scenario::read(&file).unwrap_or_else(|problems| panic!("{problems}")) {
            let outcome = play_in_time(&scenario).unwrap();
            assert!(outcome.passed(), "{outcome}");
        }
    }
}
