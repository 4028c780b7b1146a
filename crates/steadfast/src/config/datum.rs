//! A checked value on its way into [`Settings`](super::Settings), and back out as text.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use steadfast_http::{BaseUrl, StatusSet};
use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

use super::problem::clean;
use super::{Profile, duration, headers, keys};
use crate::transport::{HttpVersion, Proxy};

/// A value of the right type, within its bounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    Url(BaseUrl),
    Duration(Duration),
    Count(u64),
    Number(f64),
    Flag(bool),
    Word(&'static str),
    Statuses(StatusSet),
    Headers(HeaderMap),
    HeaderName(HeaderName),
    Text(HeaderValue),
    HostName(String),
    Path(PathBuf),
    Paths(Vec<PathBuf>),
    Proxy(Proxy),
}

impl Datum {
    /// The value as text; header values that may be secrets, and the credentials of a proxy, are masked.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Url(url) => url.to_string(),
            Self::Duration(value) => duration::show(*value),
            Self::Count(count) => count.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Word(word) => (*word).to_owned(),
            Self::Statuses(statuses) => list(statuses.iter().map(|status| status.to_string())),
            Self::Headers(map) => list(map.iter().map(|(name, value)| format!("{name}: {}", show_header(name, value)))),
            Self::HeaderName(name) => name.to_string(),
            Self::Text(text) => show_text(text),
            Self::HostName(name) => name.clone(),
            Self::Path(path) => show_path(path),
            Self::Paths(paths) => list(paths.iter().map(|path| show_path(path))),
            // As it is written in a file.
            Self::Proxy(Proxy::Environment) => "true".to_owned(),
            Self::Proxy(Proxy::Off) => "false".to_owned(),
            Self::Proxy(Proxy::Url(url)) => clean(&url.to_string(), 300),
        }
    }
}

impl Datum {
    /// The value as a file would say it, in JSON; what may be a secret as [`show`](Self::show) masks it.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Count(count) => (*count).into(),
            Self::Number(number) => plain(*number),
            Self::Flag(flag) => (*flag).into(),
            Self::Statuses(statuses) => statuses.iter().collect(),
            Self::Headers(map) => {
                let entry = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), show_header(name, value));
                map.iter().map(entry).collect()
            }
            Self::Paths(paths) => paths.iter().map(|path| show_path(path)).collect(),
            Self::Proxy(Proxy::Environment) => true.into(),
            Self::Proxy(Proxy::Off) => false.into(),
            _ => self.show().into(),
        }
    }
}

/// A number without a fraction where there is none: 86400, not 86400.0.
pub(super) fn plain(number: f64) -> serde_json::Value {
    let whole = number as u64;
    if whole as f64 == number { whole.into() } else { number.into() }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn show_header(name: &HeaderName, value: &HeaderValue) -> String {
    if headers::is_shown(name) { show_text(value) } else { "(masked)".to_owned() }
}

fn show_path(path: &Path) -> String {
    clean(&path.display().to_string(), 300)
}

fn show_text(value: &HeaderValue) -> String {
    clean(&String::from_utf8_lossy(value.as_bytes()), 300)
}

/// A field of the settings: how a checked value gets in, and how it is read for showing.
pub(crate) trait Field: Sized {
    /// The field's value from a checked one; `None` where the types do not fit.
    fn from_datum(datum: Datum) -> Option<Self>;
    /// The field's value as a checked one; `None` where it is unset.
    fn datum(&self) -> Option<Datum>;

    /// Sets the field; false where the types do not fit.
    fn put(&mut self, datum: Datum) -> bool {
        Self::from_datum(datum).map(|value| *self = value).is_some()
    }
}

/// A field that holds just what a variant of [`Datum`] holds.
macro_rules! plain_fields {
    ($($field:ty: $variant:ident),+ $(,)?) => {
        $(impl Field for $field {
            fn from_datum(datum: Datum) -> Option<Self> {
                match datum {
                    Datum::$variant(value) => Some(value),
                    _ => None,
                }
            }

            fn datum(&self) -> Option<Datum> {
                Some(Datum::$variant(self.clone()))
            }
        })+
    };
}

plain_fields! {
    BaseUrl: Url,
    Duration: Duration,
    u64: Count,
    f64: Number,
    bool: Flag,
    StatusSet: Statuses,
    HeaderMap: Headers,
    HeaderName: HeaderName,
    HeaderValue: Text,
    String: HostName,
    PathBuf: Path,
    Vec<PathBuf>: Paths,
    Proxy: Proxy,
}

impl Field for u32 {
    fn from_datum(datum: Datum) -> Option<Self> {
        u64::from_datum(datum).and_then(|count| count.try_into().ok())
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Count((*self).into()))
    }
}

impl<T: Field> Field for Option<T> {
    fn from_datum(datum: Datum) -> Option<Self> {
        T::from_datum(datum).map(Some)
    }

    fn datum(&self) -> Option<Datum> {
        self.as_ref().and_then(Field::datum)
    }
}

/// A field that is one of a few words.
macro_rules! word_fields {
    ($($field:ty: $words:expr),+ $(,)?) => {
        $(impl Field for $field {
            fn from_datum(datum: Datum) -> Option<Self> {
                match datum {
                    Datum::Word(given) => $words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value),
                    _ => None,
                }
            }

            fn datum(&self) -> Option<Datum> {
                Some(Datum::Word(keys::word_of(&$words, *self)))
            }
        })+
    };
}

word_fields! {
    Jitter: keys::JITTERS,
    RateStyle: keys::STYLES,
    HttpVersion: keys::HTTP_VERSIONS,
    Profile: keys::PROFILES,
}
