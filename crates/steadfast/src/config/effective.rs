//! A configuration that is in force: each upstream's settings, and where each value came from.

use super::keys::KEYS;
use super::problem::{Origin, Warning};
use super::{Key, Settings};

/// One upstream's settings, and where each value came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    settings: Settings,
    /// By the key's index in [`KEYS`].
    origins: Vec<Origin>,
}

/// One key of an upstream with its effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The key's name.
    pub key: &'static str,
    /// The value as text; `unset` where there is none. The value of a header is masked unless its name says that it is
    /// harmless (`Accept`, `Content-Type`, and the like).
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
}

impl Effective {
    pub(super) fn new(settings: Settings, origins: Vec<Origin>) -> Self {
        Self { settings, origins }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings, without their origins.
    pub fn into_settings(self) -> Settings {
        self.settings
    }

    /// Every key with its value and origin, in the order of [`KEYS`].
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let entry = |(key, origin): (&Key, &Origin)| Entry {
            key: key.name,
            value: key.show(&self.settings),
            origin: origin.clone(),
        };
        KEYS.iter().zip(&self.origins).map(entry)
    }
}

/// A whole configuration, valid: every upstream's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(super) upstreams: Vec<Effective>,
    pub(super) warnings: Vec<Warning>,
}

impl Config {
    /// The upstreams by name: those of the files in their order, then those that only the environment defines.
    pub fn upstreams(&self) -> impl Iterator<Item = (&str, &Effective)> {
        self.upstreams.iter().map(|upstream| (upstream.settings.name.as_str(), upstream))
    }

    /// The upstream of exactly this name.
    pub fn upstream(&self, name: &str) -> Option<&Effective> {
        self.upstreams.iter().find(|upstream| upstream.settings.name == name)
    }

    /// What is allowed but probably not meant. Each was also logged once when the configuration was loaded.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
