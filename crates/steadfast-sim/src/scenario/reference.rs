//! The tables of keys as Markdown, which `docs/scenarios.md` has.

use super::keys::TABLES;
use crate::table;

/// Every table of a scenario file: its keys, what they take, and what they mean. `*` marks those that must be there.
pub fn reference() -> String {
    table::reference(TABLES, place)
}

/// `[[script.NAME]], of a guard` with its code marked.
fn place(place: &str) -> String {
    let place = if place.starts_with('[') { format!("`{place}`") } else { place.to_owned() };
    place.replace(", of a", "`, of a").replace("upstream`", "upstream").replace("guard`", "guard")
}
