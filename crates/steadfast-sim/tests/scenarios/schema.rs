//! The schema for editors: the project's scenarios pass, and what the reader refuses does not where a schema can say so.

use serde_json::Value;
use steadfast_sim::scenario::{Scenario, TABLES, files, play_in_time, reference, schema};

use crate::validator;

fn passes(text: &str) -> bool {
    validator::passes(&schema(), text)
}

#[test]
fn the_scenarios_of_the_project_pass() {
    for file in files(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")).unwrap() {
        assert!(passes(&std::fs::read_to_string(&file).unwrap()), "{}", file.display());
    }
}

const GOOD: &str = "title = \"a\"\nwhy = \"b\"\n[upstreams.a]\nbase_url = \"http://a\"\n[[script.a]]\nstatus = 200\n[[step]]\ncall = \"a\"\n";

#[test]
fn mistakes_that_a_schema_can_tell_do_not_pass() {
    assert!(passes(GOOD));
    for (from, to) in [
        ("title = \"a\"\n", ""),
        ("title = \"a\"", "title = 1"),
        ("title = \"a\"", "title = \"a\"\nx = 1"),
        ("status = 200", "status = 20"),
        ("status = 200", "status = \"200\""),
        ("status = 200", "hang = false"),
        ("status = 200", "status = 200\nafter = \"1\""),
        ("status = 200", "status = 200\nafter = 1"),
        ("[[step]]\n", "[step]\n"),
        ("call = \"a\"", "call = \"a b\""),
        ("call = \"a\"", "call = \"a\"\nmehtod = \"GET\""),
        ("call = \"a\"", "call = \"a\"\nexpect = { result = \"opened\" }"),
        ("call = \"a\"", "call = \"a\"\nexpect = { results = { 99 = 1 } }"),
        ("call = \"a\"", "call = \"a\"\nexpect = { requests = \"a..b\" }"),
        ("call = \"a\"", "call = \"a\"\nexpect = { waits = [{ backof = \"1s\" }] }"),
        ("base_url", "base_ulr"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        assert!(!passes(&text), "{text}");
    }
    for more in
        ["status = \"{status}\"", "status = 200\nafter = \"1.5s\"", "reset = \"before\"", "status = 200\ntimes = 3"]
    {
        assert!(passes(&GOOD.replacen("status = 200", more, 1)), "{more}");
    }
}

/// The examples of the page are scenarios that pass.
#[test]
fn the_examples_of_the_page_pass() {
    let page = include_str!("../../../../docs/scenarios.md");
    let examples: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    let outcomes = |text: &str| {
        let scenarios = Scenario::parse("scenarios/breaker.toml", text).unwrap();
        scenarios.iter().map(|scenario| play_in_time(scenario).unwrap()).collect::<Vec<_>>()
    };
    for example in &examples {
        assert!(passes(example), "{example}");
        outcomes(example).iter().for_each(|outcome| assert!(outcome.passed(), "{outcome}"));
    }
    // What it prints where it differs is what the page says.
    let wrong = outcomes(&examples[0].replace("took = \"20ms\"", "took = \"0s..10ms\""));
    assert!(page.contains(&wrong[0].to_string()), "{}", wrong[0]);
}

/// Every key is in it with its meaning, and in the page of documentation.
#[test]
fn every_key_is_in_the_schema_and_in_the_page() {
    let text = schema().to_string();
    let page =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md"))
            .unwrap();
    assert!(page.contains(reference().trim_end()), "docs/scenarios.md is to have this:\n\n{}", reference());
    let mut keys = 0;
    for table in TABLES {
        for key in table.keys {
            let meaning = Value::from(key.meaning).to_string();
            assert!(text.contains(meaning.trim_matches('"')), "{}", key.name);
            keys += 1;
        }
    }
    assert!(keys > 60);
}
