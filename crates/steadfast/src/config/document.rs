//! TOML text: its values with their places, and its syntax errors as problems.
//!
//! The parser's own error text is not used, because it quotes the faulty line, which may hold a secret.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::kind::Wrong;
use super::nearest::nearest;
use super::problem::{Origin, Place, Problem, clean};
use super::value::{Item, Name, Value};

/// A parsed file.
pub struct Document<'t> {
    /// Its name, as it was given to the loader.
    pub file: &'t str,
    /// What it holds. After a syntax error: what the parser made of it.
    pub root: DeTable<'t>,
    text: &'t str,
    lines: Lines<'t>,
    errors: Vec<Error>,
}

/// A table's entry: its key, and its value.
pub type Entry<'a, 't> = (&'a Spanned<Cow<'t, str>>, &'a Spanned<DeValue<'t>>);

impl<'t> Document<'t> {
    /// Parses this text; `file` is what problems call it.
    pub fn parse(file: &'t str, text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        Self { file, root: root.into_inner(), text, lines: Lines::of(text), errors }
    }

    /// The syntax errors, the first of each line: one mistake often makes many.
    pub fn syntax_problems(&self) -> Vec<Problem> {
        let start = |error: &Error| error.span().map_or(0, |span| span.start);
        let mut errors: Vec<&Error> = self.errors.iter().collect();
        errors.sort_by_key(|error| start(error));
        errors.dedup_by_key(|error| self.lines.position(start(error)).0);
        errors.into_iter().map(|error| self.syntax_problem(error)).collect()
    }

    fn syntax_problem(&self, error: &Error) -> Problem {
        let span = error.span().unwrap_or(0..0);
        let message = match self.text.get(span.clone()) {
            Some(key) if is_duplicate(error) => format!("duplicate key `{}`", clean(key, 60)),
            _ => format!("TOML syntax: {}", clean(error.message().trim_end_matches(", expected nothing"), 300)),
        };
        Problem::new(Place::At(self.origin(span.start)), "", message)
    }

    /// Whether the values can be judged: there is no syntax error, or only keys that are set twice.
    pub fn is_readable(&self) -> bool {
        self.errors.iter().all(is_duplicate)
    }

    /// Where the byte `offset` is.
    pub fn origin(&self, offset: usize) -> Origin {
        let (line, column) = self.lines.position(offset);
        Origin::File { file: self.file.to_owned(), line, column }
    }

    /// A problem at the byte `offset`.
    pub(super) fn problem(&self, offset: usize, path: &str, wrong: Wrong) -> Problem {
        let Wrong { message, expected, found, nearest, .. } = wrong;
        let nearest = nearest.map(str::to_owned);
        Problem { expected, found, nearest, ..Problem::new(Place::At(self.origin(offset)), path, message) }
    }

    /// A problem at the byte `offset` that `message` says whole.
    pub fn says(&self, offset: usize, path: &str, message: impl Into<String>) -> Problem {
        self.problem(offset, path, Wrong::says(message))
    }

    /// A problem at the byte `offset`: one thing was expected, and another found.
    pub fn expects(&self, offset: usize, path: &str, expected: &str, found: &str) -> Problem {
        self.problem(offset, path, Wrong::mismatch(expected, found))
    }

    /// A name that nobody knows, with the known one that was probably meant.
    pub fn unknown<'k>(
        &self,
        offset: usize,
        path: &str,
        given: &str,
        what: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Problem {
        let near = nearest(given, known);
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Problem { nearest: near.map(str::to_owned), ..self.says(offset, path, format!("{what}{hint}")) }
    }
}

/// What a value is, in TOML's words, and what it says unless that may be a secret.
pub fn describe(value: &Spanned<DeValue<'_>>, secret: bool) -> String {
    item(value).value.describe(secret)
}

fn is_duplicate(error: &Error) -> bool {
    error.message() == "duplicate key"
}

/// The entries of a table in the order of the file.
pub fn entries<'a, 't>(table: &'a DeTable<'t>) -> Vec<Entry<'a, 't>> {
    let mut entries: Vec<Entry<'a, 't>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// A value in the form that the keys' types read.
pub(super) fn item(value: &Spanned<DeValue<'_>>) -> Item {
    let at = value.span().start;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).map_or(Value::HugeInteger, Value::Integer)
        }
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN), number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(items) => Value::Array(items.iter().map(item).collect()),
        DeValue::Table(table) => {
            let name = |key: &Spanned<Cow<'_, str>>| Name { text: key.get_ref().to_string(), at: key.span().start };
            Value::Table(entries(table).into_iter().map(|(key, value)| (name(key), item(value))).collect())
        }
    };
    Item { value, at }
}

/// Byte offsets to lines and columns, in time that does not depend on the length of a line.
struct Lines<'t> {
    text: &'t str,
    /// The offset of each line's first byte.
    starts: Vec<usize>,
    /// Characters before every [`STRIDE`]th byte.
    characters: Vec<usize>,
}

const STRIDE: usize = 256;

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(offset, _)| offset + 1)).collect();
        let mut before = 0;
        let mut characters = Vec::with_capacity(text.len() / STRIDE + 1);
        for chunk in text.as_bytes().chunks(STRIDE) {
            characters.push(before);
            before += count_characters(chunk);
        }
        Self { text, starts, characters }
    }

    /// Line and column of the byte `offset`, both from 1, the column in characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line, self.characters_before(offset) - self.characters_before(start) + 1)
    }

    fn characters_before(&self, offset: usize) -> usize {
        let chunk = (offset / STRIDE).min(self.characters.len().saturating_sub(1));
        let rest = self.text.as_bytes().get(chunk * STRIDE..offset).unwrap_or_default();
        self.characters.get(chunk).copied().unwrap_or(0) + count_characters(rest)
    }
}

/// Characters that begin in these bytes of UTF-8.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xc0) != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "a\r\näö = 1\n\nx";
        let lines = Lines::of(text);
        assert_eq!(lines.position(0), (1, 1));
        assert_eq!(lines.position(text.find('ö').unwrap()), (2, 2));
        assert_eq!(lines.position(text.find('=').unwrap()), (2, 4));
        assert_eq!(lines.position(text.find('x').unwrap()), (4, 1));
        assert_eq!(lines.position(9_999), (4, 2));
        assert_eq!(Lines::of("").position(7), (1, 1));
    }

    #[test]
    fn a_long_line_is_counted_as_a_short_one() {
        let text = format!("é\n{}", "aé".repeat(2_000));
        let lines = Lines::of(&text);
        for (column, (offset, _)) in text[3..].char_indices().enumerate() {
            assert_eq!(lines.position(3 + offset), (2, column + 1));
        }
    }
}
