//! Settings from code: one setter per key, made from the table, with the file's types and bounds.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

use super::draft::{self, Draft, LONGEST_NAME, check_name};
use super::file::Subject;
use super::keys::{self, KEYS};
use super::problem::{Origin, Problem, Problems};
use super::value::{Input, Value, table_of};
use super::{Effective, Profile, Settings, with_keys};
use crate::transport::{HttpVersion, Proxy};

/// Makes the settings of one upstream. Nothing is refused before [`build`](Self::build), which reports every mistake at
/// once. Of two calls of one setter the later counts. Bounds and defaults: see [`Settings`]; where a
/// [`profile`](Self::profile) is named, it fills in what no setter sets, whichever was called first.
#[derive(Clone)]
#[must_use]
pub struct SettingsBuilder {
    name: Option<String>,
    /// By the key's index in [`KEYS`].
    values: Vec<Option<Value>>,
}

/// Without the values: headers and an address may hold secrets.
impl fmt::Debug for SettingsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = KEYS.iter().zip(&self.values).filter(|(_, value)| value.is_some()).map(|(key, _)| key.name);
        f.debug_struct("SettingsBuilder")
            .field("name", &self.name)
            .field("set", &set.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

macro_rules! setters {
    ($($(#[doc = $meaning:literal])+ $name:ident: $input:ty = $kind:expr;)+) => {
        impl SettingsBuilder {
            $($(#[doc = $meaning])+
            pub fn $name(self, value: $input) -> Self {
                self.give(stringify!($name), value.into_value())
            })+
        }
    };
}
with_keys!(setters);

impl SettingsBuilder {
    /// A builder for the upstream at `base_url`, named after its host until [`name`](Self::name) says otherwise.
    pub fn new(base_url: &str) -> Self {
        Self { name: None, values: vec![None; KEYS.len()] }.base_url(base_url)
    }

    /// The upstream's name, in errors, events, spans, and snapshots: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// One more header on every request, or another value for one that is set already.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(headers) = keys::find("headers").and_then(|index| self.values.get_mut(index)) {
            let mut entries = match headers.take() {
                Some(Value::Table(entries)) => entries,
                _ => Vec::new(),
            };
            entries.retain(|(known, _)| !known.text.eq_ignore_ascii_case(name));
            entries.extend(table_of(&[(name, value)]));
            *headers = Some(Value::Table(entries));
        }
        self
    }

    /// The settings.
    ///
    /// # Errors
    /// Every value of a wrong type or outside its bounds, all at once.
    pub fn build(self) -> Result<Settings, Problems> {
        self.build_effective().map(Effective::into_settings)
    }

    /// The settings with the origin of each value: [`Origin::Builder`], [`Origin::Profile`] or [`Origin::Default`].
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_effective(self) -> Result<Effective, Problems> {
        let mut problems = Vec::new();
        let mut draft = Draft::new();
        for (index, (key, value)) in KEYS.iter().zip(self.values).enumerate() {
            match value.map(|value| key.kind.read(&value.anywhere())) {
                None => {}
                Some(Ok(datum)) => draft.set(index, datum, Origin::Builder),
                Some(Err(wrongs)) => {
                    draft.refuse(index);
                    problems.extend(draft::problems(wrongs, key.name, |_| Origin::Builder));
                }
            }
        }
        let name = match (self.name, draft.host()) {
            (Some(name), _) => name,
            (None, Some(host)) => name_of_host(host),
            // Without an address, which is a problem already.
            (None, None) => "upstream".to_owned(),
        };
        if let Err(wrong) = check_name(Subject::Upstream, &name) {
            problems.extend(draft::problems(vec![wrong], "name", |_| Origin::Builder));
        }
        match draft.finish(&name, "", &mut problems) {
            Some((effective, warnings)) if problems.is_empty() => {
                warnings.iter().for_each(|warning| tracing::warn!(upstream = name, "{warning}"));
                Ok(effective)
            }
            _ => Err(problems.into_iter().collect()),
        }
    }

    /// Notes a setter's value.
    fn give(mut self, key: &'static str, value: Value) -> Self {
        if let Some(place) = keys::find(key).and_then(|index| self.values.get_mut(index)) {
            *place = Some(value);
        }
        self
    }
}

/// What is wrong with a value for `key`, by the table that files and builders share.
pub(crate) fn check(key: &'static str, value: impl Input) -> Vec<Problem> {
    let read =
        keys::find(key).and_then(|index| KEYS.get(index)).map(|key| key.kind.read(&value.into_value().anywhere()));
    match read {
        Some(Err(wrongs)) => draft::problems(wrongs, key, |_| Origin::Builder).collect(),
        _ => Vec::new(),
    }
}

/// An upstream's name made of its host: `api.example.com` is `api-example-com`.
fn name_of_host(host: &str) -> String {
    let word = |character: char| if character.is_ascii_alphanumeric() || character == '_' { character } else { '-' };
    host.chars().map(word).take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests;
