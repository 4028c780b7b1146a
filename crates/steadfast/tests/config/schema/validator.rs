//! A validator for the part of JSON Schema that ours is written in. A word that it does not know is a failure, so that
//! nothing in the schema goes unchecked.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde_json::{Map, Value};

/// Whether `value` is what `schema` describes.
pub(crate) fn accepts(schema: &Value, value: &Value) -> bool {
    schema.as_object().expect("a schema").iter().all(|(word, rule)| holds(word, rule, schema, value))
}

/// Whether a file of this text is what `schema` describes.
pub(crate) fn passes(schema: &Value, toml: &str) -> bool {
    let table: toml::Table = toml::from_str(toml).unwrap_or_else(|error| panic!("{error}: {toml}"));
    accepts(schema, &in_json(table.into()))
}

/// A value of TOML as an editor hands it to the schema. What JSON has no word for is null, which no key takes.
fn in_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(_) => Value::Null,
        toml::Value::Array(items) => items.into_iter().map(in_json).collect(),
        toml::Value::Table(entries) => entries.into_iter().map(|(name, value)| (name, in_json(value))).collect(),
    }
}

fn holds(word: &str, rule: &Value, schema: &Value, value: &Value) -> bool {
    let number = |holds: fn(f64, f64) -> bool| value.as_f64().is_none_or(|value| holds(value, rule.as_f64().unwrap()));
    let most = |length: Option<usize>| length.is_none_or(|length| length as u64 <= rule.as_u64().unwrap());
    let least = |length: Option<usize>| length.is_none_or(|length| length as u64 >= rule.as_u64().unwrap());
    let characters = || value.as_str().map(|text| text.chars().count());
    let entries = || value.as_object().into_iter().flatten();
    match word {
        "$schema" | "title" | "description" | "default" | "examples" => true,
        "type" => match rule {
            Value::Array(types) => types.iter().any(|name| is_of_type(name.as_str().unwrap(), value)),
            name => is_of_type(name.as_str().unwrap(), value),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "anyOf" => rule.as_array().unwrap().iter().any(|rule| accepts(rule, value)),
        "required" => value.as_object().is_none_or(|entries| {
            rule.as_array().unwrap().iter().all(|name| entries.contains_key(name.as_str().unwrap()))
        }),
        "minItems" => least(value.as_array().map(Vec::len)),
        "minProperties" => least(value.as_object().map(Map::len)),
        "minimum" => number(|value, bound| value >= bound),
        "exclusiveMinimum" => number(|value, bound| value > bound),
        "maximum" => number(|value, bound| value <= bound),
        "minLength" => characters().is_none_or(|length| length as u64 >= rule.as_u64().unwrap()),
        "maxLength" => most(characters()),
        "pattern" => value.as_str().is_none_or(|text| finds(rule.as_str().unwrap(), text)),
        "maxItems" => most(value.as_array().map(Vec::len)),
        "maxProperties" => most(value.as_object().map(Map::len)),
        "items" => value.as_array().into_iter().flatten().all(|item| accepts(rule, item)),
        "properties" => entries().all(|(name, below)| rule.get(name).is_none_or(|rule| accepts(rule, below))),
        "patternProperties" => rule.as_object().unwrap().iter().all(|(pattern, rule)| {
            entries().filter(|(name, _)| finds(pattern, name)).all(|(_, below)| accepts(rule, below))
        }),
        "additionalProperties" => entries().filter(|(name, _)| !is_named(schema, name)).all(|(_, below)| match rule {
            Value::Bool(allowed) => *allowed,
            rule => accepts(rule, below),
        }),
        "propertyNames" => entries().all(|(name, _)| accepts(rule, &Value::String(name.clone()))),
        "not" => !accepts(rule, value),
        "allOf" => rule.as_array().unwrap().iter().all(|rule| accepts(rule, value)),
        other => panic!("the schema uses the unknown word `{other}`"),
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        // To JSON Schema 5.0 is an integer.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("the schema uses the unknown type `{other}`"),
    }
}

/// Whether `properties` or `patternProperties` speak of this name.
fn is_named(schema: &Value, name: &str) -> bool {
    let patterns = schema["patternProperties"].as_object().into_iter().flatten();
    schema["properties"].get(name).is_some() || patterns.into_iter().any(|(pattern, _)| finds(pattern, name))
}

/// Whether the pattern matches anywhere in the text.
pub(crate) fn finds(pattern: &str, text: &str) -> bool {
    thread_local!(static PARSED: RefCell<HashMap<String, Rc<Hir>>> = RefCell::default());
    let parse = || Rc::new(regex_syntax::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")));
    let hir = PARSED.with_borrow_mut(|parsed| Rc::clone(parsed.entry(pattern.to_owned()).or_insert_with(parse)));
    let anywhere = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
    !ends(&hir, text, anywhere).is_empty()
}

/// Where a match can end that begins at one of `starts`.
fn ends(hir: &Hir, text: &str, starts: BTreeSet<usize>) -> BTreeSet<usize> {
    match hir.kind() {
        HirKind::Empty => starts,
        HirKind::Literal(literal) => {
            let length = literal.0.len();
            starts
                .into_iter()
                .filter(|at| text.as_bytes()[*at..].starts_with(&literal.0))
                .map(|at| at + length)
                .collect()
        }
        HirKind::Class(class) => starts
            .into_iter()
            .filter_map(|at| {
                let character = text[at..].chars().next()?;
                is_in(class, character).then(|| at + character.len_utf8())
            })
            .collect(),
        HirKind::Look(Look::Start) => starts.into_iter().filter(|at| *at == 0).collect(),
        HirKind::Look(Look::End) => starts.into_iter().filter(|at| *at == text.len()).collect(),
        HirKind::Look(other) => panic!("{other:?} is not the same in every dialect"),
        HirKind::Capture(capture) => ends(&capture.sub, text, starts),
        HirKind::Concat(parts) => parts.iter().fold(starts, |starts, part| ends(part, text, starts)),
        HirKind::Alternation(forms) => forms.iter().flat_map(|form| ends(form, text, starts.clone())).collect(),
        HirKind::Repetition(repetition) => {
            let mut reached = if repetition.min == 0 { starts.clone() } else { BTreeSet::new() };
            let mut last = starts;
            for count in 1..=repetition.max.unwrap_or(u32::MAX) {
                last = ends(&repetition.sub, text, last);
                if last.is_empty() || (count > repetition.min && last.is_subset(&reached)) {
                    break;
                }
                if count >= repetition.min {
                    reached.extend(&last);
                }
            }
            reached
        }
    }
}

fn is_in(class: &Class, character: char) -> bool {
    match class {
        Class::Unicode(class) => class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&character)),
        Class::Bytes(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&(character as u8)))
                && character.is_ascii()
        }
    }
}

#[test]
fn the_validator_can_refuse() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "a": { "type": ["integer", "string"], "exclusiveMinimum": 0, "maximum": 3, "pattern": "^(x|yz{2,3})+$" } },
        "additionalProperties": false,
    });
    let holds = |text: &str| accepts(&schema, &serde_json::from_str(text).unwrap());
    for text in [r#"{}"#, r#"{"a": 1}"#, r#"{"a": 3}"#, r#"{"a": "x"}"#, r#"{"a": "yzzxyzzz"}"#] {
        assert!(holds(text), "{text}");
    }
    for text in [
        "1",
        r#"{"b": 1}"#,
        r#"{"a": 0}"#,
        r#"{"a": 4}"#,
        r#"{"a": 1.5}"#,
        r#"{"a": true}"#,
        r#"{"a": ""}"#,
        r#"{"a": "yz"}"#,
    ] {
        assert!(!holds(text), "{text}");
    }
    assert!(finds("b", "abc") && !finds("^b", "abc") && finds("^é?$", "é") && !finds("^[^\\x00]+$", "a\0"));
}
