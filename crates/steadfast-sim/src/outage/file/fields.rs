//! One table of a simulation file, read against its keys: every mistake is noted, and reading goes on.

use std::time::Duration;

use steadfast::config::Problem;
use steadfast::config::reading::{Document, entries, join};
use toml::de::DeTable;

use super::keys::Table;
use super::kind::{Kind, Read};
use crate::scenario::Range;

/// A table's values, each with its byte offset in the file.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) path: String,
    /// Where the table begins.
    pub(super) at: usize,
    values: Vec<(&'static str, usize, Option<Read>)>,
    /// Keys that were probably meant by others, which nobody knows.
    meant: Vec<String>,
}

/// A table that has a name.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) fields: Fields,
}

impl Fields {
    pub(super) fn read(
        document: &Document<'_>,
        table: &'static Table,
        path: &str,
        at: usize,
        toml: &DeTable<'_>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut fields = Self { path: path.to_owned(), at, values: Vec::new(), meant: Vec::new() };
        for (name, value) in entries(toml) {
            let (here, start) = (join(path, name.get_ref()), name.span().start);
            let Some(key) = table.keys.iter().find(|key| key.name == name.get_ref().as_ref()) else {
                let known = table.keys.iter().map(|key| key.name);
                let problem = document.unknown(start, &here, name.get_ref(), "unknown key", known);
                fields.meant.extend(problem.nearest().map(str::to_owned));
                problems.push(problem);
                continue;
            };
            let read = match key.kind {
                // The loader of configurations reads them, and complains.
                Kind::Upstreams => None,
                kind => kind.read(document, &here, value, problems),
            };
            fields.values.push((key.name, start, read));
        }
        // What is only misspelt is not missing as well.
        for key in table.keys.iter().filter(|key| key.required) {
            if !fields.has(key.name) && !fields.is_meant(key.name) {
                let message = format!("missing: {}", key.kind.expected());
                problems.push(document.says(at, &join(path, key.name), message));
            }
        }
        fields
    }

    /// A table that is not there.
    pub(super) fn empty(path: &str) -> Self {
        Self { path: path.to_owned(), at: 0, values: Vec::new(), meant: Vec::new() }
    }

    /// Whether the key is there, whatever its value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Whether the key is there in another spelling, which has been said.
    pub(super) fn is_meant(&self, name: &str) -> bool {
        self.meant.iter().any(|meant| meant == name)
    }

    /// Where the key stands.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.values.iter().find(|(known, _, _)| *known == name).map(|(_, at, _)| *at)
    }

    /// The value of a key; `None` if it is not there, or is refused.
    pub(super) fn value<T: Of>(&self, name: &str) -> Option<T> {
        let (_, _, read) = self.values.iter().find(|(known, _, _)| *known == name)?;
        T::of(read.clone()?)
    }

    /// The path of a key.
    pub(super) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }
}

/// What a value is taken out as.
pub(super) trait Of: Sized {
    fn of(read: Read) -> Option<Self>;
}

macro_rules! of {
    ($($variant:ident: $type:ty;)+) => {
        $(impl Of for $type {
            fn of(read: Read) -> Option<Self> {
                if let Read::$variant(value) = read { Some(value) } else { None }
            }
        })+
    };
}

of! {
    Text: String;
    Names: Vec<(String, usize)>;
    Flag: bool;
    Count: u64;
    Number: f64;
    Duration: Duration;
    Durations: Vec<Duration>;
    Numbers: Range<f64>;
    Counts: Range<u64>;
    Times: Range<Duration>;
    Table: Fields;
    Tables: Vec<Fields>;
    Named: Vec<Named>;
}
