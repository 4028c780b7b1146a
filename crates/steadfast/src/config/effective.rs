//! A configuration that is in force: each upstream's settings, and where each value came from.

use std::fmt;

use super::keys::KEYS;
use super::problem::{Origin, Warning, quote};
use super::{GuardSettings, Key, Settings};
use crate::guard::{Guard, GuardBuilder};

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
    pub(super) guards: Vec<GuardSettings>,
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

    /// What is said of guards, by name: those of the files in their order, then those that only the environment has.
    pub fn guards(&self) -> impl Iterator<Item = (&str, &GuardSettings)> {
        self.guards.iter().map(|guard| (guard.name.as_str(), guard))
    }

    /// What is said of the guard of exactly this name. To tune a guard that the code sets up:
    /// [`GuardBuilder::configured`].
    pub fn guard_settings(&self, name: &str) -> Option<&GuardSettings> {
        self.guards.iter().find(|guard| guard.name == name)
    }

    /// A builder for the guard of exactly this name, which the configuration must have: [`Guard::builder`] with what
    /// `[guards.<name>]` says.
    ///
    /// # Errors
    /// [`UnknownGuard`], which lists the names that are known.
    pub fn guard(&self, name: &str) -> Result<GuardBuilder, UnknownGuard> {
        match self.guard_settings(name) {
            Some(settings) => Ok(Guard::builder(name).settings(settings)),
            None => {
                let known = self.guards.iter().map(|guard| guard.name.clone()).collect();
                Err(UnknownGuard { name: name.to_owned(), known })
            }
        }
    }

    /// What is allowed but probably not meant. Each was also logged once when the configuration was loaded.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The configuration has no guard of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGuard {
    name: String,
    known: Vec<String>,
}

impl UnknownGuard {
    /// The names that are known.
    pub fn known(&self) -> &[String] {
        &self.known
    }
}

impl fmt::Display for UnknownGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no guard {} in the configuration; ", quote(&self.name))?;
        match self.known.as_slice() {
            [] => f.write_str("it has none"),
            known => write!(f, "it has: {}", known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownGuard {}
