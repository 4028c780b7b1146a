//! Where a client's settings come from: a file and the environment, or a URL and single keys.

use std::path::Path;

use steadfast::config::{Config, Loader, Problems};

use crate::output;

/// The variables that single keys become in a call by URL: read by the key's type, as a variable is.
const KEY_PREFIX: &str = "SET_";

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
