//! The tables of keys as Markdown, which `docs/scenarios.md` has.

use std::fmt::Write as _;

use super::keys::TABLES;

/// Every table of a scenario file: its keys, what they take, and what they mean. `*` marks those that must be there.
pub fn reference() -> String {
    let mut text = String::new();
    for table in TABLES {
        let place = if table.place.starts_with('[') { format!("`{}`", table.place) } else { table.place.to_owned() };
        let place = place.replace(", of a", "`, of a").replace("upstream`", "upstream").replace("guard`", "guard");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "### {place}\n\n| key | takes | means |\n|---|---|---|");
        for key in table.keys {
            let must = if key.required { " *" } else { "" };
            let takes = key.kind.expected().replace('|', "\\|");
            let _ = writeln!(text, "| `{}`{must} | {takes} | {} |", key.name, key.meaning);
        }
        text.push('\n');
    }
    text
}
