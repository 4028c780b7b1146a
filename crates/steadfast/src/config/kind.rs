//! The types of the keys: what each accepts, and how what it does not accept is explained.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use rustls::pki_types::ServerName;
use steadfast_http::{BaseUrl, StatusSet};

use super::datum::Datum;
use super::nearest::nearest;
use super::problem::{part, quote};
use super::value::{Item, Value};
use super::{duration, headers};
use crate::transport::{Proxy, ProxyUrl};

/// Statuses that can end an attempt; a 1xx never does.
pub(super) const STATUSES: std::ops::RangeInclusive<i128> = 200..=599;
/// The most PEM files.
pub(super) const MOST_PATHS: usize = 100;
/// The longest text.
pub(super) const LONGEST_TEXT: usize = 256;
/// The longest host name (RFC 1035 2.3.4, as text).
pub(super) const LONGEST_HOST_NAME: usize = 253;

/// What a number or a duration may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<T> {
    pub(crate) min: T,
    /// Whether `min` itself is too small.
    pub(crate) above: bool,
    pub(crate) max: T,
}

impl<T: PartialOrd> Bounds<T> {
    /// NaN is not within any bounds.
    fn allow(&self, value: &T) -> bool {
        (if self.above { *value > self.min } else { *value >= self.min }) && *value <= self.max
    }

    fn words<D: Display>(&self, show: impl Fn(&T) -> D) -> String {
        let (min, max) = (show(&self.min), show(&self.max));
        if self.above { format!("above {min}, at most {max}") } else { format!("{min} to {max}") }
    }
}

/// A key's type, with its bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// An absolute http(s) URL.
    Url,
    /// Seconds as a number, or text with a unit.
    Duration(Bounds<Duration>),
    /// A whole number.
    Count(Bounds<u64>),
    /// Any number.
    Number(Bounds<f64>),
    /// True or false.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of HTTP statuses.
    Statuses,
    /// A table of header names and values.
    Headers,
    /// The name of a header.
    HeaderName,
    /// Text that a header can carry.
    Text,
    /// A host's name or an IP address.
    HostName,
    /// A file.
    Path,
    /// A list of files.
    Paths,
    /// True (the environment's), false (none), or a URL.
    Proxy,
}

/// Why a value is refused.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    /// The word that was probably meant.
    pub(crate) nearest: Option<&'static str>,
    /// The part of the value that is meant, where it is a table or a list: path and byte offset.
    pub(crate) inside: Option<(String, usize)>,
}

impl Wrong {
    /// One thing was expected and another found.
    pub(crate) fn mismatch(expected: impl Into<String>, found: impl Into<String>) -> Self {
        let (expected, found) = (expected.into(), found.into());
        let message = format!("expected {expected}; found {found}");
        Self { message, expected: Some(expected), found: Some(found), nearest: None, inside: None }
    }

    /// A refusal in words of its own.
    pub(crate) fn says(message: impl Into<String>) -> Self {
        Self { message: message.into(), expected: None, found: None, nearest: None, inside: None }
    }

    /// The same with the word that `given` was probably meant to be.
    fn near(mut self, words: &'static [&'static str], given: &str) -> Self {
        self.nearest = nearest(given, words.iter().copied());
        if let Some(word) = self.nearest {
            self.message.push_str(&format!("; did you mean {}?", quote(word)));
        }
        self
    }

    /// The same, of an entry of the table that the value is.
    pub(crate) fn inside(self, name: &str, at: usize) -> Self {
        Self { inside: Some((format!(".{}", part(name)), at)), ..self }
    }

    /// The same, of an element of the array that the value is.
    fn at_index(self, index: usize, at: usize) -> Self {
        Self { inside: Some((format!("[{index}]"), at)), ..self }
    }
}

impl Kind {
    /// The type's word in the reference.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Url => "URL",
            Self::Duration(_) => "duration",
            Self::Count(_) => "count",
            Self::Number(_) => "number",
            Self::Flag => "flag",
            Self::Word(_) => "word",
            Self::Statuses => "statuses",
            Self::Headers => "headers",
            Self::HeaderName => "header name",
            Self::Text => "text",
            Self::HostName => "host name",
            Self::Path => "path",
            Self::Paths => "paths",
            Self::Proxy => "proxy",
        }
    }

    /// What the type allows, in words.
    pub(crate) fn bounds(&self) -> String {
        match self {
            Self::Url => "absolute http(s), with a host, nothing after the path".to_owned(),
            Self::Duration(bounds) => bounds.words(|value| duration::show(*value)),
            Self::Count(bounds) => bounds.words(|value| *value),
            Self::Number(bounds) => bounds.words(|value| *value),
            Self::Flag => "true or false".to_owned(),
            Self::Word(words) => words.join(", "),
            Self::Statuses => format!("each {} to {}", STATUSES.start(), STATUSES.end()),
            Self::Headers => format!("at most {}", headers::MOST),
            Self::HeaderName => "a name without another meaning".to_owned(),
            Self::Text => format!("1 to {LONGEST_TEXT} visible ASCII characters"),
            Self::HostName => "a DNS name or an IP address".to_owned(),
            Self::Path => "a file".to_owned(),
            Self::Paths => format!("at most {MOST_PATHS}"),
            Self::Proxy => "true, false, or a proxy's URL".to_owned(),
        }
    }

    /// The bounds as they follow a noun.
    fn range(&self) -> String {
        let bounds = self.bounds();
        if bounds.starts_with("above") { bounds } else { format!("from {bounds}") }
    }

    /// What a value of this type looks like, in a sentence.
    fn expected(&self) -> String {
        match self {
            Self::Url => "a string with an absolute http(s) URL".to_owned(),
            Self::Duration(_) => {
                format!("a duration {} (seconds, or a string such as \"250ms\")", self.range())
            }
            Self::Count(_) => format!("an integer {}", self.range()),
            Self::Number(_) => format!("a number {}", self.range()),
            Self::Flag => "true or false".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Statuses => "an array of HTTP statuses, such as [429, 503]".to_owned(),
            Self::Headers => "a table of header names and strings".to_owned(),
            Self::HeaderName => "a string with a header's name".to_owned(),
            Self::Text => format!("a string of {}", self.bounds()),
            Self::HostName => format!("a string with {}", self.bounds()),
            Self::Path => "a string with a file's name".to_owned(),
            Self::Paths => "an array of strings with file names".to_owned(),
            Self::Proxy => "true (the environment's), false (none), or a string with a proxy's URL".to_owned(),
        }
    }

    /// Whether a value of this type may hold a secret, so that it is not quoted.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, Self::Url | Self::Headers | Self::Proxy)
    }

    /// Reads a value strictly: `"5"` is not 5, `true` is not 1, `2.5` is not an integer (9.2).
    pub(crate) fn read(&self, item: &Item) -> Result<Datum, Vec<Wrong>> {
        let found = || item.value.describe(self.is_secret());
        let one = |wrong| vec![wrong];
        // Of the right type but out of bounds: the type need not be explained.
        let outside = |what: &str| one(Wrong::mismatch(format!("{what} {}", self.range()), found()));
        let read = match (self, &item.value) {
            (Self::Url, Value::Text(text)) => {
                return BaseUrl::parse(text).map(Datum::Url).map_err(|error| one(Wrong::says(error.to_string())));
            }
            (Self::Duration(bounds), value) => match read_duration(value) {
                Some(duration) if bounds.allow(&duration) => Some(Datum::Duration(duration)),
                read if read.is_some() || value.is_number() => return Err(outside("a duration")),
                _ => None,
            },
            (Self::Count(bounds), Value::Integer(number)) => match u64::try_from(*number) {
                Ok(count) if bounds.allow(&count) => Some(Datum::Count(count)),
                _ => return Err(outside("an integer")),
            },
            (Self::Number(bounds), value) => match read_number(value) {
                Some(number) if bounds.allow(&number) => Some(Datum::Number(number)),
                read if read.is_some() || value.is_number() => return Err(outside("a number")),
                _ => None,
            },
            (Self::Flag, Value::Boolean(flag)) => Some(Datum::Flag(*flag)),
            (Self::Word(words), Value::Text(text)) => match words.iter().find(|word| *word == text) {
                Some(word) => Some(Datum::Word(word)),
                None => return Err(one(Wrong::mismatch(self.expected(), found()).near(words, text))),
            },
            (Self::Statuses, Value::Array(items)) => return read_statuses(items),
            (Self::Headers, Value::Table(entries)) => return headers::read(entries).map(Datum::Headers),
            (Self::HeaderName, Value::Text(text)) => {
                return headers::read_deadline_name(text).map(Datum::HeaderName).map_err(one);
            }
            (Self::Text, Value::Text(text)) => read_text(text),
            (Self::HostName, Value::Text(text)) => {
                ServerName::try_from(text.as_str()).ok().map(|_| Datum::HostName(text.clone()))
            }
            (Self::Path, Value::Text(text)) => read_path(text).map(Datum::Path),
            (Self::Path, Value::Path(path)) => is_path(path).then(|| Datum::Path(path.clone())),
            (Self::Paths, Value::Array(items)) => return read_paths(items),
            (Self::Paths, Value::Paths(paths)) => check_paths(paths.clone()),
            (Self::Proxy, Value::Boolean(true)) => Some(Datum::Proxy(Proxy::Environment)),
            (Self::Proxy, Value::Boolean(false)) => Some(Datum::Proxy(Proxy::Off)),
            (Self::Proxy, Value::Text(url)) => {
                let read = ProxyUrl::parse(url).map(|url| Datum::Proxy(Proxy::Url(url)));
                return read.map_err(|error| one(Wrong::says(error.to_string())));
            }
            (Self::Proxy, Value::Proxy(proxy)) => Some(Datum::Proxy(proxy.clone())),
            _ => None,
        };
        read.ok_or_else(|| one(Wrong::mismatch(self.expected(), found())))
    }
}

fn read_duration(value: &Value) -> Option<Duration> {
    match value {
        Value::Integer(seconds) => u64::try_from(*seconds).ok().map(Duration::from_secs),
        // By the text where it is plain; an exponent goes by the float.
        Value::Float(number, text) => {
            duration::parse_seconds(text).or_else(|| Duration::try_from_secs_f64(*number).ok())
        }
        Value::Text(text) => duration::parse(text),
        Value::Duration(value) => Some(*value),
        _ => None,
    }
}

fn read_number(value: &Value) -> Option<f64> {
    match value {
        // Beyond 32 bits is beyond every bound, and there a float need not be exact.
        Value::Integer(number) => Some(i32::try_from(*number).map_or(f64::INFINITY, f64::from)),
        // A negative zero would show as "-0".
        Value::Float(number, _) => Some(*number + 0.0),
        _ => None,
    }
}

fn read_text(text: &str) -> Option<Datum> {
    let fits = !text.is_empty() && text.len() <= LONGEST_TEXT && text.trim() == text;
    let visible = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if fits && visible { HeaderValue::from_str(text).ok().map(Datum::Text) } else { None }
}

fn read_statuses(items: &[Item]) -> Result<Datum, Vec<Wrong>> {
    let mut statuses = StatusSet::empty();
    let mut wrongs = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.value {
            Value::Integer(status) if STATUSES.contains(&status) => {
                statuses = statuses.with(u16::try_from(status).unwrap_or_default());
            }
            _ => {
                let expected = format!("an HTTP status, {} to {}", STATUSES.start(), STATUSES.end());
                wrongs.push(Wrong::mismatch(expected, item.value.describe(false)).at_index(index, item.at));
            }
        }
    }
    if wrongs.is_empty() { Ok(Datum::Statuses(statuses)) } else { Err(wrongs) }
}

fn read_path(text: &str) -> Option<PathBuf> {
    (!text.contains('\0')).then(|| PathBuf::from(text)).filter(|path| is_path(path))
}

fn is_path(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

fn read_paths(items: &[Item]) -> Result<Datum, Vec<Wrong>> {
    let mut paths = Vec::new();
    let mut wrongs = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = if let Value::Text(text) = &item.value { read_path(text) } else { None };
        match path {
            Some(path) => paths.push(path),
            None => {
                wrongs.push(Wrong::mismatch(Kind::Path.expected(), item.value.describe(false)).at_index(index, item.at))
            }
        }
    }
    if wrongs.is_empty() {
        check_paths(paths)
            .ok_or_else(|| vec![Wrong::mismatch(format!("at most {MOST_PATHS} files"), items.len().to_string())])
    } else {
        Err(wrongs)
    }
}

fn check_paths(paths: Vec<PathBuf>) -> Option<Datum> {
    let fit = paths.len() <= MOST_PATHS && paths.iter().all(|path| is_path(path));
    fit.then_some(Datum::Paths(paths))
}
