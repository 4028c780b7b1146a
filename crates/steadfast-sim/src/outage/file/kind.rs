//! The types of the keys: what each accepts, and the words for what it does not.

use steadfast::config::Problem;
use steadfast::config::reading::{describe, entries, join, quote};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Named, Read};
use super::keys::Table;
use crate::scenario::Range;
use crate::table::{A_NAME, KeyType, Source, counts, duration, integer, is_name, one_of, refused, word};

/// The most parts of a list.
pub(super) const MOST_PARTS: usize = 1_000_000;

/// A key's type.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
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

impl KeyType for Kind {
    type Read = Read;

    fn expected(self) -> String {
        match self {
            Self::Text => "a string that is not empty".to_owned(),
            Self::Prose => "a string".to_owned(),
            Self::Name => A_NAME.to_owned(),
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
            Self::Word(words) => one_of(words),
            Self::Table(table) => format!("a table, {}", table.place),
            Self::Tables(table) => format!("a list of tables, {}", table.place),
            Self::Named(table) => format!("tables by name, {}", table.place),
            Self::Upstreams => "a table of upstreams, [upstreams.NAME]".to_owned(),
        }
    }

    fn is_left_to_others(self) -> bool {
        matches!(self, Self::Upstreams)
    }

    fn read<'t>(
        self,
        source: &Source<'_, 't>,
        path: &str,
        value: &Spanned<DeValue<'t>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Read> {
        let at = value.span().start;
        let mut reading = Reading { source, path, problems };
        match (self, value.get_ref()) {
            (Self::Table(table), DeValue::Table(toml)) => {
                return Some(Read::Table(Fields::read(source, table, path, at, toml, problems)));
            }
            (Self::Named(table), DeValue::Table(toml)) => return Some(Read::Named(reading.named(table, toml))),
            (Self::Tables(table), DeValue::Array(items)) if items.iter().all(|item| item.get_ref().is_table()) => {
                let tables = items.iter().enumerate().filter_map(|(index, item)| {
                    let DeValue::Table(toml) = item.get_ref() else { return None };
                    let path = format!("{path}[{index}]");
                    Some(Fields::read(source, table, &path, item.span().start, toml, reading.problems))
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
                return word(source, path, value, text, words, problems).map(Read::Text);
            }
            _ => {}
        }
        let read = self.read_one(value.get_ref());
        if read.is_none() {
            problems.push(refused(source, path, value, &self.expected(), false));
        }
        read
    }
}

impl Kind {
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
            (Self::Counts, value) => counts(value).map(Read::Counts),
            (Self::Times, DeValue::String(text)) => Range::read(text).map(Read::Times),
            _ => None,
        }
    }
}

/// The parts of a list or a table, while they are read.
struct Reading<'a, 'd, 't> {
    source: &'a Source<'d, 't>,
    path: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl<'t> Reading<'_, '_, 't> {
    fn named(&mut self, table: &'static Table, toml: &DeTable<'t>) -> Vec<Named> {
        let mut all = Vec::new();
        for (name, value) in entries(toml) {
            let (path, at) = (join(self.path, name.get_ref()), name.span().start);
            if !is_name(name.get_ref()) {
                self.problems.push(self.source.expects(at, &path, A_NAME, &quote(name.get_ref())));
                continue;
            }
            let DeValue::Table(toml) = value.get_ref() else {
                let found = describe(value, false);
                self.problems.push(self.source.expects(at, &path, &format!("a table, [{path}]"), &found));
                continue;
            };
            let fields = Fields::read(self.source, table, &path, at, toml, self.problems);
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
            self.problems.push(self.source.expects(value.span().start, self.path, &expected, &found));
            return Vec::new();
        }
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match read(item) {
                Some(one) => all.push(one),
                None => {
                    let path = format!("{}[{index}]", self.path);
                    self.problems.push(refused(self.source, &path, item, expected, false));
                }
            }
        }
        all
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        value => integer(value).map(|number| number as f64),
    }
}
