//! The keys of a simulation file as a JSON Schema, for editors. Made from the tables that the reader reads by; the upstreams
//! are those of the schema of configurations.
//!
//! What the reader accepts the schema accepts. It accepts more: keys that exclude each other, and names that nobody has.

use serde_json::{Map, Value, json};

use super::keys::{FILE, Table};
use super::kind::{Kind, MOST_PARTS};

/// The schema of a simulation file, in JSON Schema draft 2020-12.
///
/// ```
/// let schema = steadfast_sim::outage::file::schema();
/// assert_eq!(schema["required"], serde_json::json!(["title", "length", "model", "workload"]));
/// ```
pub fn schema() -> Value {
    let mut schema = object(&FILE);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("An outage, lived through under several policies by `steadfast simulate`");
    schema
}

fn object(table: &Table) -> Value {
    let properties: Map<String, Value> = table
        .keys
        .iter()
        .map(|key| {
            let mut property = rules(key.kind);
            property["description"] = json!(format!("{}\n\nType: {}.", key.meaning, key.kind.expected()));
            (key.name.to_owned(), property)
        })
        .collect();
    let required: Vec<&str> = table.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

const NAME: &str = "^[A-Za-z0-9_-]{1,64}$";
const DURATION: &str = "[0-9]{1,20}(\\.[0-9]{1,18}0*)?(ns|us|ms|s|m|h)";

fn rules(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Prose => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "pattern": NAME }),
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
            json!({ "type": "object", "patternProperties": { NAME: object(table) }, "additionalProperties": false })
        }
        // The root table of no name is always one.
        Kind::Upstreams => steadfast::config::schema("").unwrap_or_default()["properties"]["upstreams"].clone(),
    }
}

/// One value, or a range of them.
fn range(value: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({value}|({value})?\\.\\.({value})?)$") })
}
