//! What a configuration says of one guard: the keys of upstreams that mean something without HTTP, each of them optional.
//!
//! A guard's place is in the code, which knows what it guards; an operator tunes it. So a table says what differs, and
//! what it does not say stays the code's. Types, bounds, meanings and words of mistakes are those of the one table of keys.

use std::time::Duration;

use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

use super::datum::{Datum, Field};
use super::keys::KEYS;
use super::problem::Origin;
use super::{Entry, Profile};

/// A key of guards: how a checked value gets into [`GuardSettings`], and out again.
struct Row {
    name: &'static str,
    put: fn(&mut GuardSettings, Datum) -> bool,
    datum: fn(&GuardSettings) -> Option<Datum>,
}

macro_rules! guard_keys {
    ($($name:ident: $field:ty;)+) => {
        /// What a configuration says of one guard, under `[guards.<name>]`. Each field is the key of that name, with the
        /// bounds that it has for an upstream: see [`Settings`](super::Settings). `None`: nothing is said of it, and what
        /// the code says holds.
        ///
        /// [`GuardBuilder::settings`](crate::GuardBuilder::settings) puts it in force.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct GuardSettings {
            /// The guard's name. 1 to 64 of `A-Z a-z 0-9 _ -`.
            pub name: String,
            $(#[doc = concat!("The key `", stringify!($name), "`.")]
            pub $name: Option<$field>,)+
            /// By the key's index in [`KEYS`].
            origins: Vec<(usize, Origin)>,
        }

        static ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            put: |settings, datum| Field::put(&mut settings.$name, datum),
            datum: |settings| Field::datum(&settings.$name),
        }),+];
    };
}

guard_keys! {
    profile: Profile;
    total_timeout: Duration;
    attempt_timeout: Duration;
    retries: u32;
    backoff_base: Duration;
    backoff_factor: f64;
    backoff_max: Duration;
    jitter: Jitter;
    jitter_max: Duration;
    max_retry_after: Duration;
    retry_after_jitter: Duration;
    retry_budget_ratio: f64;
    retry_budget_min_per_second: f64;
    retry_budget_gate: bool;
    breaker_failures: u32;
    breaker_failure_rate: f64;
    breaker_minimum_calls: u32;
    breaker_window: Duration;
    breaker_cool_down: Duration;
    breaker_cool_down_start: Duration;
    breaker_timeout_evidence: Duration;
    max_concurrent: u32;
    bulkhead_wait: Duration;
    rate_limit: u32;
    rate_limit_period: Duration;
    rate_limit_wait: Duration;
    rate_limit_style: RateStyle;
}

fn row(key: usize) -> Option<&'static Row> {
    let name = KEYS.get(key)?.name;
    ROWS.iter().find(|row| row.name == name)
}

/// Whether the key of this index in [`KEYS`] means something to a guard.
pub(super) fn takes(key: usize) -> bool {
    row(key).is_some()
}

impl GuardSettings {
    /// Nothing is said yet.
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The values of a profile that mean something to a guard.
    pub(crate) fn of_profile(profile: Profile) -> Self {
        let mut settings = Self::default();
        profile.values().iter().for_each(|(key, datum)| settings.put(*key, datum.clone(), Origin::Profile(profile)));
        settings
    }

    /// Says one thing; what no guard has is left out.
    pub(super) fn put(&mut self, key: usize, datum: Datum, origin: Origin) {
        if let Some(row) = row(key) {
            let fits = (row.put)(self, datum);
            debug_assert!(fits, "the kind of {} does not fit its field", row.name);
            self.origins.push((key, origin));
        }
    }

    /// Every key that something is said of, in the order of [`KEYS`]: with its value, and where that came from. Of a profile
    /// that the table names, those of its values that a guard has and nobody set: a setter in the code wins over them.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let of_profile = self.profile.map(Self::of_profile);
        KEYS.iter().enumerate().filter_map(move |(index, key)| {
            let said = |settings: &Self| {
                let (_, origin) = settings.origins.iter().find(|(known, _)| *known == index)?;
                let value = (row(index)?.datum)(settings)?.show();
                Some(Entry { key: key.name, value, origin: origin.clone() })
            };
            said(self).or_else(|| said(of_profile.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row is a key of the table, its field takes what the key allows, and nothing of HTTP is among them.
    #[test]
    fn every_row_is_a_key_and_fits_its_field() {
        let known: Vec<usize> = (0..KEYS.len()).filter(|key| takes(*key)).collect();
        assert_eq!(known.len(), ROWS.len());
        let settings = crate::config::SettingsBuilder::new("http://a")
            .profile(Profile::Ai)
            .attempt_timeout(Duration::from_secs(1))
            .breaker_cool_down_start(Duration::from_secs(1))
            .rate_limit(7)
            .rate_limit_wait(Duration::from_secs(1));
        let effective = settings.build_effective().unwrap();
        for key in known {
            let (row, shown) = (row(key).unwrap(), effective.entries().nth(key).unwrap());
            let mut guard = GuardSettings::new("a");
            guard.put(key, KEYS[key].datum_of(effective.settings()).unwrap(), Origin::Builder);
            assert_eq!((row.datum)(&guard).unwrap().show(), shown.value, "{}", row.name);
            assert!(!row.name.starts_with("http") && !row.name.starts_with("tls") && !row.name.contains("status"));
        }
    }

    #[test]
    fn a_profile_brings_what_a_guard_has() {
        let settings = GuardSettings::of_profile(Profile::Ai);
        assert_eq!((settings.retries, settings.max_concurrent), (Some(3), Some(20)));
        assert_eq!((settings.breaker_failures, settings.profile), (None, None));
        let keys: Vec<&str> = settings.entries().map(|entry| entry.key).collect();
        assert!(
            keys.contains(&"total_timeout") && !keys.contains(&"read_timeout") && !keys.contains(&"retry_statuses")
        );
    }
}
