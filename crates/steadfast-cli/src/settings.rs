//! Where a client's settings come from: a file and the environment, or a URL; and single keys, typed for this once, over
//! either.

use std::path::Path;

use steadfast::Clients;
use steadfast::client::BuildError;
use steadfast::config::{Config, Loader, Origin, Problem, Problems, Settings};
use steadfast::transport::TlsConfigError;

use crate::output;

/// What stands for a file in problems of a call by URL.
const URL: &str = "--url";

/// A key that was typed, and how.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The flag it was typed with: `--set retries`, `--proxy`.
    pub(crate) flag: String,
    pub(crate) key: String,
    pub(crate) text: String,
}

/// Without the text, which may hold a secret.
impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("flag", &self.flag).field("key", &self.key).finish_non_exhaustive()
    }
}

/// A file's table filled in from this process's environment; without a file the environment alone.
pub(crate) fn from_file(file: Option<&Path>, table: Option<&str>, env_prefix: &str) -> Loader {
    let mut loader = Loader::new().env_prefix(env_prefix).process_env();
    if let Some(table) = table {
        loader = loader.table(table);
    }
    if let Some(file) = file {
        loader = loader.file(file);
    }
    loader
}

/// One upstream at this URL. The environment is not read.
pub(crate) fn from_url(name: &str, base_url: &str) -> Loader {
    // JSON's strings are among TOML's.
    let text = format!("[upstreams.{}]\nbase_url = {}\n", serde_json::json!(name), serde_json::json!(base_url));
    Loader::new().text(URL, text)
}

/// The configuration with what was typed for one upstream.
pub(crate) fn load(loader: Loader, upstream: &str, typed: &[Setting]) -> Result<Config, Problems> {
    let set = |loader: Loader, setting: &Setting| loader.set(upstream, &setting.key, &setting.text);
    typed.iter().fold(loader.clone(), set).load().or_else(|problems| match loader.load() {
        // A name that nobody knows is no problem of the configuration; whoever asks for it is told the known ones.
        Ok(config) if config.upstream(upstream).is_none() => Ok(config),
        _ => Err(problems),
    })
}

/// Why clients cannot be made from a configuration that is valid in itself, and where the cause was set.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) origin: Option<Origin>,
    pub(crate) path: String,
    pub(crate) message: String,
    key: &'static str,
}

impl Unusable {
    fn new(config: &Config, error: &BuildError) -> Self {
        let (upstream, message, key) = match error {
            BuildError::Tls { upstream, source } => {
                let set = config.upstream(upstream);
                let key = set.and_then(|set| key_of_file(set.settings(), source)).unwrap_or_default();
                (upstream, source.to_string(), key)
            }
            BuildError::Proxy { upstream, source } => (upstream, source.to_string(), "proxy"),
            _ => return Self { origin: None, path: String::new(), message: error.to_string(), key: "" },
        };
        let set = config.upstream(upstream);
        let entry = set.and_then(|set| set.entries().find(|entry| entry.key == key));
        let origin = entry.map(|entry| entry.origin).filter(|origin| *origin != Origin::Default);
        let path = match origin {
            Some(_) => format!("upstreams.{upstream}.{key}"),
            None => format!("upstreams.{upstream}"),
        };
        Self { origin, path, message, key }
    }

    /// Says so on standard error, of what was `typed` in its own words.
    pub(crate) fn report(&self, typed: &[Setting]) {
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let place = match &self.origin {
            Some(Origin::Override) => typed_as(typed, self.key).map_or(path, |setting| format!("{}: ", setting.flag)),
            Some(origin) => format!("{origin}: {path}"),
            None => path,
        };
        output::note(&format!("error: {place}{}", self.message));
    }
}

/// The key that names the file which cannot be used. Files are read only when a client is made.
fn key_of_file(settings: &Settings, error: &TlsConfigError) -> Option<&'static str> {
    let file = Some(error.path()?);
    let is_identity = settings.tls_identity.as_deref() == file;
    Some(match settings.tls_identity_key.as_deref() == file {
        true => "tls_identity_key",
        false if is_identity => "tls_identity",
        false => "tls_roots",
    })
}

/// The clients of this configuration. Nothing is connected, but certificates are read.
pub(crate) fn clients(config: &Config) -> Result<Clients, Unusable> {
    Clients::new(config).map_err(|error| Unusable::new(config, &error))
}

/// Says what is allowed but probably not meant.
pub(crate) fn warn(config: &Config) {
    for warning in config.warnings() {
        output::note(&format!("warning: {warning}"));
    }
}

/// Says what is wrong, all of it.
pub(crate) fn report(problems: &Problems) {
    report_call(problems, "", &[]);
}

/// The same of a call to one upstream, whose keys have paths that begin with `above`: of what was typed in the words that
/// were typed.
pub(crate) fn report_call(problems: &Problems, above: &str, typed: &[Setting]) {
    for problem in problems.iter() {
        match typed_place(problem, above, typed) {
            Some(place) => output::note(&format!("error: {place}: {}", problem.message())),
            None => output::note(&format!("error: {problem}")),
        }
    }
}

fn typed_place(problem: &Problem, above: &str, typed: &[Setting]) -> Option<String> {
    let key = problem.path().strip_prefix(above).and_then(|rest| rest.split(['.', '[']).next());
    match (problem.file(), problem.variable()) {
        (Some(URL), _) if key == Some("base_url") => Some(URL.to_owned()),
        // The name is all that the text for a URL says besides.
        (Some(URL), _) => Some("UPSTREAM".to_owned()),
        (None, None) => typed_as(typed, key?).map(|setting| setting.flag.clone()),
        _ => None,
    }
}

/// How the key was typed; of two the later counts.
fn typed_as<'a>(typed: &'a [Setting], key: &str) -> Option<&'a Setting> {
    typed.iter().rev().find(|setting| setting.key == key)
}
