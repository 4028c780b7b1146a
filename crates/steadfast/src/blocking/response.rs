//! A response whose body is read by the calling thread, as it comes.
//!
//! Both the response and its body are readers. One that has failed goes on failing: a reader that was cut short must never
//! look like one that came to its end.

use std::fmt;
use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes, BytesMut};
use steadfast_http::Fault;

use super::runtime::Wait;
use crate::client;
use crate::client::alike::of_head;
use crate::client::response::keep_end_to_end;
use crate::error::{Error, ErrorKind};
use crate::report::{Outcome, Report};

/// A response whose head is there, and whose body is still to come: [`Read`] or [`chunk`](Self::chunk) it.
///
/// Dropping it before the body's end closes the connection, gives the slot back, and is no verdict.
pub struct StreamingResponse {
    head: http::response::Parts,
    body: StreamingBody,
}

impl StreamingResponse {
    pub(super) fn new(response: client::StreamingResponse, wait: Wait) -> Self {
        let (head, body) = response.into_parts();
        Self { head, body: StreamingBody { body, rest: Bytes::new(), failed: None, wait } }
    }

    of_head!();

    /// Every attempt and every wait up to the head.
    pub fn report(&self) -> &Report {
        self.body.body.report()
    }

    /// The upstream's name.
    pub fn upstream(&self) -> &str {
        self.body.body.upstream()
    }

    /// The next piece of the body; `None` after its end. See [`StreamingBody::chunk`].
    ///
    /// # Errors
    /// The body ended early.
    pub fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.body.chunk()
    }

    /// Reads the rest of the body, at most `max_bytes` of it.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and `Unreachable` with the outcome `too_large` for a longer body.
    pub fn bytes(self, max_bytes: u64) -> Result<Bytes, Error> {
        self.body.bytes(max_bytes)
    }

    /// The body alone.
    pub fn into_body(self) -> StreamingBody {
        self.body
    }

    /// As an `http::Response`, for code that speaks those types. What is not in its headers any more:
    /// [`StreamingResponse::into_http`](client::StreamingResponse::into_http).
    pub fn into_http(self) -> http::Response<StreamingBody> {
        let Self { mut head, body } = self;
        keep_end_to_end(&mut head.headers, |_| body.body.received() == 0);
        http::Response::from_parts(head, body)
    }
}

impl Read for StreamingResponse {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.body.read(into)
    }
}

impl BufRead for StreamingResponse {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.body.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.body.consume(amount);
    }
}

impl fmt::Debug for StreamingResponse {
    /// Without headers and body: they can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingResponse").field("status", &self.head.status).field("body", &self.body).finish()
    }
}

/// The body of a [`StreamingResponse`]: a reader, buffered, and its pieces as they come.
///
/// As a reader its errors are [`io::Error`]s that hold the [`Error`] (`get_ref`, `downcast`): `TimedOut` for a deadline or
/// a timeout, `UnexpectedEof` for a body that was cut short, `ConnectionReset` for a connection that was, `InvalidData`
/// for one that does not decode, `Other` else. Reading on fails in the same way.
///
/// Dropping it before its end closes the connection, gives the slot back, and is no verdict.
pub struct StreamingBody {
    body: client::StreamingBody,
    /// What has come and was not read yet.
    rest: Bytes,
    failed: Option<io::ErrorKind>,
    wait: Wait,
}

impl StreamingBody {
    /// How many bytes have come so far, decoded.
    pub fn received(&self) -> u64 {
        self.body.received()
    }

    /// The next piece; `None` after the end. What a reader has left of a piece comes first.
    ///
    /// # Errors
    /// The body ended early, once: `Unreachable` by the upstream's doing, `Timeout` by the call's deadline. After it
    /// the body is over. `InvalidRequest` where a blocking call may not be made; the body can be read on elsewhere.
    pub fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        if !self.rest.is_empty() {
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        let piece = self.wait.run(self.body.chunk());
        if let Err(error) = &piece
            && error.kind() != ErrorKind::InvalidRequest
        {
            self.failed = Some(kind_of(error));
        }
        piece
    }

    fn bytes(mut self, max_bytes: u64) -> Result<Bytes, Error> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.chunk()? {
            if (whole.len() as u64).saturating_add(piece.len() as u64) > max_bytes {
                return Err(self.body.too_large());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }
}

impl Read for StreamingBody {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let there = self.fill_buf()?;
        let length = there.len().min(into.len());
        into[..length].copy_from_slice(&there[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for StreamingBody {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty() {
            if let Some(kind) = self.failed {
                return Err(io::Error::new(kind, "the body ended early"));
            }
            if let Some(piece) = self.chunk().map_err(|error| io::Error::new(kind_of(&error), error))? {
                self.rest = piece;
            }
        }
        Ok(&self.rest)
    }

    fn consume(&mut self, amount: usize) {
        self.rest.advance(amount.min(self.rest.len()));
    }
}

/// The word of the standard library for why the body ended early.
fn kind_of(error: &Error) -> io::ErrorKind {
    let last = error.report().attempts().last().map(|attempt| attempt.outcome);
    match (error.kind(), last) {
        (ErrorKind::Timeout, _) | (ErrorKind::Unreachable, Some(Outcome::Fault(Fault::ReadTimeout))) => {
            io::ErrorKind::TimedOut
        }
        (ErrorKind::Unreachable, Some(Outcome::Fault(Fault::Incomplete))) => io::ErrorKind::UnexpectedEof,
        (ErrorKind::Unreachable, Some(Outcome::Fault(Fault::Reset))) => io::ErrorKind::ConnectionReset,
        (ErrorKind::Unreachable, Some(Outcome::Fault(Fault::Decode))) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    }
}

impl fmt::Debug for StreamingBody {
    /// How far it has got; never its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)
    }
}
