//! gzip (RFC 1952): one member or several, each with its checksum.

use std::io::{self, Write};
use std::mem;

use flate2::write::MultiGzDecoder;

pub(super) struct Gzip(MultiGzDecoder<Vec<u8>>);

impl Gzip {
    pub(super) fn new() -> Self {
        Self(MultiGzDecoder::new(Vec::new()))
    }

    /// Decodes some of `input`, and returns how much. What comes of it is added to `out`, some of it a step later.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        self.with(out, |decoder| decoder.write(input))
    }

    /// Brings out what the last steps have kept back. There is not much: the decoder keeps one buffer of 32 KiB.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.with(out, Write::flush)
    }

    /// Brings out the rest, and says whether the last member is whole and right.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.with(out, MultiGzDecoder::try_finish)
    }

    /// The decoder writes into what it owns, so `out` is lent to it.
    fn with<T>(&mut self, out: &mut Vec<u8>, act: impl FnOnce(&mut MultiGzDecoder<Vec<u8>>) -> T) -> T {
        mem::swap(self.0.get_mut(), out);
        let result = act(&mut self.0);
        mem::swap(self.0.get_mut(), out);
        result
    }
}
