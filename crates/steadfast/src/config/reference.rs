//! The table of keys as a page for people. `docs/configuration.md` holds this very text.

use std::fmt::Write;

use super::keys::{KEYS, Key};

/// Every key with its type, default, bounds, and meaning, as a Markdown table.
pub fn reference() -> String {
    let mut page = String::from("| Key | Type | Default | Bounds | Meaning |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let (name, kind, bounds, meaning) = (key.name, key.type_name(), key.bounds(), key.meaning());
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{name}` | {kind} | {} | {bounds} | {meaning} |", default_of(key));
    }
    page
}

/// The default, the same for every version of this crate.
fn default_of(key: &Key) -> String {
    let default = key.default_text();
    match default.replace(env!("CARGO_PKG_VERSION"), "<version>") {
        general if general != default => format!("`{general}`"),
        _ => default,
    }
}
