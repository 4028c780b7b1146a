//! A request's body on its way out: whole, or in pieces that are kept so that they can be sent again.
//!
//! A body of known bytes can be sent any number of times. One that comes in pieces is read once; what has been read is
//! kept up to a bound, so that the next attempt begins with the same bytes. Once more has come than may be kept, the
//! body cannot be sent again, and the attempt that is under way is the last.
//!
//! Invariants: at most `keep` bytes are held; an attempt sends exactly the bytes that the one before it sent, or is not
//! made; only the latest attempt's reader reads from the source.

mod pieces;
mod source;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::io::AsyncRead;

use super::pool::meter::Meter;
use crate::error::BoxError;
use pieces::{Adapted, Read, Streamed};
use source::Reader;

/// How much of a body in pieces is kept, unless told otherwise: 64 KiB.
pub const KEPT_BYTES: u64 = 64 * 1024;
/// A piece read from a file or cut from a whole body.
const PIECE: usize = 16 * 1024;

/// How far one attempt has got with its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uploaded {
    /// Bytes handed to the connection. A further attempt starts from zero again.
    pub bytes: u64,
    /// All bytes of the body, where that is known beforehand.
    pub total: Option<u64>,
}

/// Told of each piece that is handed to the connection.
pub type UploadHook = Arc<dyn Fn(Uploaded) + Send + Sync>;

/// A request's body: bytes, or pieces that come one after the other.
///
/// Its `Debug` shows neither.
pub struct RequestBody(Inner);

enum Inner {
    /// What is still to be sent of a body that is there. No larger than the bytes themselves: it is moved often.
    Whole(Bytes),
    Pieces(Box<Reader>),
}

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self::whole(Bytes::new())
    }

    /// A body that is there already. It can be sent any number of times.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(bytes.into()))
    }

    /// A body that comes in pieces. With an exact size hint its length is announced, and a body that turns out shorter, or
    /// has more at hand when it should be over, is an error of the attempt. Trailers are passed over.
    ///
    /// It can be sent again as long as no more than [`KEPT_BYTES`] were read from it; see [`keep`](Self::keep).
    pub fn pieces<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let size = body.size_hint();
        Self(Inner::Pieces(Box::new(Reader::new(Box::pin(Adapted { body }), size.exact()))))
    }

    /// A stream of bytes. Without a `length` it is sent in chunks (HTTP/1.1) or frames.
    pub fn stream<S, E>(stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Inner::Pieces(Box::new(Reader::new(Box::pin(Streamed { stream }), length))))
    }

    /// What a reader gives, such as a file. Without a `length` it is sent in chunks (HTTP/1.1) or frames.
    pub fn reader(reader: impl AsyncRead + Send + 'static, length: Option<u64>) -> Self {
        Self(Inner::Pieces(Box::new(Reader::new(Box::pin(Read { reader }), length))))
    }

    /// Keeps at most so many bytes of a body in pieces for a further attempt; 0: it is sent once. Unless set, what the
    /// upstream's `replay_buffer_bytes` says.
    /// Of no effect once it is being sent.
    #[must_use]
    pub fn keep(self, bytes: u64) -> Self {
        if let Inner::Pieces(reader) = &self.0 {
            reader.source().keep = Some(bytes);
        }
        self
    }

    /// The same for a body that does not say it itself.
    pub(crate) fn keep_unless_set(&self, bytes: u64) {
        if let Inner::Pieces(reader) = &self.0 {
            reader.source().keep.get_or_insert(bytes);
        }
    }

    /// Tells `hook` of each piece that is handed to the connection, of at most 16 KiB: what comes in larger ones is cut.
    #[must_use]
    pub fn on_progress(self, hook: UploadHook) -> Self {
        match self.0 {
            Inner::Pieces(reader) => {
                reader.source().hook = Some(hook);
                Self(Inner::Pieces(reader))
            }
            Inner::Whole(bytes) => {
                let reader = Reader::of_whole(bytes);
                reader.source().hook = Some(hook);
                Self(Inner::Pieces(Box::new(reader)))
            }
        }
    }

    /// The bytes of a body that is whole.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Inner::Whole(bytes) => Some(bytes),
            Inner::Pieces(_) => None,
        }
    }

    /// The same of a body that is handed over in pieces only so that its progress can be told.
    pub(crate) fn at_hand(&self) -> Option<&Bytes> {
        match &self.0 {
            Inner::Whole(_) => self.as_bytes(),
            Inner::Pieces(reader) => reader.whole(),
        }
    }

    /// Whether it has no bytes, as far as that is known beforehand.
    pub fn is_empty(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    /// Whether another attempt could send the same bytes.
    pub fn is_replayable(&self) -> bool {
        match &self.0 {
            Inner::Whole(_) => true,
            Inner::Pieces(reader) => reader.is_replayable(),
        }
    }

    /// The same body from its start, for another attempt; the older one ends with an error if it is read further.
    /// `None`: more was read from it than is kept, or it failed.
    pub fn again(&self) -> Option<Self> {
        match &self.0 {
            Inner::Whole(bytes) => Some(Self(Inner::Whole(bytes.clone()))),
            Inner::Pieces(reader) => reader.again().map(|reader| Self(Inner::Pieces(Box::new(reader)))),
        }
    }

    /// Why the source of a body in pieces failed, if it did; told once.
    pub(crate) fn take_failure(&self) -> Option<BoxError> {
        match &self.0 {
            Inner::Whole(_) => None,
            Inner::Pieces(reader) => reader.take_failure(),
        }
    }

    /// What makes the body once more, should it be needed. Until then it changes nothing.
    pub(crate) fn spare(&self) -> Spare {
        Spare(match &self.0 {
            Inner::Whole(bytes) => Self(Inner::Whole(bytes.clone())),
            Inner::Pieces(reader) => Self(Inner::Pieces(Box::new(reader.spare()))),
        })
    }

    /// The same, if it is a body in pieces that has not come to its end.
    pub(crate) fn under_way(&self) -> Option<Spare> {
        match &self.0 {
            Inner::Whole(_) => None,
            Inner::Pieces(_) => Some(self.spare()).filter(Spare::is_under_way),
        }
    }

    /// Tells the connection that sends this body when its source has nothing. A whole body has no such moment.
    pub(crate) fn watch_for(&mut self, meter: &Arc<Meter>) {
        if let Inner::Pieces(reader) = &mut self.0 {
            reader.watch_for(meter);
        }
    }

    /// Nothing is read from a source of pieces before the head had a chance to go out: on a connection that may be dead,
    /// so that what it has to give is not lost with it.
    pub(crate) fn hesitate(&mut self) {
        if let Inner::Pieces(reader) = &mut self.0 {
            reader.hesitate();
        }
    }
}

/// See [`RequestBody::spare`].
#[derive(Debug)]
pub(crate) struct Spare(RequestBody);

impl Spare {
    /// As [`RequestBody::again`].
    pub(crate) fn again(&self) -> Option<RequestBody> {
        self.0.again()
    }

    /// Whether the body that is being sent has more to give.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(&self.0.0, Inner::Pieces(reader) if reader.is_under_way())
    }

    /// As [`RequestBody::take_failure`].
    pub(crate) fn take_failure(&self) -> Option<BoxError> {
        self.0.take_failure()
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self::empty()
    }
}

macro_rules! from_whole {
    ($($whole:ty),+) => {
        $(impl From<$whole> for RequestBody {
            fn from(bytes: $whole) -> Self {
                Self::whole(bytes)
            }
        })+
    };
}
from_whole!(Bytes, Vec<u8>, String, &'static str, &'static [u8]);

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.as_bytes().is_some() { "whole" } else { "pieces" };
        f.debug_struct("RequestBody").field("kind", &kind).field("length", &self.size_hint().exact()).finish()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(bytes) => {
                Poll::Ready(if bytes.is_empty() { None } else { Some(Ok(Frame::data(std::mem::take(bytes)))) })
            }
            Inner::Pieces(reader) => reader.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(bytes) => bytes.is_empty(),
            Inner::Pieces(reader) => reader.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Pieces(reader) => reader.left().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
