//! The types of the keys: what each accepts, and the words for what it does not.

use std::time::Duration;

use steadfast::config::Problem;
use steadfast::config::reading::{Document, describe, entries, join, parse_duration, quote};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Named};
use super::keys::Table;
use crate::scenario::Range;

/// The longest time in a simulation.
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The most parts of a list.
pub(super) const MOST_PARTS: usize = 1_000_000;

/// A key's type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Text that is not empty.
    Text,
    /// Any text.
    Prose,
    /// The name of a model, a policy or a phase.
    Name,
    /// A list of names.
    Names,
    /// True or false.
    Flag,
    /// A whole number between two.
    Count(u64, u64),
    /// A number between two.
    Number { min: f64, max: f64 },
    /// Text with a unit; perhaps not zero.
    Duration { above: bool },
    /// A list of them.
    Durations,
    /// A range of numbers.
    Numbers,
    /// A whole number, or a range of them.
    Counts,
    /// A range of durations.
    Times,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Another table.
    Table(&'static Table),
    /// A list of tables.
    Tables(&'static Table),
    /// Tables by name.
    Named(&'static Table),
    /// What the loader of configurations reads.
    Upstreams,
}

/// A value that its type has accepted.
#[derive(Clone, Debug)]
pub(super) enum Read {
    Text(String),
    Names(Vec<(String, usize)>),
    Flag(bool),
    Count(u64),
    Number(f64),
    Duration(Duration),
    Durations(Vec<Duration>),
    Numbers(Range<f64>),
    Counts(Range<u64>),
    Times(Range<Duration>),
    Table(Fields),
    Tables(Vec<Fields>),
    Named(Vec<Named>),
}

impl Kind {
    /// The type in a sentence, and in the reference.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Text => "a string that is not empty".to_owned(),
            Self::Prose => "a string".to_owned(),
            Self::Name => "a name, 1 to 64 of A-Z a-z 0-9 _ -".to_owned(),
            Self::Names => "an array of names".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Count(min, max) => format!("an integer from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Duration { above: false } => "a duration of at most 24h, such as \"250ms\"".to_owned(),
            Self::Duration { above: true } => "a duration above 0s of at most 24h, such as \"250ms\"".to_owned(),
            Self::Durations => "an array of durations, such as [\"20ms\", \"35ms\"]".to_owned(),
            Self::Numbers => "a range such as \"0.95..\", \"..1.2\" or \"0.5..0.9\"".to_owned(),
            Self::Counts => "an integer, or a range such as \"..40\"".to_owned(),
            Self::Times => "a range such as \"..10s\" or \"1s..10s\"".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Table(table) => format!("a table, {}", table.place),
            Self::Tables(table) => format!("a list of tables, {}", table.place),
            Self::Named(table) => format!("tables by name, {}", table.place),
            Self::Upstreams => "a table of upstreams, [upstreams.NAME]".to_owned(),
        }
    }

    /// Reads a value; what is wrong with it goes to `problems`.
    pub(super) fn read(
        self,
        document: &Document<'_>,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Read> {
        let at = value.span().start;
        let mut reading = Reading { document, path, problems };
        match (self, value.get_ref()) {
            (Self::Table(table), DeValue::Table(toml)) => {
                return Some(Read::Table(Fields::read(document, table, path, at, toml, problems)));
            }
            (Self::Named(table), DeValue::Table(toml)) => return Some(Read::Named(reading.named(table, toml))),
            (Self::Tables(table), DeValue::Array(items)) if items.iter().all(|item| item.get_ref().is_table()) => {
                let tables = items.iter().enumerate().filter_map(|(index, item)| {
                    let DeValue::Table(toml) = item.get_ref() else { return None };
                    let path = format!("{path}[{index}]");
                    Some(Fields::read(document, table, &path, item.span().start, toml, reading.problems))
                });
                return Some(Read::Tables(tables.collect()));
            }
            (Self::Names, DeValue::Array(_)) => {
                return Some(Read::Names(reading.each(value, "a name", |item| {
                    let DeValue::String(text) = item.get_ref() else { return None };
                    is_name(text).then(|| (text.to_string(), item.span().start))
                })));
            }
            (Self::Durations, DeValue::Array(_)) => {
                let expected = "a duration of at most 24h, such as \"20ms\"";
                return Some(Read::Durations(reading.each(value, expected, |item| duration(item.get_ref()))));
            }
            (Self::Word(words), DeValue::String(text)) => {
                if let Some(word) = words.iter().find(|word| **word == text.as_ref()) {
                    return Some(Read::Text((*word).to_owned()));
                }
                let what = format!("expected {}; found {}", self.expected(), describe(value, false));
                problems.push(document.unknown(at, path, text, &what, words.iter().copied()));
                return None;
            }
            _ => {}
        }
        let read = self.read_one(value.get_ref());
        if read.is_none() {
            problems.push(document.expects(at, path, &self.expected(), &describe(value, false)));
        }
        read
    }

    fn read_one(self, value: &DeValue<'_>) -> Option<Read> {
        match (self, value) {
            (Self::Text, DeValue::String(text)) => (!text.trim().is_empty()).then(|| Read::Text(text.to_string())),
            (Self::Prose, DeValue::String(text)) => Some(Read::Text(text.to_string())),
            (Self::Name, DeValue::String(text)) => is_name(text).then(|| Read::Text(text.to_string())),
            (Self::Flag, DeValue::Boolean(flag)) => Some(Read::Flag(*flag)),
            (Self::Count(min, max), value) => integer(value).filter(|n| (min..=max).contains(n)).map(Read::Count),
            (Self::Number { min, max }, value) => {
                number(value).filter(|number| (min..=max).contains(number)).map(Read::Number)
            }
            (Self::Duration { above }, value) => {
                duration(value).filter(|duration| !above || !duration.is_zero()).map(Read::Duration)
            }
            (Self::Numbers, DeValue::String(text)) => Range::read(text).map(Read::Numbers),
            (Self::Counts, DeValue::String(text)) => Range::read(text).map(Read::Counts),
            (Self::Counts, value) => integer(value).map(Range::exactly).map(Read::Counts),
            (Self::Times, DeValue::String(text)) => Range::read(text).map(Read::Times),
            _ => None,
        }
    }
}

/// The parts of a list or a table, while they are read.
struct Reading<'a, 't> {
    document: &'a Document<'t>,
    path: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Reading<'_, '_> {
    fn named(&mut self, table: &'static Table, toml: &DeTable<'_>) -> Vec<Named> {
        let mut all = Vec::new();
        for (name, value) in entries(toml) {
            let (path, at) = (join(self.path, name.get_ref()), name.span().start);
            if !is_name(name.get_ref()) {
                let expected = Kind::Name.expected();
                self.problems.push(self.document.expects(at, &path, &expected, &quote(name.get_ref())));
                continue;
            }
            let DeValue::Table(toml) = value.get_ref() else {
                self.problems.push(self.document.expects(
                    at,
                    &path,
                    &format!("a table, [{path}]"),
                    &describe(value, false),
                ));
                continue;
            };
            let fields = Fields::read(self.document, table, &path, at, toml, self.problems);
            all.push(Named { name: name.get_ref().to_string(), fields });
        }
        all
    }

    fn each<T>(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
        read: impl Fn(&Spanned<DeValue<'_>>) -> Option<T>,
    ) -> Vec<T> {
        let DeValue::Array(items) = value.get_ref() else { return Vec::new() };
        if items.len() > MOST_PARTS {
            let (expected, found) = (format!("at most {MOST_PARTS} of them"), items.len().to_string());
            self.problems.push(self.document.expects(value.span().start, self.path, &expected, &found));
            return Vec::new();
        }
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match read(item) {
                Some(one) => all.push(one),
                None => {
                    let path = format!("{}[{index}]", self.path);
                    self.problems.push(self.document.expects(
                        item.span().start,
                        &path,
                        expected,
                        &describe(item, false),
                    ));
                }
            }
        }
        all
    }
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn integer(value: &DeValue<'_>) -> Option<u64> {
    let DeValue::Integer(number) = value else { return None };
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        value => integer(value).map(|number| number as f64),
    }
}

fn duration(value: &DeValue<'_>) -> Option<Duration> {
    let DeValue::String(text) = value else { return None };
    parse_duration(text).filter(|duration| *duration <= DAY)
}
