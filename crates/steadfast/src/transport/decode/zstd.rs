//! zstd (RFC 8878): one frame or several, skippable ones among them, each with its checksum where it has one.
//!
//! A frame whose window is larger than 8 MiB is refused before memory is set aside for it: that is the limit that RFC
//! 9659 gives the content coding. Dictionaries are refused, as none was agreed on.

use std::io;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::PIECE;

/// 8 MiB, as a power of two.
const WINDOW_LOG: u32 = 23;

pub(super) struct Zstd {
    /// Made at the first byte.
    decoder: Option<Decoder<'static>>,
    /// Whether there may be output that had no room in the last step.
    holds_more: bool,
    /// Whether what has come so far ends with a whole frame.
    whole: bool,
}

impl Zstd {
    pub(super) fn new() -> Self {
        Self { decoder: None, holds_more: false, whole: false }
    }

    pub(super) fn holds_more(&self) -> bool {
        self.holds_more
    }

    /// Decodes some of `input`, and returns how much. `out`, which has less than [`PIECE`] bytes, is filled up at most.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(decoder()?),
        };
        let before = out.len();
        out.reserve_exact(PIECE.saturating_sub(before));
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around_pos(out, before);
        let hint = decoder.run(&mut source, &mut target).map_err(clearer)?;
        let (taken, full) = (source.pos(), target.pos() == target.capacity());
        if taken == 0 && out.len() == before && !input.is_empty() {
            // A step without progress would be repeated for ever.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the body is not valid zstd"));
        }
        self.whole = hint == 0;
        self.holds_more = full && !self.whole;
        Ok(taken)
    }

    /// Whether the last frame is whole.
    pub(super) fn finish(&self) -> io::Result<()> {
        if self.whole {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the zstd frame is cut short"))
    }
}

fn decoder() -> io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
    Ok(decoder)
}

/// The library says of a large window that it needs too much memory, and tells that only by its text.
fn clearer(error: io::Error) -> io::Error {
    if error.to_string().contains("too much memory") {
        return io::Error::new(io::ErrorKind::InvalidData, "the zstd window is larger than 8 MiB (RFC 9659)");
    }
    error
}
