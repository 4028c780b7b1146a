//! How a configuration is read and complained about, for the other files of this workspace's crates: scenarios report their
//! mistakes with place, expectation and nearest name as a configuration does. No promise is made on it to anybody else.

pub use super::document::{Document, Entry, describe, entries};
pub use super::draft::join;
pub use super::duration::{parse as parse_duration, show as show_duration};
pub use super::loader::read_file;
pub use super::nearest::nearest;
pub use super::problem::{clean, quote};
pub use steadfast_http::headers::is_secret;

use super::problem::{Place, Problem};

/// A problem of a file as a whole.
pub fn of_file(file: &str, message: impl Into<String>) -> Problem {
    Problem::new(Place::File(file.to_owned()), "", message)
}
