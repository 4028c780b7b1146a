//! Simulation files: what is wrong in one, what each key does, what is expected, and the schema for editors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod expectations;
mod keys;
mod problems;
mod schema;
#[path = "../../../steadfast/tests/config/schema/validator.rs"]
mod validator;

use std::num::NonZero;

use steadfast_sim::outage::file::{Outcome, SimulationFile};

/// One upstream of 1 000/s, one client that calls ten times a second for ten seconds.
const GOOD: &str = r#"title = "a"
length = "10s"

[upstreams.a]
base_url = "http://a.test"

[model.a]
service_time = { fixed = "1ms" }

[workload]
rate = 10

[[trigger]]
effect = "down"
at = "4s"
for = "2s"

[policies.quick.upstreams.a]
retries = 1

[[expect]]
goodput = "0.2.."
"#;

fn read(text: &str) -> SimulationFile {
    SimulationFile::parse("a.toml", text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The good one with a part put in the place of another.
fn with(from: &str, to: &str) -> String {
    let text = GOOD.replacen(from, to, 1);
    assert_ne!(text, GOOD, "{from}");
    text
}

fn run(text: &str, seeds: u32) -> Outcome {
    read(text).run(1, NonZero::new(seeds).unwrap(), NonZero::new(2).unwrap()).unwrap()
}
