//! One table of a scenario file, read against its keys: every mistake is noted, and reading goes on.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use steadfast::config::Problem;
use steadfast::config::reading::{entries, join};
use steadfast::report::WaitReason;
use toml::de::DeTable;

use super::keys::Table;
use super::kind::{Kind, Read};
use super::model::{Ending, Route};
use super::range::Range;
use super::source::Source;

/// A table's values, each with its byte offset in the file.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) path: String,
    /// Where the table begins.
    pub(super) at: usize,
    values: Vec<(&'static str, usize, Read)>,
    /// Keys that are there with a value that is refused, and those whose values others read.
    others: Vec<(&'static str, usize)>,
}

impl Fields {
    pub(super) fn read<'t>(
        document: &Source<'_, 't>,
        table: &'static Table,
        path: &str,
        at: usize,
        toml: &DeTable<'t>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut fields = Self { path: path.to_owned(), at, values: Vec::new(), others: Vec::new() };
        let mut meant = Vec::new();
        for (name, value) in entries(toml) {
            let here = join(path, name.get_ref());
            let Some(key) = table.keys.iter().find(|key| key.name == name.get_ref().as_ref()) else {
                let known = table.keys.iter().map(|key| key.name);
                let problem = document.unknown(name.span().start, &here, name.get_ref(), "unknown key", known);
                meant.extend(problem.nearest().map(str::to_owned));
                problems.push(problem);
                continue;
            };
            let start = name.span().start;
            let is_others =
                matches!(key.kind, Kind::Upstreams | Kind::Guards | Kind::Scripts | Kind::Steps | Kind::Variants);
            match if is_others { None } else { key.kind.read(document, &here, document.resolve(value), problems) } {
                Some(read) => fields.values.push((key.name, start, read)),
                None => fields.others.push((key.name, start)),
            }
        }
        // What is only misspelt is not missing as well.
        for key in table.keys.iter().filter(|key| key.required) {
            if !fields.has(key.name) && !meant.iter().any(|name| name == key.name) {
                let message = format!("missing: {}", key.kind.expected());
                problems.push(document.says(at, &join(path, key.name), message));
            }
        }
        fields
    }

    /// Whether the key is there, whatever its value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Where the key stands.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        let values = self.values.iter().map(|(known, at, _)| (*known, *at));
        values.chain(self.others.iter().copied()).find(|(known, _)| *known == name).map(|(_, at)| at)
    }

    /// The keys that are there, in the order of the file.
    pub(super) fn names(&self) -> Vec<(&'static str, usize)> {
        let values = self.values.iter().map(|(name, at, _)| (*name, *at));
        let mut names: Vec<_> = values.chain(self.others.iter().copied()).collect();
        names.sort_by_key(|(_, at)| *at);
        names
    }

    /// The value of a key; `None` if it is not there, or is refused.
    pub(super) fn value<T: Of>(&self, name: &str) -> Option<T> {
        let (_, _, read) = self.values.iter().find(|(known, _, _)| *known == name)?;
        T::of(read.clone())
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
    Texts: Vec<String>;
    Flag: bool;
    Count: u64;
    Counts: Range<u64>;
    Duration: Duration;
    Durations: Range<Duration>;
    Headers: Vec<(HeaderName, HeaderValue)>;
    Patterns: Vec<(HeaderName, String)>;
    HeaderNames: Vec<HeaderName>;
    Method: Method;
    Route: Route;
    Ending: Ending;
    Endings: Vec<(Ending, Range<u64>)>;
    Waits: Vec<(WaitReason, Range<Duration>)>;
    Table: Fields;
}
