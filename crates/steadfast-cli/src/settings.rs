//! Where a client's settings come from: a file and the environment, or a URL and single keys.

use std::path::Path;

use steadfast::Clients;
use steadfast::client::BuildError;
use steadfast::config::{Config, Loader, Origin, Problems};

use crate::output;

/// The variables that single keys become in a call by URL: read by the key's type, as a variable is.
const KEY_PREFIX: &str = "SET_";

/// The key whose files are read only when a client is made.
const TLS_ROOTS: &str = "tls_roots";

/// A file's table filled in from this process's environment; without a file the environment alone.
pub(crate) fn from_file(file: Option<&Path>, table: Option<&str>, env_prefix: &str) -> Result<Config, Problems> {
    let mut loader = Loader::new().env_prefix(env_prefix).process_env();
    if let Some(table) = table {
        loader = loader.table(table);
    }
    if let Some(file) = file {
        loader = loader.file(file);
    }
    loader.load()
}

/// One upstream at this URL with these keys. The environment is not read.
pub(crate) fn from_url(name: &str, base_url: &str, keys: &[(String, String)]) -> Result<Config, Problems> {
    // JSON's strings are among TOML's.
    let text = format!("[upstreams.{}]\nbase_url = {}\n", serde_json::json!(name), serde_json::json!(base_url));
    let variable = |key: &str| format!("{KEY_PREFIX}UPSTREAMS__{name}__{key}").to_uppercase().replace('-', "_");
    let keys = keys.iter().map(|(key, value)| (variable(key), value.clone()));
    Loader::new().text("--url", &text).env_prefix(KEY_PREFIX).env(keys).load()
}

/// Why clients cannot be made from a configuration that is valid in itself, and where the cause was set.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) origin: Option<Origin>,
    pub(crate) path: String,
    pub(crate) message: String,
}

impl Unusable {
    fn new(config: &Config, error: &BuildError) -> Self {
        let BuildError::Tls { upstream, source } = error else {
            return Self { origin: None, path: String::new(), message: error.to_string() };
        };
        let set = config.upstream(upstream).and_then(|set| set.entries().find(|entry| entry.key == TLS_ROOTS));
        let origin = set.map(|entry| entry.origin).filter(|origin| *origin != Origin::Default);
        let path = match origin {
            Some(_) => format!("upstreams.{upstream}.{TLS_ROOTS}"),
            None => format!("upstreams.{upstream}"),
        };
        Self { origin, path, message: source.to_string() }
    }

    /// Says so on standard error.
    pub(crate) fn report(&self) {
        let origin = self.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        output::note(&format!("error: {origin}{path}{}", self.message));
    }
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

/// Says what is wrong with a URL and its keys, in the words that were typed.
pub(crate) fn report_url(problems: &Problems) {
    // A name that is none spoils the paths of its keys too.
    let misnamed = problems.iter().any(|problem| problem.variable().is_none() && key(problem.path()) != "base_url");
    for problem in problems.iter() {
        let (key, message) = (key(problem.path()), problem.message());
        match problem.variable() {
            Some(_) if misnamed => {}
            Some(_) => output::note(&format!("error: --set {key}: {message}")),
            None if key == "base_url" => output::note(&format!("error: --url: {message}")),
            None => output::note(&format!("error: UPSTREAM: {message}")),
        }
    }
}

/// What follows the upstream's name in a key's path.
fn key(path: &str) -> &str {
    path.splitn(3, '.').nth(2).unwrap_or_default()
}

/// Says what is wrong, all of it.
pub(crate) fn report(problems: &Problems) {
    for problem in problems.iter() {
        output::note(&format!("error: {problem}"));
    }
}
