//! The keys of a scenario file as a JSON Schema, for editors that check and complete a file while it is written. Made from
//! the tables that the reader reads by; the upstreams and guards are those of the schema of configurations.
//!
//! What the reader accepts the schema accepts. It accepts more: keys that exclude each other, names that nobody has, and of a
//! script what only an upstream or only a guard does.

use serde_json::{Map, Value, json};

use super::keys::{ANSWER, ENDINGS, FILE, REPLY, STEP, Table, WAITS};
use super::kind::Kind;
use crate::table::{self, DURATION, NAME_PATTERN, range, settings};

/// The schema of a scenario file, in JSON Schema draft 2020-12.
///
/// ```
/// let schema = steadfast_sim::scenario::schema();
/// assert_eq!(schema["required"], serde_json::json!(["title", "why", "step"]));
/// ```
pub fn schema() -> Value {
    table::document(&FILE, "A scenario of what a client does, played by `steadfast test`", rules)
}

/// A table that may have the keys of these.
fn object(tables: &[&Table]) -> Value {
    table::object(tables, rules)
}

/// What stands for a value of a variant.
const PLACEHOLDER: &str = "^\\{[A-Za-z0-9_-]{1,64}\\}$";

/// A value of this type, or what stands for one of a variant.
fn rules(kind: Kind) -> Value {
    match kind {
        // Any text is allowed, or there are no variants of it.
        Kind::Prose | Kind::Upstreams | Kind::Guards | Kind::Scripts | Kind::Steps | Kind::Variants => plain(kind),
        _ => json!({ "anyOf": [plain(kind), { "type": "string", "pattern": PLACEHOLDER }] }),
    }
}

/// A part of a list or table, or what stands for one of a variant.
fn part(rule: Value) -> Value {
    json!({ "anyOf": [rule, { "type": "string", "pattern": PLACEHOLDER }] })
}

fn plain(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Method | Kind::Path | Kind::Route => json!({ "type": "string", "minLength": 1 }),
        Kind::Prose => json!({ "type": "string" }),
        Kind::Texts | Kind::HeaderNames => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Name => json!({ "type": "string", "pattern": NAME_PATTERN }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Yes => json!({ "enum": [true] }),
        Kind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Counts => {
            json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^([0-9]*\\.\\.[0-9]*|[0-9]+)$" })
        }
        Kind::Duration => json!({ "type": "string", "pattern": format!("^{DURATION}$") }),
        Kind::Durations => range(DURATION),
        Kind::Status => json!({ "type": "integer", "minimum": 200, "maximum": 599 }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Headers | Kind::Patterns => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        Kind::Ending => json!({ "anyOf": [plain(Kind::Status), { "type": "string", "enum": ENDINGS }] }),
        Kind::Endings => {
            let names = format!("^([2-5][0-9][0-9]|{})$", ENDINGS.join("|"));
            json!({
                "type": "object",
                "patternProperties": { names: part(plain(Kind::Counts)) },
                "additionalProperties": false,
            })
        }
        Kind::Waits => {
            let one = |name: &&str| ((*name).to_owned(), range(DURATION));
            let reasons: Map<String, Value> = WAITS.iter().map(one).collect();
            let wait = json!({
                "type": "object",
                "properties": reasons,
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1,
            });
            json!({ "type": "array", "items": part(wait) })
        }
        Kind::Table(table) => object(&[table]),
        Kind::Upstreams => settings("upstreams"),
        Kind::Guards => settings("guards"),
        Kind::Scripts => {
            let script = json!({ "type": "array", "minItems": 1, "items": object(&[&REPLY, &ANSWER]) });
            json!({ "type": "object", "patternProperties": { NAME_PATTERN: script }, "additionalProperties": false })
        }
        Kind::Steps => json!({ "type": "array", "minItems": 1, "items": object(&[&STEP]) }),
        Kind::Variants => json!({ "type": "array", "minItems": 1, "items": { "type": "object" } }),
    }
}
