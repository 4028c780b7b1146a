//! br (RFC 7932): one stream, with nothing after it.
//!
//! The format's own bound on the window, 16 MiB, bounds the memory; the larger windows of its extension are refused, as
//! `br` does not mean them. The window grows with what is decoded, so a small body costs little. There is no checksum: a
//! body that was changed on its way, and is still in the format, is not noticed.

use std::io;

use brotli_decompressor::{
    BrotliDecoderHasMoreOutput, BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc,
};

use super::PIECE;

pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    /// Where one step's output goes.
    scratch: Box<[u8]>,
    /// Of all steps together; the decoder's own number.
    total: usize,
    /// Whether there is output that had no room in the last step.
    holds_more: bool,
    over: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let state =
            BrotliState::new_strict(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
        Self {
            state: Box::new(state),
            scratch: vec![0; PIECE].into_boxed_slice(),
            total: 0,
            holds_more: false,
            over: false,
        }
    }

    pub(super) fn holds_more(&self) -> bool {
        self.holds_more
    }

    /// Decodes some of `input`, and returns how much. At most [`PIECE`] bytes are added to `out`.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        if self.over {
            return Err(invalid("there are bytes after the end of the br stream"));
        }
        // So that a step takes its time and no longer; and the decoder counts its input in 32 bits.
        let input = input.get(..PIECE).unwrap_or(input);
        let (mut left, mut taken) = (input.len(), 0);
        let (mut room, mut written) = (self.scratch.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut taken,
            input,
            &mut room,
            &mut written,
            &mut self.scratch,
            &mut self.total,
            &mut self.state,
        );
        out.extend_from_slice(self.scratch.get(..written).unwrap_or_default());
        // It can ask for more input while there is more output.
        self.holds_more = BrotliDecoderHasMoreOutput(&self.state);
        match result {
            BrotliResult::ResultSuccess => (self.over, self.holds_more) = (true, false),
            BrotliResult::NeedsMoreOutput if written > 0 => self.holds_more = true,
            BrotliResult::NeedsMoreInput if taken > 0 || written > 0 || input.is_empty() && !self.holds_more => {}
            // A step without progress would be repeated for ever.
            _ => return Err(invalid("the body is not valid br")),
        }
        Ok(taken)
    }

    /// Whether the stream is whole.
    pub(super) fn finish(&self) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the br stream is cut short"))
    }
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
