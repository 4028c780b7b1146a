//! A value as it was given, before its key's type has judged it. The file, the environment, and the builder all bring
//! their values into this one form, so that type and bounds are checked in one place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

use super::problem::quote;
use super::{Profile, duration, keys};
use crate::transport::{HttpVersion, Proxy};

/// A given value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Integer(i128),
    /// An integer that not even 128 bits hold.
    HugeInteger,
    /// A float, with its text: a duration is read from the text, exactly.
    Float(f64, String),
    Boolean(bool),
    Text(String),
    /// Something that no key takes, in words.
    Other(&'static str),
    Array(Vec<Item>),
    Table(Vec<(Name, Item)>),
    /// From the builder only.
    Duration(Duration),
    /// From the builder only.
    Path(PathBuf),
    /// From the builder only.
    Paths(Vec<PathBuf>),
    /// From the builder only.
    Proxy(Proxy),
}

/// A value and where it stands: its byte offset in the file, 0 where there is no file.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: Value,
    pub(crate) at: usize,
}

/// A key inside a value, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) at: usize,
}

impl Value {
    /// The value without a place.
    pub(crate) fn anywhere(self) -> Item {
        Item { value: self, at: 0 }
    }

    /// Whether it is a number of any kind.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::HugeInteger | Self::Float(..))
    }

    /// What was found, in TOML's words; without the value where it may be a secret.
    pub(crate) fn describe(&self, secret: bool) -> String {
        match self {
            Self::Integer(_) | Self::HugeInteger if secret => "an integer".to_owned(),
            Self::Float(..) if secret => "a float".to_owned(),
            Self::Boolean(_) if secret => "a boolean".to_owned(),
            Self::Text(_) if secret => "a string".to_owned(),
            Self::Integer(number) => format!("the integer {number}"),
            Self::HugeInteger => "an integer beyond 128 bits".to_owned(),
            Self::Float(_, text) => format!("the float {}", quote(text).trim_matches('"')),
            Self::Boolean(flag) => format!("the boolean {flag}"),
            Self::Text(text) => format!("the string {}", quote(text)),
            Self::Other(what) => (*what).to_owned(),
            Self::Array(items) if items.iter().any(|item| matches!(item.value, Self::Table(_))) => {
                "an array of tables".to_owned()
            }
            Self::Array(_) => "an array".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Duration(value) => duration::show(*value),
            Self::Path(_) => "a path".to_owned(),
            Self::Proxy(_) => "a proxy".to_owned(),
            Self::Paths(paths) => format!("{} paths", paths.len()),
        }
    }
}

/// What a setter of the builder takes.
pub(crate) trait Input {
    /// The value in the common form.
    fn into_value(self) -> Value;
}

impl Input for Duration {
    fn into_value(self) -> Value {
        Value::Duration(self)
    }
}

impl Input for u32 {
    fn into_value(self) -> Value {
        Value::Integer(self.into())
    }
}

impl Input for u64 {
    fn into_value(self) -> Value {
        Value::Integer(self.into())
    }
}

impl Input for f64 {
    fn into_value(self) -> Value {
        Value::Float(self, format!("{self:?}"))
    }
}

impl Input for bool {
    fn into_value(self) -> Value {
        Value::Boolean(self)
    }
}

impl Input for &str {
    fn into_value(self) -> Value {
        Value::Text(self.to_owned())
    }
}

impl Input for Jitter {
    fn into_value(self) -> Value {
        keys::word_of(&keys::JITTERS, self).into_value()
    }
}

impl Input for RateStyle {
    fn into_value(self) -> Value {
        keys::word_of(&keys::STYLES, self).into_value()
    }
}

impl Input for HttpVersion {
    fn into_value(self) -> Value {
        keys::word_of(&keys::HTTP_VERSIONS, self).into_value()
    }
}

impl Input for Profile {
    fn into_value(self) -> Value {
        self.name().into_value()
    }
}

impl Input for Proxy {
    fn into_value(self) -> Value {
        Value::Proxy(self)
    }
}

impl Input for &Path {
    fn into_value(self) -> Value {
        Value::Path(self.to_owned())
    }
}

impl Input for &[u16] {
    fn into_value(self) -> Value {
        Value::Array(self.iter().map(|status| Value::Integer((*status).into()).anywhere()).collect())
    }
}

impl Input for &[(&str, &str)] {
    fn into_value(self) -> Value {
        Value::Table(table_of(self))
    }
}

impl Input for &[PathBuf] {
    fn into_value(self) -> Value {
        Value::Paths(self.to_vec())
    }
}

/// The entries of a table of strings.
pub(crate) fn table_of(pairs: &[(&str, &str)]) -> Vec<(Name, Item)> {
    let name = |text: &str| Name { text: text.to_owned(), at: 0 };
    pairs.iter().map(|(key, value)| (name(key), Value::Text((*value).to_owned()).anywhere())).collect()
}
