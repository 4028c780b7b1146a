//! Compressed bodies, decoded piece by piece.
//!
//! Three codings: gzip; br behind the feature `brotli`; zstd behind the feature `zstd`. Each is decoded only where it is
//! on, compiled in, and the one coding that the head names; any other body stays as it is, and so does part of one
//! (206), because a range is cut from the compressed bytes (RFC 9110 section 14.2).
//!
//! Invariants: a piece has about 32 KiB at most, and no step makes more, so a small body that would decode to a huge one
//! is stopped at whatever limit its reader has, without ever being held whole. A stream that ends early, is not valid, or
//! whose checksum is wrong, is an error and never a short result. What can be decoded of the bytes that have come is
//! handed on before more is waited for, so a stream of small messages is not held up.

#[cfg(feature = "brotli")]
mod brotli;
mod gzip;
#[cfg(test)]
mod tests;
#[cfg(feature = "zstd")]
mod zstd;

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;
use steadfast_http::{Fault, Sent};

use super::body::AT_A_STRETCH;
use super::{ResponseBody, TransportError};

/// A piece is handed on when it has this many bytes; it has at most as many more as one step of the decoder makes.
const PIECE: usize = 32 * 1024;

/// The codings that are on: asked for, and decoded when they come.
///
/// One that is not compiled in is off, whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Codings {
    /// gzip.
    pub gzip: bool,
    /// br, where the feature `brotli` is.
    pub brotli: bool,
    /// zstd, where the feature `zstd` is.
    pub zstd: bool,
}

impl Codings {
    /// Every coding that is compiled in.
    pub const ALL: Self = Self { gzip: true, brotli: true, zstd: true };
    /// No coding: every body stays as it is.
    pub const NONE: Self = Self { gzip: false, brotli: false, zstd: false };

    /// The value of `Accept-Encoding` that asks for them. `None`: for none of them, and the header is left out.
    pub fn accept(self) -> Option<HeaderValue> {
        let brotli = self.brotli && cfg!(feature = "brotli");
        let zstd = self.zstd && cfg!(feature = "zstd");
        let value = match (self.gzip, brotli, zstd) {
            (true, true, true) => "gzip, br, zstd",
            (true, true, false) => "gzip, br",
            (true, false, true) => "gzip, zstd",
            (true, false, false) => "gzip",
            (false, true, true) => "br, zstd",
            (false, true, false) => "br",
            (false, false, true) => "zstd",
            (false, false, false) => return None,
        };
        Some(HeaderValue::from_static(value))
    }
}

/// Replaces a body that is compressed in a coding that is on by the decoded one, and takes `Content-Encoding` and
/// `Content-Length` out of the head.
///
/// Any other response, one without a body among them (HEAD, 204, 304), stays as it is.
pub fn wrap(mut response: Response<ResponseBody>, codings: Codings) -> Response<ResponseBody> {
    in_place(&mut response, codings);
    response
}

/// The same where the response lies: it is large, and moving it costs more than to look whether there is a coding.
pub(crate) fn in_place(response: &mut Response<ResponseBody>, codings: Codings) {
    let Some(decoder) = Decoder::of(response, codings) else { return };
    let body = mem::replace(response.body_mut(), ResponseBody::full(Bytes::new()));
    *response.body_mut() = ResponseBody::decoded(Decoded::new(body, decoder));
    response.headers_mut().remove(CONTENT_ENCODING);
    response.headers_mut().remove(CONTENT_LENGTH);
}

/// Reads a response to its end, decoded where its coding is on, with at most `max_bytes` after decoding.
///
/// # Errors
///
/// [`Fault::Decode`] for a body that is not whole and valid, [`Fault::TooLarge`] past the limit, otherwise what ended the
/// body.
pub async fn collect_decoded(
    mut response: Response<ResponseBody>,
    max_bytes: u64,
    codings: Codings,
) -> Result<Response<Bytes>, TransportError> {
    in_place(&mut response, codings);
    let whole = response.body_mut().read(max_bytes).await?;
    Ok(response.map(|_| whole))
}

/// The decoder of one coding. All have the same steps.
enum Decoder {
    Gzip(Box<gzip::Gzip>),
    #[cfg(feature = "brotli")]
    Brotli(Box<brotli::Brotli>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::Zstd),
}

impl Decoder {
    /// That of the one and only coding of this response, if it is on.
    fn of(response: &Response<ResponseBody>, codings: Codings) -> Option<Self> {
        let mut values = response.headers().get_all(CONTENT_ENCODING).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        if response.status() == StatusCode::PARTIAL_CONTENT || response.body().is_end_stream() {
            return None;
        }
        let name = value.as_bytes().trim_ascii();
        let is = |coding: &str| name.eq_ignore_ascii_case(coding.as_bytes());
        if codings.gzip && (is("gzip") || is("x-gzip")) {
            return Some(Self::Gzip(Box::new(gzip::Gzip::new())));
        }
        #[cfg(feature = "brotli")]
        if codings.brotli && is("br") {
            return Some(Self::Brotli(Box::new(brotli::Brotli::new())));
        }
        #[cfg(feature = "zstd")]
        if codings.zstd && is("zstd") {
            return Some(Self::Zstd(zstd::Zstd::new()));
        }
        None
    }

    /// Whether a step would bring something out without any input.
    fn holds_more(&self) -> bool {
        match self {
            // It is asked for more only when it is flushed, because it does not tell.
            Self::Gzip(_) => false,
            #[cfg(feature = "brotli")]
            Self::Brotli(brotli) => brotli.holds_more(),
            #[cfg(feature = "zstd")]
            Self::Zstd(zstd) => zstd.holds_more(),
        }
    }

    fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Gzip(gzip) => gzip.step(input, out),
            #[cfg(feature = "brotli")]
            Self::Brotli(brotli) => brotli.step(input, out),
            #[cfg(feature = "zstd")]
            Self::Zstd(zstd) => zstd.step(input, out),
        }
    }

    /// Brings out everything that has been decoded, before more input is waited for.
    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Gzip(gzip) => gzip.flush(out),
            #[cfg(any(feature = "brotli", feature = "zstd"))]
            _ => Ok(()),
        }
    }

    /// Brings out the rest, if the stream is whole.
    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Gzip(gzip) => gzip.finish(out),
            #[cfg(feature = "brotli")]
            Self::Brotli(brotli) => brotli.finish(),
            #[cfg(feature = "zstd")]
            Self::Zstd(zstd) => zstd.finish(),
        }
    }
}

/// A compressed body and how far it is decoded.
pub(crate) struct Decoded {
    body: ResponseBody,
    /// What has come and is not decoded yet.
    input: Bytes,
    /// What is decoded and not handed on yet.
    out: Vec<u8>,
    /// Whether a byte has come at all: an empty body is an empty one, whatever its head says.
    begun: bool,
    /// `None` once the stream is over.
    decoder: Option<Decoder>,
}

impl Decoded {
    fn new(body: ResponseBody, decoder: Decoder) -> Self {
        Self { body, input: Bytes::new(), out: Vec::new(), begun: false, decoder: Some(decoder) }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.decoder.is_none()
    }

    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>> {
        // Steps are counted as frames are: a body can be made of parts that take time and bring nothing.
        for _ in 0..AT_A_STRETCH {
            let Some(decoder) = &mut self.decoder else { return Poll::Ready(None) };
            if !self.input.is_empty() || decoder.holds_more() {
                match decoder.step(&self.input, &mut self.out) {
                    Ok(taken) => self.input.advance(taken),
                    Err(error) => return Poll::Ready(Some(Err(self.fail(error)))),
                }
                if self.out.len() >= PIECE {
                    return Poll::Ready(Some(Ok(self.hand_on())));
                }
                continue;
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.input = frame.into_data().unwrap_or_default();
                    self.begun |= !self.input.is_empty();
                }
                Poll::Ready(Some(Err(error))) => {
                    self.decoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => return Poll::Ready(self.finish()),
                Poll::Pending => {
                    if let Err(error) = decoder.flush(&mut self.out) {
                        return Poll::Ready(Some(Err(self.fail(error))));
                    }
                    if self.out.is_empty() {
                        return Poll::Pending;
                    }
                    return Poll::Ready(Some(Ok(self.hand_on())));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What is decoded; a small piece in memory of its own size.
    fn hand_on(&mut self) -> Bytes {
        if self.out.len() >= PIECE / 2 {
            return mem::take(&mut self.out).into();
        }
        let piece = Bytes::copy_from_slice(&self.out);
        self.out.clear();
        piece
    }

    /// The compressed stream has ended: what is left, if it is whole.
    fn finish(&mut self) -> Option<Result<Bytes, TransportError>> {
        let mut decoder = self.decoder.take().filter(|_| self.begun)?;
        match decoder.finish(&mut self.out) {
            Ok(()) if self.out.is_empty() => None,
            Ok(()) => Some(Ok(self.hand_on())),
            Err(error) => Some(Err(self.fail(error))),
        }
    }

    /// The stream is not valid, or not whole. The connection is closed with the body.
    fn fail(&mut self, error: io::Error) -> TransportError {
        self.decoder = None;
        self.out = Vec::new();
        self.body = ResponseBody::full(Bytes::new());
        TransportError::new(Fault::Decode, Sent::Yes).with_source(error)
    }
}
