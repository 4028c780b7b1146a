//! Checked values and their origins, on their way to one upstream's settings. The builder and the loader both end here,
//! so what no single key can see is checked once.

use steadfast_policy::line::RateStyle;

use super::datum::Datum;
use super::keys::{self, KEYS, MOST_IN_A_WINDOW};
use super::kind::Wrong;
use super::problem::{Origin, Place, Problem, Warning, part, quote};
use super::{Effective, Settings};

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
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self { given: vec![None; KEYS.len()] }
    }

    pub(crate) fn set(&mut self, key: usize, datum: Datum, origin: Origin) {
        if let Some(place) = self.given.get_mut(key) {
            *place = Some(Given { datum, origin });
        }
    }

    pub(crate) fn given(&self, key: usize) -> Option<&Given> {
        self.given.get(key)?.as_ref()
    }

    fn named(&self, name: &str) -> Option<&Given> {
        self.given(keys::find(name)?)
    }

    /// The host of the `base_url`, where one was set.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.named("base_url")?.datum {
            Datum::Url(base_url) => Some(base_url.host()),
            _ => None,
        }
    }

    /// The settings of the upstream `name`, whose keys have paths beginning with `path`. `None`: they have a problem of
    /// their own, which has been added, or no `base_url`, which the caller reports.
    pub(crate) fn finish(
        self,
        name: &str,
        path: &str,
        problems: &mut Vec<Problem>,
    ) -> Option<(Effective, Vec<Warning>)> {
        let crowded = self.crowded_window(path);
        let is_crowded = crowded.is_some();
        problems.extend(crowded);
        let Datum::Url(base_url) = self.named("base_url")?.datum.clone() else {
            return None;
        };
        if is_crowded {
            return None;
        }
        let mut settings = Settings::new(name, base_url);
        let mut origins = Vec::with_capacity(KEYS.len());
        for (key, given) in KEYS.iter().zip(self.given) {
            origins.push(given.as_ref().map_or(Origin::Default, |given| given.origin.clone()));
            if let Some(given) = given {
                let fits = key.put(&mut settings, given.datum);
                debug_assert!(fits, "the kind of {} does not fit its field", key.name);
            }
        }
        let warnings = exposed_token(&settings, path).into_iter().collect();
        Some((Effective::new(settings, origins), warnings))
    }

    /// The window style remembers every start, so that its limit has a lower bound than the smooth style's (6.1).
    fn crowded_window(&self, path: &str) -> Option<Problem> {
        let limit = self.named("rate_limit")?;
        let smooth = self.named("rate_limit_style").map(|given| &given.datum)
            == Some(&Datum::Word(keys::word_of(&keys::STYLES, RateStyle::Smooth)));
        match limit.datum {
            Datum::Count(count) if count > MOST_IN_A_WINDOW.into() && !smooth => {
                let expected = format!(
                    "at most {MOST_IN_A_WINDOW} with rate_limit_style = \"window\" (\"smooth\" takes up to 1000000000)"
                );
                let wrong = Wrong::mismatch(expected, count.to_string());
                problems(vec![wrong], &join(path, "rate_limit"), |_| limit.origin.clone()).next()
            }
            _ => None,
        }
    }
}

/// 8.3: a forwarded token that anybody on the way can read.
fn exposed_token(settings: &Settings, path: &str) -> Option<Warning> {
    let exposed = settings.forward_authorization && !settings.base_url.is_https() && !settings.base_url.is_loopback();
    exposed.then(|| Warning {
        path: join(path, "forward_authorization"),
        message: format!("callers' tokens are sent to {} without TLS", settings.base_url),
    })
}

/// The problems that a refused value makes; `origin` says where the value, or the byte offset of a part of it, is.
pub(crate) fn problems(
    wrongs: Vec<Wrong>,
    path: &str,
    origin: impl Fn(Option<usize>) -> Origin,
) -> impl Iterator<Item = Problem> {
    wrongs.into_iter().map(move |Wrong { message, expected, found, inside }| {
        let (path, at) = match inside {
            Some((part, at)) => (format!("{path}{part}"), Some(at)),
            None => (path.to_owned(), None),
        };
        Problem { expected, found, ..Problem::new(Place::At(origin(at)), path, message) }
    })
}

/// Why `name` cannot name an upstream.
pub(crate) fn check_name(name: &str) -> Result<(), Wrong> {
    let allowed = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if allowed && (1..=LONGEST_NAME).contains(&name.len()) {
        return Ok(());
    }
    let expected = format!("an upstream's name, 1 to {LONGEST_NAME} of A-Z a-z 0-9 _ -");
    Err(Wrong::mismatch(expected, quote(name)))
}

/// `path.name`, or `name` where there is no path.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { part(name) } else { format!("{path}.{}", part(name)) }
}
