//! One table of a file, read against its keys: every mistake is noted, and reading goes on.

use steadfast::config::Problem;
use steadfast::config::reading::{entries, join};
use toml::de::DeTable;

use super::{KeyType, Source, Table};

/// A table's values, each with its byte offset in the file.
#[derive(Clone, Debug)]
pub(crate) struct Fields<R> {
    pub(crate) path: String,
    /// Where the table begins.
    pub(crate) at: usize,
    /// In the order of the file. `None`: a value that is refused, or that others read.
    values: Vec<(&'static str, usize, Option<R>)>,
    /// Keys that were probably meant by others, which nobody knows.
    meant: Vec<String>,
}

impl<R: Clone> Fields<R> {
    pub(crate) fn read<'t, K: KeyType<Read = R>>(
        source: &Source<'_, 't>,
        table: &'static Table<K>,
        path: &str,
        at: usize,
        toml: &DeTable<'t>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut fields = Self { at, ..Self::empty(path) };
        for (name, value) in entries(toml) {
            let (here, start) = (join(path, name.get_ref()), name.span().start);
            let Some(key) = table.keys.iter().find(|key| key.name == name.get_ref().as_ref()) else {
                let known = table.keys.iter().map(|key| key.name);
                let problem = source.unknown(start, &here, name.get_ref(), "unknown key", known);
                fields.meant.extend(problem.nearest().map(str::to_owned));
                problems.push(problem);
                continue;
            };
            let read = if key.kind.is_left_to_others() {
                None
            } else {
                key.kind.read(source, &here, source.resolve(value), problems)
            };
            fields.values.push((key.name, start, read));
        }
        // What is only misspelt is not missing as well.
        for key in table.keys.iter().filter(|key| key.required) {
            if !fields.has(key.name) && !fields.is_meant(key.name) {
                let message = format!("missing: {}", key.kind.expected());
                problems.push(source.says(at, &join(path, key.name), message));
            }
        }
        fields
    }

    /// A table that is not there.
    pub(crate) fn empty(path: &str) -> Self {
        Self { path: path.to_owned(), at: 0, values: Vec::new(), meant: Vec::new() }
    }

    /// Whether the key is there, whatever its value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Whether the key is there in another spelling, which has been said.
    pub(crate) fn is_meant(&self, name: &str) -> bool {
        self.meant.iter().any(|meant| meant == name)
    }

    /// Where the key stands.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.values.iter().find(|(known, _, _)| *known == name).map(|(_, at, _)| *at)
    }

    /// The keys that are there, each with its place, in the order of the file.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.values.iter().map(|(name, at, _)| (*name, *at))
    }

    /// The value of a key; `None` if it is not there, is refused, or is read by others.
    pub(crate) fn value<T: Of<R>>(&self, name: &str) -> Option<T> {
        let (_, _, read) = self.values.iter().find(|(known, _, _)| *known == name)?;
        T::of(read.clone()?)
    }

    /// The path of a key.
    pub(crate) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }
}

/// What a value is taken out as.
pub(crate) trait Of<R>: Sized {
    fn of(read: R) -> Option<Self>;
}

/// An enum of the values that a file's types accept, each of which can be taken out as what it is.
macro_rules! values_read {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident { $($variant:ident($type:ty),)+ }) => {
        $(#[$meta])*
        $visibility enum $name {
            $($variant($type),)+
        }

        $(impl $crate::table::Of<$name> for $type {
            fn of(read: $name) -> Option<Self> {
                if let $name::$variant(value) = read { Some(value) } else { None }
            }
        })+
    };
}

pub(crate) use values_read;
