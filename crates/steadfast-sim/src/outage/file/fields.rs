//! What a table of a simulation file is read as.

use std::time::Duration;

use crate::scenario::Range;
use crate::table::{self, values_read};

/// A table's values, each with its place.
pub(super) type Fields = table::Fields<Read>;

/// A table that has a name.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(super) name: String,
    pub(super) fields: Fields,
}

values_read! {
    /// A value that its type has accepted.
    #[derive(Clone, Debug)]
    pub(crate) enum Read {
        Text(String),
        Names(Vec<(String, usize)>),
        Flag(bool),
        Count(u64),
        Number(f64),
        Duration(Duration),
        Durations(Vec<Duration>),
        Numbers(Range<f64>),
        Counts(Range<u64>),
        Times(Range<Duration>),
        Table(Fields),
        Tables(Vec<Fields>),
        Named(Vec<Named>),
    }
}
