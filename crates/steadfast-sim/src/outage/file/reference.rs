//! The tables of keys as Markdown, which `docs/simulate.md` has.

use std::fmt::Write as _;

use super::keys::TABLES;

/// Every table of a simulation file: its keys, what they take, and what they mean. `*` marks those that must be there.
pub fn reference() -> String {
    let mut text = String::new();
    for table in TABLES {
        let place = match table.place.split_once(" of ") {
            Some((key, of)) => format!("`{key}` of `{of}`"),
            None if table.place.starts_with('[') => format!("`{}`", table.place),
            None => table.place.to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "### {place}\n\n| key | takes | means |\n|---|---|---|");
        for key in table.keys {
            let must = if key.required { " *" } else { "" };
            let _ = writeln!(text, "| `{}`{must} | {} | {} |", key.name, key.kind.expected(), key.meaning);
        }
        text.push('\n');
    }
    text
}
