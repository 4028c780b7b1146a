//! Environment variables: `<PREFIX>UPSTREAMS__<NAME>__<KEY>`, for guards `<PREFIX>GUARDS__<NAME>__<KEY>`, and their text
//! read by the key's type (9.4).
//!
//! | type | text |
//! |---|---|
//! | duration | seconds as a number (`2`, `0.25`), or with a unit (`250ms`) |
//! | count, number | decimal digits; a number may have a point |
//! | flag | `true` or `false` |
//! | statuses, paths | a list with commas: `429, 503`; paths also as a JSON array: `["/etc/a,b.pem"]` |
//! | headers | a JSON object of strings: `{"X-Tenant": "acme"}` |
//! | proxy | `true`, `false`, or a URL |
//! | all others | as it stands |
//!
//! Names are compared without case. An empty variable is unset. The key is what follows the last `__`, so that an
//! upstream's name may hold `__`.

use std::collections::HashMap;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::draft::{self, join};
use super::file::{Subject, unknown_key};
use super::keys::KEYS;
use super::kind::{Kind, Wrong};
use super::merge::table_path;
use super::nearest::fold;
use super::problem::{Origin, Place, Problem, Warning, clean};
use super::value::{Name, Value};

/// A variable that names a key of an upstream or a guard.
pub(super) struct Variable {
    /// As it is spelt in the environment.
    pub(super) name: String,
    pub(super) subject: Subject,
    /// The name of the upstream or guard, folded.
    pub(super) of: String,
    /// The key's index.
    pub(super) key: usize,
    pub(super) value: Value,
}

/// What the environment says.
#[derive(Default)]
pub(super) struct Environment {
    pub(super) variables: Vec<Variable>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
    /// The variable of each upstream or guard and key.
    seen: HashMap<(Subject, String, usize), String>,
}

/// Reads the variables that begin with `prefix`, in the order of their names. `None` for a value: it is not UTF-8.
/// `root` is the root table.
pub(super) fn read(prefix: &str, given: &[(String, Option<String>)], root: &str) -> Environment {
    let mut given: Vec<&(String, Option<String>)> = given.iter().collect();
    given.sort();
    let mut environment = Environment::default();
    for (name, value) in given {
        if value.as_deref() != Some("") {
            environment.read_one(prefix, name, value.as_deref(), root);
        }
    }
    environment
}

impl Environment {
    fn read_one(&mut self, prefix: &str, name: &str, text: Option<&str>, root: &str) {
        let Some(rest) = strip(name, prefix) else {
            return;
        };
        let marked = |subject: &Subject| Some((*subject, strip(rest, &mark(*subject))?));
        let Some((subject, rest)) = Subject::ALL.iter().find_map(marked) else {
            // Something like `…UPSTREAM__A__RETRIES`: nobody sets that and expects it to do nothing.
            let nearly = match () {
                () if strip(rest, "UPSTREAM").is_some() => Some(Subject::Upstream),
                () if strip(rest, "GUARD_").or_else(|| strip(rest, "GUARDS_")).is_some() => Some(Subject::Guard),
                () => None,
            };
            if let Some(subject) = nearly.filter(|_| !prefix.is_empty()) {
                let form = form(prefix, subject);
                let message = format!("${} is ignored: it is not of the form ${form}", clean(name, 300));
                self.warnings.push(Warning { path: String::new(), message });
            }
            return;
        };
        let place = || Place::At(Origin::Env { variable: name.to_owned() });
        let Some((of, key)) = rest.rsplit_once("__").filter(|(of, _)| !of.is_empty()) else {
            let message = format!("expected {}", form(prefix, subject));
            return self.problems.push(Problem::new(place(), "", message));
        };
        let (of, key) = (fold(of), key.to_ascii_lowercase());
        let path = join(&join(&table_path(root, subject), &of), &key);
        let Some(index) = subject.find(&key) else {
            return self.problems.push(unknown_key(subject, place(), path, &key));
        };
        let Some(text) = text else {
            return self.problems.push(Problem::new(place(), path, "the value is not UTF-8"));
        };
        if let Some(twin) = self.seen.insert((subject, of.clone(), index), name.to_owned()) {
            let message = format!("set twice: ${} is the same variable", clean(&twin, 300));
            return self.problems.push(Problem::new(place(), path, message));
        }
        let value = match value_of(&KEYS[index].kind, text) {
            Ok(value) => value,
            Err(wrong) => {
                let origin = Origin::Env { variable: name.to_owned() };
                return self.problems.extend(draft::problems(vec![wrong], &path, |_| origin.clone()));
            }
        };
        self.variables.push(Variable { name: name.to_owned(), subject, of, key: index, value });
    }
}

/// The text between the prefix and the name.
fn mark(subject: Subject) -> String {
    format!("{}__", subject.table().to_ascii_uppercase())
}

/// What a variable's name looks like.
fn form(prefix: &str, subject: Subject) -> String {
    format!("{prefix}{}<NAME>__<KEY>", mark(subject))
}

/// `text` without `start`, compared without case.
fn strip<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

/// A variable's text as the kind of value that its key takes; what does not read as one stays text, and is refused as
/// text would be in a file.
pub(super) fn value_of(kind: &Kind, text: &str) -> Result<Value, Wrong> {
    Ok(match kind {
        Kind::Duration(_) | Kind::Number(_) => number(text),
        Kind::Count(_) => integer(text),
        Kind::Flag | Kind::Proxy => match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Text(text.to_owned()),
        },
        Kind::Statuses => Value::Array(text.split(',').map(|status| integer(status.trim()).anywhere()).collect()),
        Kind::Paths => {
            let paths = serde_json::from_str(text).unwrap_or_else(|_| {
                // Not JSON, so that a name may well begin with a bracket.
                text.split(',').map(|path| path.trim().to_owned()).collect::<Vec<_>>()
            });
            Value::Array(paths.into_iter().map(|path| Value::Text(path).anywhere()).collect())
        }
        Kind::Headers => {
            let expected = "a JSON object of strings, such as {\"X-Tenant\": \"acme\"}";
            serde_json::from_str::<Object>(text).map_err(|_| Wrong::mismatch(expected, "other text"))?.0
        }
        Kind::Url | Kind::Word(_) | Kind::HeaderName | Kind::Text | Kind::HostName | Kind::Path => {
            Value::Text(text.to_owned())
        }
    })
}

fn integer(text: &str) -> Value {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_number => Value::Integer(number),
        _ if is_number => Value::HugeInteger,
        _ => Value::Text(text.to_owned()),
    }
}

/// Digits with at most one point; neither a sign, nor an exponent, nor a word such as `inf`.
fn number(text: &str) -> Value {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse() {
        Ok(number) if plain && text.contains('.') => Value::Float(number, text.to_owned()),
        _ => integer(text),
    }
}

/// A JSON object with every entry kept, so that a name that stands twice is seen.
struct Object(Value);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                    let value = match value {
                        serde_json::Value::String(text) => Value::Text(text),
                        serde_json::Value::Null => Value::Other("null"),
                        serde_json::Value::Bool(_) => Value::Other("a boolean"),
                        serde_json::Value::Number(_) => Value::Other("a number"),
                        serde_json::Value::Array(_) => Value::Other("an array"),
                        serde_json::Value::Object(_) => Value::Other("an object"),
                    };
                    entries.push((Name { text: name, at: 0 }, value.anywhere()));
                }
                Ok(Object(Value::Table(entries)))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not UTF-8 is a problem only where it is one of ours.
    #[test]
    fn text_that_is_not_utf_8() {
        let given = [("P_UPSTREAMS__A__RETRIES".to_owned(), None), ("P_OTHER".to_owned(), None)];
        let problems = read("P_", &given, "").problems;
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["$P_UPSTREAMS__A__RETRIES: upstreams.a.retries: the value is not UTF-8"]);
    }

    /// Signs, exponents and words are no digits, and a number beyond any type is one all the same.
    #[test]
    fn digits() {
        let shown = |text: &str| number(text).describe(false);
        for (text, found) in [
            ("5", "the integer 5"),
            ("0.5", "the float 0.5"),
            ("5.", "the float 5."),
            (".5", "the float .5"),
            ("-5", "the string \"-5\""),
            ("+5", "the string \"+5\""),
            ("1e3", "the string \"1e3\""),
            ("inf", "the string \"inf\""),
            (".", "the string \".\""),
            ("1.2.3", "the string \"1.2.3\""),
            ("", "the string \"\""),
            ("٣", "the string \"٣\""),
        ] {
            assert_eq!(shown(text), found);
        }
        assert_eq!(shown(&"9".repeat(99)), "an integer beyond 128 bits");
    }
}
