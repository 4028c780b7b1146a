//! Tables of keys as Markdown, which the pages of documentation have.

use std::fmt::Write as _;

use super::{KeyType, Table};

/// Every table: its keys, what they take, and what they mean. `*` marks those that must be there; `place` says in Markdown
/// where a table stands.
pub(crate) fn reference<K: KeyType>(tables: &[&Table<K>], place: fn(&str) -> String) -> String {
    let mut text = String::new();
    for table in tables {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "### {}\n\n| key | takes | means |\n|---|---|---|", place(table.place));
        for key in table.keys {
            let must = if key.required { " *" } else { "" };
            let takes = key.kind.expected().replace('|', "\\|");
            let _ = writeln!(text, "| `{}`{must} | {takes} | {} |", key.name, key.meaning);
        }
        text.push('\n');
    }
    text
}
