//! From a path to a file's text, to the configuration that it names, and from its mistakes to what is said of it.

use std::path::Path;

use steadfast::config::reading::{clean, of_file, read_file};
use steadfast::config::{Loader, Problem, Problems};

/// More of a title is cut off; what would control a terminal is escaped.
const LONGEST_TITLE: usize = 200;

/// A title, as it is shown.
pub(crate) fn title(text: &str) -> String {
    clean(text, LONGEST_TITLE)
}

/// Reads a file by `parse`, which takes its name and its text.
pub(crate) fn read_text<T>(file: &Path, parse: impl FnOnce(&str, &str) -> Result<T, Problems>) -> Result<T, Problems> {
    let name = file.to_string_lossy();
    match read_file(file) {
        Ok(text) => parse(&name, &text),
        Err(message) => Err(Problems::from_iter([of_file(&name, message)])),
    }
}

/// The problems in the order in which they are said: those of the file by their places, and then those of the configuration
/// that it names. What is wrong in every variant, or under every policy, is said once.
pub(crate) fn in_order(mut problems: Vec<Problem>, file: &str) -> Problems {
    problems.sort_by_key(|problem| (problem.file() != Some(file), problem.line(), problem.column()));
    problems.dedup();
    problems.into_iter().collect()
}

/// What reads the `config` that a file names, and of it the `table`: by its path from there.
pub(crate) fn loader(file: &str, config: String, table: Option<String>) -> Loader {
    let beside = Path::new(file).parent().unwrap_or(Path::new(""));
    let loader = Loader::new().file(beside.join(config));
    match table {
        Some(table) => loader.table(table),
        None => loader,
    }
}
