//! The table of keys as a JSON Schema, for editors that check and complete a file while it is written.
//!
//! The table is the source, as it is for the reader: types, bounds, defaults, and meanings are not said a second time
//! in annotations of a struct. What the reader accepts the schema accepts; where a schema cannot say what the reader
//! knows, it accepts more: two keys that exclude each other, upstreams or headers that are one but for their case, the
//! URL of a proxy, and the last digits of a number. `base_url` is not required, because a variable may hold it.
//!
//! Only keywords that JSON Schema has had since draft 6 are used, and nothing is referred to: tools that know no later
//! draft understand all of it, and each key's description stands beside its rules.

mod patterns;

use serde_json::{Map, Value, json};

use super::datum::plain;
use super::draft::LONGEST_NAME;
use super::file::{MOST, Subject};
use super::headers;
use super::keys::{KEYS, Key};
use super::kind::{Kind, LONGEST_HOST_NAME, LONGEST_TEXT, MOST_PATHS, STATUSES};
use super::loader::root_of;
use super::problem::{Place, Problem, Problems};

/// The schema of a configuration file, in JSON Schema draft 2020-12, whose upstreams and guards stand below the root table `table`:
/// empty for the top level, or names with dots such as `plugin.http`, as for [`Loader::table`](super::Loader::table).
///
/// Below the root table whatever the reader does not know is refused; beside it anything is allowed, as the reader does
/// not look there. A file that passes can still be refused, for what a schema cannot say; one that the reader accepts
/// passes.
///
/// ```
/// let schema = steadfast::config::schema("plugin.http")?;
/// let http = &schema["properties"]["plugin"]["properties"]["http"];
/// let upstream = &http["properties"]["upstreams"]["patternProperties"]["^[A-Za-z0-9_-]{1,64}$"];
/// assert_eq!(upstream["properties"]["retries"]["maximum"], 1000);
/// # Ok::<(), steadfast::config::Problems>(())
/// ```
///
/// # Errors
/// `table` is not the name of a table.
pub fn schema(table: &str) -> Result<Value, Problems> {
    let root = root_of(table).map_err(|message| Problems::from_iter([Problem::new(Place::Everywhere, "", message)]))?;
    let tables: Map<String, Value> =
        Subject::ALL.iter().map(|subject| (subject.table().to_owned(), tables(*subject))).collect();
    let below_root = json!({ "type": "object", "properties": tables, "additionalProperties": false });
    let nest = |below: Value, name: &String| json!({ "type": "object", "properties": { name: below } });
    let mut schema = root.iter().rev().fold(below_root, nest);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Upstreams that are called through Steadfast, and guards");
    Ok(schema)
}

/// The table of upstreams, or of guards.
fn tables(subject: Subject) -> Value {
    let keys = KEYS.iter().enumerate().filter(|(key, _)| subject.takes(*key));
    let properties: Map<String, Value> = keys.map(|(_, key)| (key.name.to_owned(), property(subject, key))).collect();
    let what = match subject {
        Subject::Upstream => "One upstream. Its base_url is required, here or in an environment variable.",
        Subject::Guard => "One guard. What is not said here stays as the code says.",
    };
    let one = json!({
        "description": what,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    json!({
        "description": format!("The {} by name: 1 to {LONGEST_NAME} of A-Z a-z 0-9 _ -", subject.table()),
        "type": "object",
        "patternProperties": { format!("^[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}$"): one },
        "additionalProperties": false,
        "maxProperties": MOST,
    })
}

/// One key: its rules, and what an editor shows of it.
fn property(subject: Subject, key: &Key) -> Value {
    let mut property = rules(&key.kind);
    let (meaning, kind, bounds, default) = (key.meaning(), key.type_name(), key.bounds(), key.default_text());
    // What holds for a guard that nothing is said of, only the code knows.
    if subject == Subject::Guard {
        property["description"] = json!(format!("{meaning}\n\nType: {kind}, {bounds}. Default: as the code says."));
        return property;
    }
    property["description"] = json!(format!("{meaning}\n\nType: {kind}, {bounds}. Default: {default}."));
    if let Some(default) = key.default() {
        property["default"] = default.json();
    }
    property
}

/// What a value of this type must be. Bounds of numbers do not touch texts, nor patterns numbers.
fn rules(kind: &Kind) -> Value {
    match kind {
        Kind::Url => json!({ "type": "string", "pattern": patterns::BASE_URL }),
        Kind::Duration(bounds) => {
            let mut rules = json!({
                "type": ["number", "string"],
                "maximum": plain(bounds.max.as_secs_f64()),
                "pattern": patterns::duration(bounds.max),
                "examples": ["250ms", "1.5s", 2],
            });
            if bounds.above {
                rules["exclusiveMinimum"] = plain(bounds.min.as_secs_f64());
                // Of two patterns the second has to stand apart.
                rules["allOf"] = json!([{ "pattern": patterns::NOT_ZERO }]);
            } else {
                rules["minimum"] = plain(bounds.min.as_secs_f64());
            }
            rules
        }
        Kind::Count(bounds) => json!({ "type": "integer", "minimum": bounds.min, "maximum": bounds.max }),
        Kind::Number(bounds) => {
            let minimum = if bounds.above { "exclusiveMinimum" } else { "minimum" };
            json!({ "type": "number", minimum: plain(bounds.min), "maximum": plain(bounds.max) })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Statuses => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": *STATUSES.start() as i64, "maximum": *STATUSES.end() as i64 },
        }),
        Kind::Headers => json!({
            "type": "object",
            "propertyNames": header_name(headers::refused()),
            "additionalProperties": {
                "type": "string",
                "maxLength": headers::LONGEST_VALUE,
                "pattern": patterns::HEADER_VALUE,
            },
            "maxProperties": headers::MOST,
        }),
        Kind::HeaderName => header_name(headers::refused().chain(headers::taken())),
        Kind::Text => {
            json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_TEXT, "pattern": patterns::TEXT })
        }
        Kind::HostName => json!({ "type": "string", "maxLength": LONGEST_HOST_NAME, "pattern": patterns::HOST_NAME }),
        Kind::Path => json!({ "type": "string", "pattern": patterns::PATH }),
        Kind::Paths => json!({ "type": "array", "items": rules(&Kind::Path), "maxItems": MOST_PATHS }),
        Kind::Proxy => json!({
            "type": ["boolean", "string"],
            "minLength": 1,
            "examples": [true, false, "http://proxy.internal:3128"],
        }),
    }
}

/// A header's name that is none of these.
fn header_name(refused: impl Iterator<Item = String>) -> Value {
    json!({
        "type": "string",
        "maxLength": headers::LONGEST_NAME,
        "pattern": patterns::HEADER_NAME,
        "not": { "pattern": patterns::one_of(refused) },
    })
}
