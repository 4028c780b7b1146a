//! Reading a response as it comes: lines of text, and server-sent events.
//!
//! Each has a decoder without I/O, which takes bytes in pieces of any size and gives what is complete, and an adapter
//! that reads a body with it. Where the pieces are cut makes no difference, and the time is linear in the bytes.
//!
//! Limits: what is not complete is held, up to a bound of 1 MiB unless set; past it the stream ends with an error. Errors
//! name the line, and never quote it.

mod buffer;
mod events;
mod lines;
mod reader;
#[cfg(test)]
mod tests;

pub use events::{EventDecoder, ServerSentEvent};
pub use lines::LineDecoder;
pub use reader::{Events, Lines, ReadError};

use std::fmt;

/// The longest line and the largest event, unless set: 1 MiB.
pub const MAX_BYTES: usize = 1024 * 1024;

/// What comes is not what was to be read. Nothing more is read then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// A line is longer than it may be.
    LineTooLong {
        /// The line; the first is 1.
        line: u64,
        /// The most bytes that it may have.
        max: usize,
    },
    /// A line is not UTF-8.
    NotUtf8 {
        /// The line; the first is 1.
        line: u64,
    },
    /// An event is larger than it may be.
    EventTooLarge {
        /// The line with which it became too large; the first of the stream is 1.
        line: u64,
        /// The most bytes that it may have.
        max: usize,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong { line, max } => write!(f, "line {line} of the body has more than {max} bytes"),
            Self::NotUtf8 { line } => write!(f, "line {line} of the body is not UTF-8"),
            Self::EventTooLarge { line, max } => {
                write!(f, "with line {line} of the body an event has more than {max} bytes")
            }
        }
    }
}

impl std::error::Error for StreamError {}
