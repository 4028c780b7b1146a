//! The keys of a simulation file as a JSON Schema, for editors. Made from the tables that the reader reads by; the upstreams
//! are those of the schema of configurations.
//!
//! What the reader accepts the schema accepts. It accepts more: keys that exclude each other, and names that nobody has.

use serde_json::{Value, json};

use super::keys::{FILE, Table};
use super::kind::{Kind, MOST_PARTS};
use crate::table::{self, DURATION, NAME_PATTERN, range, settings};

/// The schema of a simulation file, in JSON Schema draft 2020-12.
///
/// ```
/// let schema = steadfast_sim::outage::file::schema();
/// assert_eq!(schema["required"], serde_json::json!(["title", "length", "model", "workload"]));
/// ```
pub fn schema() -> Value {
    table::document(&FILE, "An outage, lived through under several policies by `steadfast simulate`", rules)
}

fn object(table: &Table) -> Value {
    table::object(&[table], rules)
}

fn rules(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Prose => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "pattern": NAME_PATTERN }),
        Kind::Names => json!({ "type": "array", "items": rules(Kind::Name) }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Duration { above: false } => json!({ "type": "string", "pattern": format!("^{DURATION}$") }),
        Kind::Duration { above: true } => {
            json!({ "type": "string", "pattern": format!("^{DURATION}$"), "allOf": [{ "pattern": "[1-9]" }] })
        }
        Kind::Durations => {
            json!({ "type": "array", "items": rules(Kind::Duration { above: false }), "maxItems": MOST_PARTS })
        }
        Kind::Numbers => range("[0-9]+(\\.[0-9]*)?"),
        Kind::Times => range(DURATION),
        Kind::Counts => {
            let mut rules = range("[0-9]+");
            rules["type"] = json!(["integer", "string"]);
            rules["minimum"] = json!(0);
            rules
        }
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Table(table) => object(table),
        Kind::Tables(table) => json!({ "type": "array", "items": object(table) }),
        Kind::Named(table) => {
            json!({ "type": "object", "patternProperties": { NAME_PATTERN: object(table) }, "additionalProperties": false })
        }
        Kind::Upstreams => settings("upstreams"),
    }
}
