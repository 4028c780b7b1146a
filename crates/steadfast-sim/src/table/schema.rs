//! Tables of keys as a JSON Schema, for editors that check and complete a file while it is written.
//!
//! What a value of a type has to be, a file's own module says: the `rules` here.

use serde_json::{Map, Value, json};

use super::{KeyType, Table};

/// What a name is.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$";
/// What a duration is, anywhere in a text.
pub(crate) const DURATION: &str = "[0-9]{1,20}(\\.[0-9]{1,18}0*)?(ns|us|ms|s|m|h)";

/// The schema of a file, in JSON Schema draft 2020-12.
pub(crate) fn document<K: KeyType>(file: &Table<K>, title: &str, rules: fn(K) -> Value) -> Value {
    let mut schema = object(&[file], rules);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

/// A table that may have the keys of these.
pub(crate) fn object<K: KeyType>(tables: &[&Table<K>], rules: fn(K) -> Value) -> Value {
    let keys = || tables.iter().flat_map(|table| table.keys);
    let mut properties = Map::new();
    for key in keys() {
        let mut property = rules(key.kind);
        // Of a key that several have, all meanings are told.
        property["description"] = match properties.get(key.name).map(|before: &Value| &before["description"]) {
            Some(Value::String(before)) => json!(format!("{before}\n\n{}", key.meaning)),
            _ => json!(format!("{}\n\nType: {}.", key.meaning, key.kind.expected())),
        };
        properties.insert(key.name.to_owned(), property);
    }
    let required: Vec<&str> = keys().filter(|key| key.required).map(|key| key.name).collect();
    let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// One value, or a range of them.
pub(crate) fn range(value: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({value}|({value})?\\.\\.({value})?)$") })
}

/// What a configuration has under this name.
pub(crate) fn settings(table: &str) -> Value {
    // The root table of no name is always one.
    let schema = steadfast::config::schema("").unwrap_or_default();
    schema["properties"][table].clone()
}
