//! Checked values and their origins, on their way to one upstream's settings. The builder and the loader both end here,
//! so what no single key can see is checked once.

use super::datum::{Datum, Field};
use super::file::Subject;
use super::keys::{self, KEYS};
use super::kind::Wrong;
use super::problem::{Origin, Place, Problem, Warning, part, quote};
use super::{Effective, GuardSettings, Profile, Settings, pairs};

/// The longest name of an upstream.
pub(crate) const LONGEST_NAME: usize = 64;

/// A value that somebody set, and where.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) datum: Datum,
    pub(crate) origin: Origin,
}

/// What has been set so far, by the key's index in [`KEYS`].
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    given: Vec<Option<Given>>,
    /// The key was set to something that is refused, so that it is not missing.
    refused: Vec<bool>,
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self { given: vec![None; KEYS.len()], refused: vec![false; KEYS.len()] }
    }

    pub(crate) fn set(&mut self, key: usize, datum: Datum, origin: Origin) {
        if let Some(place) = self.given.get_mut(key) {
            *place = Some(Given { datum, origin });
        }
    }

    /// Takes away what was set.
    pub(crate) fn unset(&mut self, key: usize) {
        if let Some(place) = self.given.get_mut(key) {
            *place = None;
        }
    }

    pub(crate) fn given(&self, key: usize) -> Option<&Given> {
        self.given.get(key)?.as_ref()
    }

    /// Notes that the key was set to something that is refused.
    pub(crate) fn refuse(&mut self, key: usize) {
        if let Some(refused) = self.refused.get_mut(key) {
            *refused = true;
        }
    }

    /// Says what `other` says, in the place of what was said before.
    pub(crate) fn lay_over(&mut self, other: Self) {
        for (key, given) in other.given.into_iter().enumerate() {
            if let Some(Given { datum, origin }) = given {
                self.set(key, datum, origin);
            }
        }
        self.refused.iter_mut().zip(other.refused).for_each(|(ours, theirs)| *ours |= theirs);
    }

    /// Notes that nothing is missing here, whatever is not set.
    pub(crate) fn refuse_all(&mut self) {
        self.refused.fill(true);
    }

    pub(crate) fn is_refused(&self, key: usize) -> bool {
        self.refused.get(key).is_some_and(|refused| *refused)
    }

    /// The same, by the key's name.
    pub(super) fn was_refused(&self, name: &str) -> bool {
        keys::find(name).is_some_and(|key| self.is_refused(key))
    }

    /// What the key `name` was set to.
    pub(super) fn named(&self, name: &str) -> Option<&Given> {
        self.given(keys::find(name)?)
    }

    /// The host of the `base_url`, where one was set.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.named("base_url")?.datum {
            Datum::Url(base_url) => Some(base_url.host()),
            _ => None,
        }
    }

    /// What was set, by the key's index.
    pub(crate) fn into_values(self) -> impl Iterator<Item = (usize, Datum)> {
        let values = self.given.into_iter().enumerate();
        values.filter_map(|(key, given)| given.map(|given| (key, given.datum)))
    }

    /// The profile that was named.
    fn profile(&self) -> Option<Profile> {
        Profile::from_datum(self.named("profile")?.datum.clone())
    }

    /// The same with the values of its profile for the keys that nobody set.
    fn filled_in(&self) -> Self {
        let mut filled = self.clone();
        if let Some(profile) = self.profile() {
            let missing = profile.values().iter().filter(|(key, _)| self.given(*key).is_none());
            missing.for_each(|(key, datum)| filled.set(*key, datum.clone(), Origin::Profile(profile)));
        }
        filled
    }

    /// The settings of the upstream `name`, whose keys have paths beginning with `path`. `None`: they have a problem of
    /// their own, which has been added, or no `base_url`, which the caller reports.
    pub(crate) fn finish(
        self,
        name: &str,
        path: &str,
        problems: &mut Vec<Problem>,
    ) -> Option<(Effective, Vec<Warning>)> {
        let filled = self.filled_in();
        let refusals = pairs::refusals(&filled, path);
        let is_refused = !refusals.is_empty();
        problems.extend(refusals);
        let Datum::Url(base_url) = self.named("base_url")?.datum.clone() else {
            return None;
        };
        if is_refused {
            return None;
        }
        let mut settings = Settings::new(name, base_url);
        let mut origins = Vec::with_capacity(KEYS.len());
        for (key, given) in KEYS.iter().zip(&filled.given) {
            origins.push(given.as_ref().map_or(Origin::Default, |given| given.origin.clone()));
            if let Some(given) = given {
                let fits = key.put(&mut settings, given.datum.clone());
                debug_assert!(fits, "the kind of {} does not fit its field", key.name);
            }
        }
        // Of what nobody set nobody is warned.
        let warnings = pairs::warnings(&settings, &self, path);
        Some((Effective::new(settings, origins), warnings))
    }

    /// What is said of the guard `name`. `None`: it has a problem of its own, which has been added.
    pub(super) fn finish_guard(self, name: &str, path: &str, problems: &mut Vec<Problem>) -> Option<GuardSettings> {
        let refusals = pairs::refusals(&self.filled_in(), path);
        let is_refused = !refusals.is_empty();
        problems.extend(refusals);
        let mut settings = GuardSettings::new(name);
        for (key, given) in self.given.into_iter().enumerate() {
            if let Some(Given { datum, origin }) = given {
                settings.put(key, datum, origin);
            }
        }
        (!is_refused).then_some(settings)
    }
}

/// The problems that a refused value makes; `origin` says where the value, or the byte offset of a part of it, is.
pub(crate) fn problems(
    wrongs: Vec<Wrong>,
    path: &str,
    origin: impl Fn(Option<usize>) -> Origin,
) -> impl Iterator<Item = Problem> {
    wrongs.into_iter().map(move |Wrong { message, expected, found, nearest, inside }| {
        let (path, at) = match inside {
            Some((part, at)) => (format!("{path}{part}"), Some(at)),
            None => (path.to_owned(), None),
        };
        let nearest = nearest.map(str::to_owned);
        Problem { expected, found, nearest, ..Problem::new(Place::At(origin(at)), path, message) }
    })
}

/// Why `name` cannot name an upstream, or a guard.
pub(super) fn check_name(subject: Subject, name: &str) -> Result<(), Wrong> {
    let allowed = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if allowed && (1..=LONGEST_NAME).contains(&name.len()) {
        return Ok(());
    }
    let whose = if subject == Subject::Upstream { "an upstream's" } else { "a guard's" };
    let expected = format!("{whose} name, 1 to {LONGEST_NAME} of A-Z a-z 0-9 _ -");
    Err(Wrong::mismatch(expected, quote(name)))
}

/// `path.name`, or `name` where there is no path.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { part(name) } else { format!("{path}.{}", part(name)) }
}
