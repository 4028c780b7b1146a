//! `clippy.toml`: the list of clients as clippy reads it, and what a file that exists lacks of it.
//!
//! A file that exists is read as TOML, because a path in a comment forbids nothing. What it lacks is said in a form that
//! can be added as it stands: entries where the array is there, since a second array of its name is an error, else the
//! whole array.

use std::fmt::Write;

use super::clients::{FAMILIES, Family};

/// One of the two keys of `clippy.toml`.
#[derive(Clone, Copy)]
enum List {
    Methods,
    Types,
}

impl List {
    const BOTH: [Self; 2] = [Self::Methods, Self::Types];

    fn key(self) -> &'static str {
        match self {
            Self::Methods => "disallowed-methods",
            Self::Types => "disallowed-types",
        }
    }

    fn of(self, family: &Family) -> &'static [&'static str] {
        match self {
            Self::Methods => family.methods,
            Self::Types => family.types,
        }
    }
}

const HEAD: &str = "\
# Clients that have no deadline over all their attempts and no circuit breaker, for clippy to forbid.
# Made by `steadfast init`; `steadfast init --only clippy` says what a later version would add.
#
# Clippy reads the first clippy.toml that it finds, from a package's own directory upwards, and no other: a member of a
# workspace that has one of its own needs these lines in it.
#
# Where such a client is right, say so at the place:
#   #[expect(clippy::disallowed_methods, reason = \"the health check of the proxy itself\")]
";

/// The file as a whole.
pub(super) fn file() -> String {
    let mut text = HEAD.to_owned();
    for list in List::BOTH {
        text.push('\n');
        array(&mut text, list, |_| true);
    }
    text
}

/// What a file of this text lacks, to be added by hand; `None` if it has everything.
///
/// # Errors
/// It is not TOML; the text says where and why.
pub(super) fn missing(text: &str) -> Result<Option<Missing>, String> {
    let present: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut missing = Missing { text: String::new(), lines: 0 };
    for list in List::BOTH {
        let known = paths(present.get(list.key()));
        let lacks = |path: &str| !known.contains(&path);
        let count = FAMILIES.iter().flat_map(|family| list.of(family)).filter(|path| lacks(path)).count();
        if count == 0 {
            continue;
        }
        if present.contains_key(list.key()) {
            let _ = writeln!(missing.text, "# Into {} = [ … ]:", list.key());
            entries(&mut missing.text, list, lacks);
        } else {
            // Before anything that may be in a table.
            let _ = writeln!(missing.text, "# At the top:");
            array(&mut missing.text, list, lacks);
        }
        missing.lines += count;
    }
    Ok((missing.lines > 0).then_some(missing))
}

/// Lines to be added to a file.
pub(super) struct Missing {
    /// The lines, with a comment that says where they go.
    pub(super) text: String,
    /// How many paths they forbid.
    pub(super) lines: usize,
}

/// The paths in one of the arrays: each is a text, or a table with one.
fn paths(array: Option<&toml::Value>) -> Vec<&str> {
    let items = array.and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().or_else(|| item.get("path")?.as_str())).collect()
}

fn array(text: &mut String, list: List, wanted: impl Fn(&str) -> bool) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} = [", list.key());
    entries(text, list, wanted);
    text.push_str("]\n");
}

fn entries(text: &mut String, list: List, wanted: impl Fn(&str) -> bool) {
    for family in FAMILIES {
        let mut paths = list.of(family).iter().filter(|path| wanted(path)).peekable();
        if paths.peek().is_some() {
            let _ = writeln!(text, "    # {}", family.of);
        }
        for path in paths {
            let varies = if family.varies { ", allow-invalid = true" } else { "" };
            let _ = writeln!(text, "    {{ path = \"{path}\", reason = \"{}\"{varies} }},", family.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> usize {
        FAMILIES.iter().map(|family| family.methods.len() + family.types.len()).sum()
    }

    #[test]
    fn the_file_lacks_nothing() {
        assert!(missing(&file()).unwrap().is_none());
    }

    #[test]
    fn no_path_stands_twice() {
        let mut paths: Vec<_> = FAMILIES.iter().flat_map(|family| [family.methods, family.types].concat()).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), all());
    }

    #[test]
    fn an_empty_file_lacks_everything_and_what_is_missing_completes_it() {
        let lacks = missing("").unwrap().unwrap();
        assert_eq!(lacks.lines, all());
        assert!(missing(&lacks.text).unwrap().is_none());
    }

    #[test]
    fn what_is_there_is_not_asked_for_again_in_either_form() {
        let text = "too-many-lines-threshold = 60\n\
                    disallowed-methods = [\"reqwest::get\", { path = \"ureq::get\", reason = \"ours\" }]\n";
        let lacks = missing(text).unwrap().unwrap();
        assert_eq!(lacks.lines, all() - 2);
        assert!(!lacks.text.contains("\"reqwest::get\"") && !lacks.text.contains("\"ureq::get\""));
        // A second array of that name would be refused: these are entries alone.
        assert!(!lacks.text.contains("\ndisallowed-methods = [") && lacks.text.contains("\ndisallowed-types = [\n"));
    }

    #[test]
    fn a_path_in_a_comment_is_not_there() {
        let lacks = missing("# \"reqwest::get\"\n").unwrap().unwrap();
        assert!(lacks.text.contains("\"reqwest::get\""));
    }

    #[test]
    fn what_is_not_toml_is_said_with_its_line() {
        let error = missing("a = 1\nb = [\n").err().unwrap();
        assert!(error.contains("line 2") || error.contains("line 3"), "{error}");
    }
}
