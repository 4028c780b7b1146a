//! The tables of keys as Markdown, which `docs/simulate.md` has.

use super::keys::TABLES;
use crate::table;

/// Every table of a simulation file: its keys, what they take, and what they mean. `*` marks those that must be there.
pub fn reference() -> String {
    table::reference(TABLES, place)
}

/// `cold of [model.NAME]` with its code marked.
fn place(place: &str) -> String {
    match place.split_once(" of ") {
        Some((key, of)) => format!("`{key}` of `{of}`"),
        None if place.starts_with('[') => format!("`{place}`"),
        None => place.to_owned(),
    }
}
