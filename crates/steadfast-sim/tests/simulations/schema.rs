//! The schema for editors, and the page of documentation.

use serde_json::Value;
use steadfast_sim::outage::file::{SimulationFile, TABLES, reference, schema};
use steadfast_sim::scenario::files;

use crate::validator;
use crate::{GOOD, with};

const PAGE: &str = include_str!("../../../../docs/simulate.md");

fn passes(text: &str) -> bool {
    validator::passes(&schema(), text)
}

/// The simulations of the project are read, and the schema passes them. `.ci/run` runs them.
#[test]
fn the_simulations_of_the_project_pass() {
    let files = files(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../simulations")).unwrap();
    assert!(files.len() >= 5);
    for file in files {
        SimulationFile::read(&file).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(passes(&std::fs::read_to_string(&file).unwrap()), "{}", file.display());
    }
}

#[test]
fn mistakes_that_a_schema_can_tell_do_not_pass() {
    assert!(passes(GOOD));
    for (from, to) in [
        ("title = \"a\"\n", ""),
        ("title = \"a\"", "title = 1"),
        ("length = \"10s\"", "length = \"0s\""),
        ("length = \"10s\"", "length = 10"),
        ("base_url", "base_ulr"),
        ("fixed", "fixt"),
        ("[model.a]", "[model.a]\nworkers = 0"),
        ("[model.a]", "[model.a]\nbalancer = \"best\""),
        ("rate = 10", "rate = \"10\""),
        ("rate = 10", "arrivals = [1]"),
        ("\"down\"", "\"dwon\""),
        ("\"down\"", "\"down\"\nshare_of_calls = 2"),
        ("[[trigger]]", "[trigger]"),
        ("retries = 1", "retries = \"1\""),
        ("goodput = \"0.2..\"", "goodput = 1"),
        ("goodput = \"0.2..\"", "goodput = \"half\""),
        ("goodput = \"0.2..\"", "opened = -1"),
        ("goodput = \"0.2..\"", "recovery = \"10\""),
    ] {
        let text = with(from, to);
        assert!(!passes(&text), "{text}");
    }
    for to in ["opened = 0", "opened = \"1..\"", "recovery = \"..10s\"", "p99 = \"1ms..1.5s\"", "goodput = \"..1\""] {
        assert!(passes(&with("goodput = \"0.2..\"", to)), "{to}");
    }
}

#[test]
fn every_key_is_in_the_schema_and_in_the_page() {
    assert!(PAGE.contains(reference().trim_end()), "docs/simulate.md is to have this:\n\n{}", reference());
    let text = schema().to_string();
    for key in TABLES.iter().flat_map(|table| table.keys) {
        let meaning = Value::from(key.meaning).to_string();
        assert!(text.contains(meaning.trim_matches('"')), "{}", key.name);
    }
}

/// The examples of the page are simulations that come out as they expect.
#[test]
fn the_examples_of_the_page_come_out_as_they_expect() {
    let examples: Vec<&str> = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    let outcome = crate::run(examples[0], 1);
    assert!(outcome.missed.is_empty(), "{:?}", outcome.missed);
    assert!(passes(examples[0]));
    // The second is more of the first.
    let candidate = format!("{}\n{}", examples[0], examples[1]);
    assert!(passes(&candidate), "{candidate}");
    assert_eq!(crate::read(&candidate).policies.len(), 4);
}
