//! `steadfast schema`: one JSON document, for the root or below a table.

use serde_json::Value;

use crate::support::steadfast;

const UPSTREAM: &str = "/upstreams/patternProperties/^[A-Za-z0-9_-]{1,64}$/properties";

fn schema(args: &[&str]) -> Value {
    let run = steadfast(&[&["schema"], args].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn c9_2_it_has_every_key_with_its_bounds() {
    let schema = schema(&[]);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let keys = schema.pointer(&format!("/properties{UPSTREAM}")).expect("keys");
    assert_eq!(keys.as_object().expect("an object").len(), steadfast::config::KEYS.len());
    assert_eq!((&keys["retries"]["maximum"], &keys["retries"]["default"]), (&1000.into(), &2.into()));
}

#[test]
fn c9_1_below_another_table() {
    let schema = schema(&["--table", "plugin.http"]);
    let below = format!("/properties/plugin/properties/http/properties{UPSTREAM}/proxy");
    assert!(schema.pointer(&below).is_some() && schema.get("additionalProperties").is_none());
}

#[test]
fn a_table_that_is_none() {
    let run = steadfast(&["schema", "--table", "plugin..http"]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""), "{run:?}");
    assert_eq!(
        run.stderr,
        "error: --table: expected the root table as names with dots, such as plugin.http; found \"plugin..http\"\n"
    );
}
