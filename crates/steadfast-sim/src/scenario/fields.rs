//! What a table of a scenario file is read as.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use steadfast::report::WaitReason;

use super::model::{Ending, Route};
use super::range::Range;
use crate::table::{self, values_read};

/// A table's values, each with its place.
pub(super) type Fields = table::Fields<Read>;

values_read! {
    /// A value that its type has accepted.
    #[derive(Clone, Debug)]
    pub(crate) enum Read {
        Text(String),
        Texts(Vec<String>),
        Flag(bool),
        Count(u64),
        Counts(Range<u64>),
        Duration(Duration),
        Durations(Range<Duration>),
        Headers(Vec<(HeaderName, HeaderValue)>),
        Patterns(Vec<(HeaderName, String)>),
        HeaderNames(Vec<HeaderName>),
        Method(Method),
        Route(Route),
        Ending(Ending),
        Endings(Vec<(Ending, Range<u64>)>),
        Waits(Vec<(WaitReason, Range<Duration>)>),
        Table(Fields),
    }
}
