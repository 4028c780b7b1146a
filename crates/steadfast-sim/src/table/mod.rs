//! Tables in TOML, read against their keys: what scenario and simulation files have in common.
//!
//! A file's module says which [`Table`]s there are and what its keys take, a [`KeyType`] of its own; the reader, the schema
//! for editors and the reference are made from these and cannot differ. Every mistake is noted with its place, what was
//! expected and the nearest known name, and reading goes on.
//!
//! | module | is |
//! |---|---|
//! | `fields` | one table, read against its keys |
//! | `values` | the values that both read, and the words for what is refused |
//! | `source` | a file's text, and which of its variants |
//! | `file` | from a path to text and settings, and from mistakes to what is said |
//! | `schema`, `reference` | the keys for editors, and for the documentation |
//!
//! Limits: it is as general as these two need it. Settings of upstreams and guards are the loader's of configurations.

mod fields;
mod file;
mod reference;
mod schema;
mod source;
mod values;

use steadfast::config::Problem;
use toml::Spanned;
use toml::de::DeValue;

pub(crate) use fields::{Fields, Of, values_read};
pub(crate) use file::{in_order, loader, read_text, title};
pub(crate) use reference::reference;
pub(crate) use schema::{DURATION, NAME_PATTERN, document, object, range, settings};
pub(crate) use source::Source;
pub(crate) use values::{A_NAME, counts, duration, integer, is_name, one_of, refused, word};

/// A key of one of the tables of a file.
#[derive(Clone, Copy, Debug)]
pub struct Key<K: 'static> {
    /// Its name.
    pub name: &'static str,
    pub(crate) kind: K,
    pub(crate) required: bool,
    /// What it means, in a sentence.
    pub meaning: &'static str,
}

/// One of the tables of a file.
#[derive(Clone, Copy, Debug)]
pub struct Table<K: 'static> {
    /// Where it stands: `[[step]]`, or `[model.NAME]`.
    pub place: &'static str,
    /// Its keys.
    pub keys: &'static [Key<K>],
}

/// A key that may be left out.
pub(crate) const fn key<K: Copy>(name: &'static str, kind: K, meaning: &'static str) -> Key<K> {
    Key { name, kind, required: false, meaning }
}

/// A key that must be there.
pub(crate) const fn required<K: Copy>(name: &'static str, kind: K, meaning: &'static str) -> Key<K> {
    Key { name, kind, required: true, meaning }
}

/// The types of a file's keys: what each accepts, and the words for what it does not.
pub(crate) trait KeyType: Copy + 'static {
    /// A value that its type has accepted.
    type Read: Clone;

    /// The type in a sentence, and in the reference.
    fn expected(self) -> String;

    /// Whether others read the value, and complain: the loader of configurations, for one.
    fn is_left_to_others(self) -> bool;

    /// Reads a value; what is wrong with it goes to `problems`.
    fn read<'t>(
        self,
        source: &Source<'_, 't>,
        path: &str,
        value: &Spanned<DeValue<'t>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Self::Read>;
}
