//! Bytes that have come and are not used up.

use std::fmt;

/// Bytes in a row, added at the end and taken from the front. Each is looked at once, and moved about once.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Up to here they are used up.
    start: usize,
    /// Up to here they were looked at, and are no end of a line.
    seen: usize,
}

impl Buffer {
    pub(super) fn push(&mut self, piece: &[u8]) {
        // Moved only when at least as many are let go as are moved.
        if self.start > 0 && self.start >= self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.seen -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// What is not used up.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// How many bytes are before the first one that `is_end`.
    pub(super) fn find(&mut self, is_end: impl Fn(u8) -> bool) -> Option<usize> {
        let new = self.bytes.get(self.seen..).unwrap_or_default();
        match new.iter().position(|byte| is_end(*byte)) {
            Some(found) => {
                self.seen += found;
                Some(self.seen - self.start)
            }
            None => {
                self.seen = self.bytes.len();
                None
            }
        }
    }

    /// Takes the first `length` bytes, and passes over `more` that follow them.
    pub(super) fn take(&mut self, length: usize, more: usize) -> &[u8] {
        let start = self.start;
        self.start = (start + length + more).min(self.bytes.len());
        self.seen = self.start;
        self.bytes.get(start..start + length).unwrap_or_default()
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl fmt::Debug for Buffer {
    /// How much there is; not what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("bytes", &self.rest().len()).finish_non_exhaustive()
    }
}
