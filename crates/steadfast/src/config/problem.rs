//! What is wrong with a configuration, all of it at once, and what is merely worth a warning. Plain data with a
//! compiler-like text: `file:line:column: path: what`.
//!
//! Nothing here quotes the value of a header, a URL, or an unknown key: those may be secrets. What is quoted is escaped
//! and cut, so that a file cannot write to the terminal or flood a log.

use std::fmt;

use super::Profile;

/// Where an effective value came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it: the default.
    Default,
    /// Nobody set it: the value of the profile that somebody named.
    Profile(Profile),
    /// A configuration file.
    File {
        /// The file, as it was named to the loader.
        file: String,
        /// The line of the value, from 1.
        line: usize,
        /// The column of the value in characters, from 1.
        column: usize,
    },
    /// An environment variable.
    Env {
        /// The variable, as it is spelt in the environment.
        variable: String,
    },
    /// A setter of the builder.
    Builder,
    /// Set over all else, with [`Loader::set`](super::Loader::set).
    Override,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile(profile) => write!(f, "profile {profile}"),
            Self::File { file, line, column } => write!(f, "{}:{line}:{column}", clean(file, 300)),
            Self::Env { variable } => write!(f, "${}", clean(variable, 300)),
            Self::Builder => f.write_str("builder"),
            Self::Override => f.write_str("override"),
        }
    }
}

/// Where a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At a value, a key, a variable, or a setter.
    At(Origin),
    /// A file as a whole.
    File(String),
    /// Everything that was given, taken together.
    Everywhere,
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub(crate) place: Place,
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    pub(crate) nearest: Option<String>,
}

impl Problem {
    /// A problem that `message` says whole.
    pub(crate) fn new(place: Place, path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        Self { place, path, message, expected: None, found: None, nearest: None }
    }

    /// The file it is in, as it was named to the loader; `None` for a variable or a setter.
    pub fn file(&self) -> Option<&str> {
        match &self.place {
            Place::At(Origin::File { file, .. }) | Place::File(file) => Some(file),
            _ => None,
        }
    }

    /// The line in the file, from 1; `None` where the problem is the whole file, or no file.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::At(Origin::File { line, .. }) => Some(line),
            _ => None,
        }
    }

    /// The column in the file in characters, from 1; `None` as for [`line`](Self::line).
    pub fn column(&self) -> Option<usize> {
        match self.place {
            Place::At(Origin::File { column, .. }) => Some(column),
            _ => None,
        }
    }

    /// The environment variable it is in.
    pub fn variable(&self) -> Option<&str> {
        match &self.place {
            Place::At(Origin::Env { variable }) => Some(variable),
            _ => None,
        }
    }

    /// The key's path, such as `upstreams.billing.retries`; empty where no key is meant.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong, in words, without the place and the path.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the key takes, where it was given something else.
    pub fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    /// What it was given: the type, and the value unless it may be a secret.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// The known name nearest to an unknown one.
    pub fn nearest(&self) -> Option<&str> {
        self.nearest.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::At(Origin::Builder | Origin::Override | Origin::Profile(_) | Origin::Default)
            | Place::Everywhere => {}
            Place::At(origin) => write!(f, "{origin}: ")?,
            Place::File(file) => write!(f, "{}: ", clean(file, 300))?,
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a configuration. Its text is one line per problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    left_out: usize,
}

impl Problems {
    /// The most problems that are kept; the rest are counted. A file can hold a million mistakes.
    pub(crate) const MOST: usize = 200;

    /// Adds a problem.
    pub(crate) fn push(&mut self, problem: Problem) {
        if self.list.len() < Self::MOST {
            self.list.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// The problems: those of the files in their order, then those of the environment.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// How many there are, those that were counted only included.
    pub fn len(&self) -> usize {
        self.list.len() + self.left_out
    }

    /// Whether there is none. A `Problems` that is returned as an error is never empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Extend<Problem> for Problems {
    fn extend<T: IntoIterator<Item = Problem>>(&mut self, problems: T) {
        problems.into_iter().for_each(|problem| self.push(problem));
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<T: IntoIterator<Item = Problem>>(problems: T) -> Self {
        let mut list = Self::default();
        list.extend(problems);
        list
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        if self.left_out > 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Something that is allowed but probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub(crate) path: String,
    pub(crate) message: String,
}

impl Warning {
    /// The key's path, such as `upstreams.billing.base_url`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is the matter, in words, without the path.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// `text` with control and invisible characters escaped, cut after `most` characters.
pub fn clean(text: &str, most: usize) -> String {
    let mut cleaned = String::new();
    for character in text.chars().take(most) {
        match character {
            // Harmless, and a path of Windows stays readable.
            '\\' | '"' | '\'' => cleaned.push(character),
            other => cleaned.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(most).is_some() {
        cleaned.push('…');
    }
    cleaned
}

/// `text` as a quoted string, escaped and cut to a readable length.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", clean(text, 60))
}

/// One part of a key's path, quoted where TOML would ask for it.
pub(crate) fn part(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if bare && name.len() <= 60 { name.to_owned() } else { quote(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_quoted_reaches_the_terminal_as_a_command() {
        assert_eq!(quote("a\u{1b}[31mb\n"), r#""a\u{1b}[31mb\n""#);
        assert_eq!(quote("\u{202e}x"), r#""\u{202e}x""#);
        assert_eq!(clean(&"x".repeat(500), 3), "xxx…");
        assert_eq!(clean(r"C:\a 'b'.toml", 50), r"C:\a 'b'.toml");
        assert_eq!(part("read_timeout"), "read_timeout");
        assert_eq!(part("a b"), "\"a b\"");
        assert_eq!(part(""), "\"\"");
    }

    #[test]
    fn beyond_the_most_problems_are_counted() {
        let mut problems = Problems::default();
        problems.extend((0..Problems::MOST + 7).map(|n| Problem::new(Place::Everywhere, n.to_string(), "x")));
        assert_eq!(problems.len(), Problems::MOST + 7);
        assert!(problems.to_string().ends_with("\nand 7 more"));
    }
}
