//! The types of the keys: what each accepts, and the words for what it does not.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use steadfast::config::Problem;
use steadfast::config::reading::{entries, join};
use steadfast::report::WaitReason;
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, Read};
use super::keys::{ENDINGS, Table, WAITS};
use super::model::{Ending, Route};
use super::range::Range;
use crate::table::{A_NAME, KeyType, Source, counts, duration, integer, is_name, one_of, refused, word};

/// A key's type.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text that is not empty.
    Text,
    /// Any text.
    Prose,
    /// A list of texts.
    Texts,
    /// The name of an upstream, a guard, a script, or of calls.
    Name,
    /// True or false.
    Flag,
    /// True, as its absence says the rest.
    Yes,
    /// A whole number between two.
    Count(u64, u64),
    /// A whole number, or a range of them.
    Counts,
    /// Text with a unit.
    Duration,
    /// The same, or a range.
    Durations,
    /// An HTTP status.
    Status,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Header names and values.
    Headers,
    /// Header names, and patterns of their values.
    Patterns,
    /// A list of header names.
    HeaderNames,
    /// A method.
    Method,
    /// A path, with its query.
    Path,
    /// A path, with a method if it has one.
    Route,
    /// How a call ended.
    Ending,
    /// How many of the calls ended how.
    Endings,
    /// What was waited for, and how long.
    Waits,
    /// Another table.
    Table(&'static Table),
    /// What the loader of configurations reads.
    Upstreams,
    /// The same.
    Guards,
    /// Lists of tables by name.
    Scripts,
    /// A list of tables.
    Steps,
    /// A list of tables with names of its own.
    Variants,
}

impl KeyType for Kind {
    type Read = Read;

    fn expected(self) -> String {
        match self {
            Self::Text => "a string that is not empty".to_owned(),
            Self::Prose => "a string".to_owned(),
            Self::Texts => "an array of strings".to_owned(),
            Self::Name => A_NAME.to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Yes => "true".to_owned(),
            Self::Count(min, max) => format!("an integer from {min} to {max}"),
            Self::Counts => "an integer, or a range such as \"2..4\"".to_owned(),
            Self::Duration => "a duration of at most 24h, such as \"250ms\"".to_owned(),
            Self::Durations => "a duration, or a range such as \"0s..100ms\"".to_owned(),
            Self::Status => "an HTTP status, 200 to 599".to_owned(),
            Self::Word(words) => one_of(words),
            Self::Headers => "a table of header names and strings".to_owned(),
            Self::Patterns => "a table of header names and patterns".to_owned(),
            Self::HeaderNames => "an array of header names".to_owned(),
            Self::Method => "a method, such as \"GET\"".to_owned(),
            Self::Path => "a path, such as \"/invoices?page=2\"".to_owned(),
            Self::Route => "a path with or without a method, such as \"POST /payments/*\"".to_owned(),
            Self::Ending => format!("an HTTP status, or {}", one_of(ENDINGS)),
            Self::Endings => "a table such as { 200 = 2, bulkhead_full = \"1..\" }".to_owned(),
            Self::Waits => "an array such as [{ backoff = \"0s..100ms\" }]".to_owned(),
            Self::Table(table) => format!("a table, {}", table.place),
            Self::Upstreams => "a table of upstreams, [upstreams.NAME]".to_owned(),
            Self::Guards => "a table of guards, [guards.NAME]".to_owned(),
            Self::Scripts => "lists of tables, [[script.NAME]]".to_owned(),
            Self::Variants => "an array of tables such as [{ method = \"GET\" }, { method = \"PUT\" }]".to_owned(),
            Self::Steps => "a list of tables, [[step]]".to_owned(),
        }
    }

    fn is_left_to_others(self) -> bool {
        matches!(self, Self::Upstreams | Self::Guards | Self::Scripts | Self::Steps | Self::Variants)
    }

    fn read<'t>(
        self,
        source: &Source<'_, 't>,
        path: &str,
        value: &Spanned<DeValue<'t>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Read> {
        let read = match (self, value.get_ref()) {
            (Self::Table(table), DeValue::Table(entries)) => {
                let fields = Fields::read(source, table, path, value.span().start, entries, problems);
                return Some(Read::Table(fields));
            }
            (Self::Word(words), DeValue::String(text)) => {
                return word(source, path, value, text, words, problems).map(Read::Text);
            }
            (_, DeValue::Table(_) | DeValue::Array(_)) => return self.read_many(source, path, value, problems),
            (_, one) => self.read_one(one),
        };
        if read.is_none() {
            problems.push(refused(source, path, value, &self.expected(), self.is_secret()));
        }
        read
    }
}

impl Kind {
    /// Whether what it holds may be a secret, and is not quoted.
    const fn is_secret(self) -> bool {
        matches!(self, Self::Headers | Self::Patterns)
    }

    fn read_one(self, value: &DeValue<'_>) -> Option<Read> {
        match (self, value) {
            (Self::Text, DeValue::String(text)) => (!text.trim().is_empty()).then(|| Read::Text(text.to_string())),
            (Self::Prose, DeValue::String(text)) => Some(Read::Text(text.to_string())),
            (Self::Name, DeValue::String(text)) => is_name(text).then(|| Read::Text(text.to_string())),
            (Self::Flag, DeValue::Boolean(flag)) => Some(Read::Flag(*flag)),
            (Self::Yes, DeValue::Boolean(true)) => Some(Read::Flag(true)),
            (Self::Count(min, max), value) => integer(value).filter(|n| (min..=max).contains(n)).map(Read::Count),
            (Self::Counts, value) => counts(value).map(Read::Counts),
            (Self::Duration, value) => duration(value).map(Read::Duration),
            (Self::Durations, DeValue::String(text)) => Range::read(text).map(Read::Durations),
            (Self::Status, value) => status(value).map(|status| Read::Count(status.into())),
            (Self::Method, DeValue::String(text)) => Method::from_bytes(text.as_bytes()).ok().map(Read::Method),
            (Self::Path, DeValue::String(text)) => Some(Read::Text(text.to_string())),
            (Self::Route, DeValue::String(text)) => route(text).map(Read::Route),
            (Self::Ending, DeValue::String(text)) => ending(text).map(Read::Ending),
            (Self::Ending, value) => status(value).map(Ending::Status).map(Read::Ending),
            _ => None,
        }
    }

    /// Reads a list or a table, each part of it on its own.
    fn read_many<'t>(
        self,
        source: &Source<'_, 't>,
        path: &str,
        value: &Spanned<DeValue<'t>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Read> {
        let mut parts = Parts { source, path, problems, secret: self.is_secret(), failed: false };
        let read = match (self, value.get_ref()) {
            (Self::Texts, DeValue::Array(_)) => Read::Texts(parts.each(value, "a string", |one| match one {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            })),
            (Self::HeaderNames, DeValue::Array(_)) => Read::HeaderNames(parts.each(value, "a header's name", |one| {
                let DeValue::String(text) = one else { return None };
                HeaderName::try_from(text.as_ref()).ok()
            })),
            (Self::Headers, DeValue::Table(_)) => {
                Read::Headers(parts.pairs(value, "a string without controls", header))
            }
            (Self::Patterns, DeValue::Table(_)) => Read::Patterns(parts.pairs(value, "a string", |name, one| {
                let DeValue::String(text) = one else { return None };
                Some((HeaderName::try_from(name).ok()?, text.to_string()))
            })),
            (Self::Endings, DeValue::Table(_)) => {
                let expected = "a status or a word of `result`, and a number or a range";
                Read::Endings(parts.pairs(value, expected, |name, one| {
                    let ending = name.parse().ok().filter(is_status).map(Ending::Status).or_else(|| ending(name))?;
                    Some((ending, counts(one)?))
                }))
            }
            (Self::Waits, DeValue::Array(_)) => {
                let expected = format!("a table with {} and a range such as \"0s..100ms\"", one_of(WAITS));
                Read::Waits(parts.each(value, &expected, wait))
            }
            _ => {
                problems.push(refused(source, path, value, &self.expected(), self.is_secret()));
                return None;
            }
        };
        (!parts.failed).then_some(read)
    }
}

/// The parts of a list or a table, while they are read.
struct Parts<'a, 'd, 't> {
    source: &'a Source<'d, 't>,
    path: &'a str,
    problems: &'a mut Vec<Problem>,
    secret: bool,
    failed: bool,
}

impl<'t> Parts<'_, '_, 't> {
    fn each<T>(
        &mut self,
        value: &Spanned<DeValue<'t>>,
        expected: &str,
        read: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> Vec<T> {
        let DeValue::Array(items) = value.get_ref() else { return Vec::new() };
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let item = self.source.resolve(item);
            match read(item.get_ref()) {
                Some(one) => all.push(one),
                None => self.wrong(item, &format!("{}[{index}]", self.path), expected),
            }
        }
        all
    }

    fn pairs<T>(
        &mut self,
        value: &Spanned<DeValue<'t>>,
        expected: &str,
        read: impl Fn(&str, &DeValue<'_>) -> Option<T>,
    ) -> Vec<T> {
        let DeValue::Table(table) = value.get_ref() else { return Vec::new() };
        let mut all = Vec::new();
        for (name, item) in entries(table) {
            let item = self.source.resolve(item);
            match read(name.get_ref(), item.get_ref()) {
                Some(one) => all.push(one),
                None => self.wrong(item, &join(self.path, name.get_ref()), expected),
            }
        }
        all
    }

    fn wrong(&mut self, item: &Spanned<DeValue<'t>>, path: &str, expected: &str) {
        self.failed = true;
        self.problems.push(refused(self.source, path, item, expected, self.secret));
    }
}

fn is_status(status: &u16) -> bool {
    (200..=599).contains(status)
}

fn status(value: &DeValue<'_>) -> Option<u16> {
    integer(value).and_then(|status| u16::try_from(status).ok()).filter(is_status)
}

fn ending(text: &str) -> Option<Ending> {
    ENDINGS.iter().find(|word| **word == text).map(|word| Ending::Word(word))
}

fn route(text: &str) -> Option<Route> {
    let (method, path) = match text.split_once(' ') {
        Some((method, path)) => (Some(Method::from_bytes(method.as_bytes()).ok()?), path),
        None => (None, text),
    };
    let is_plain = path.starts_with('/') && !path.contains(['?', '#', ' ']);
    let stars = path.matches('*').count();
    (is_plain && (stars == 0 || (stars == 1 && path.ends_with("/*")))).then(|| Route { method, path: path.to_owned() })
}

/// A header. What a value has up to U+00FF is a byte on the wire, as in ISO 8859-1, so that hostile ones can be written.
fn header(name: &str, value: &DeValue<'_>) -> Option<(HeaderName, HeaderValue)> {
    let DeValue::String(text) = value else { return None };
    let bytes: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
    Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(&bytes?).ok()?))
}

fn wait(value: &DeValue<'_>) -> Option<(WaitReason, Range<Duration>)> {
    let DeValue::Table(table) = value else { return None };
    let [(name, range)] = entries(table)[..] else { return None };
    let reasons = [WaitReason::Backoff, WaitReason::RetryAfter, WaitReason::Bulkhead, WaitReason::RateLimit];
    let reason = reasons.into_iter().find(|reason| reason.name() == name.get_ref().as_ref())?;
    let DeValue::String(text) = range.get_ref() else { return None };
    Some((reason, Range::read(text)?))
}
