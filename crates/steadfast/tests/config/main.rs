//! Configuration as a user meets it: files, variables, what is in force, and what is said about mistakes (section 9).

// The helpers of these tests fail as the tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod environment;
mod faulty;
mod files;
mod guards;
mod hostile;
mod overlay;
mod overrides;
mod pairs;
mod profiles;
mod reference;
mod schema;
mod values;

use steadfast::config::{Config, Loader, Problems};

/// Loads TOML text named `app.toml`.
fn load(toml: &str) -> Result<Config, Problems> {
    Loader::new().text("app.toml", toml).load()
}

/// What is said about faulty TOML text.
fn complaint(toml: &str) -> String {
    load(toml).expect_err("is refused").to_string()
}

/// The value and the origin that `entries` shows for a key.
fn entry(config: &Config, upstream: &str, key: &str) -> (String, String) {
    let effective = config.upstream(upstream).expect("the upstream is configured");
    let entry = effective.entries().find(|entry| entry.key == key).expect("the key is known");
    (entry.value, entry.origin.to_string())
}
