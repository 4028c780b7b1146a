//! A request's body on its way out: whole, or in pieces that are kept so that they can be sent again.
//!
//! A body of known bytes can be sent any number of times. One that comes in pieces is read once; what has been read is
//! kept up to a bound, so that the next attempt begins with the same bytes. Once more has come than may be kept, the
//! body cannot be sent again, and the attempt that is under way is the last.
//!
//! Invariants: at most `keep` bytes are held; an attempt sends exactly the bytes that the one before it sent, or is not
//! made; only the latest attempt's reader reads from the source.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::BoxError;

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

    /// A body that comes in pieces. With an exact size hint its length is announced, and a body that turns out longer or
    /// shorter is an error of the attempt. Trailers are passed over.
    ///
    /// It can be sent again as long as no more than [`KEPT_BYTES`] were read from it; see [`keep`](Self::keep).
    pub fn pieces<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let size = body.size_hint();
        Self(Inner::Pieces(Box::new(Reader::new(Source::new(Box::pin(Adapted { body }), size.exact())))))
    }

    /// A stream of bytes. Without a `length` it is sent in chunks (HTTP/1.1) or frames.
    pub fn stream<S, E>(stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Inner::Pieces(Box::new(Reader::new(Source::new(Box::pin(Streamed { stream }), length)))))
    }

    /// What a reader gives, such as a file. Without a `length` it is sent in chunks (HTTP/1.1) or frames.
    pub fn reader(reader: impl AsyncRead + Send + 'static, length: Option<u64>) -> Self {
        Self(Inner::Pieces(Box::new(Reader::new(Source::new(Box::pin(Read { reader }), length)))))
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

    /// Tells `hook` of each piece that is handed to the connection: at most 16 KiB of a whole body or a reader, and whatever
    /// a stream gives.
    #[must_use]
    pub fn on_progress(self, hook: UploadHook) -> Self {
        match self.0 {
            Inner::Pieces(reader) => {
                reader.source().hook = Some(hook);
                Self(Inner::Pieces(reader))
            }
            Inner::Whole(bytes) => {
                let length = bytes.len() as u64;
                let mut source = Source::new(Box::pin(Cut { bytes }), Some(length));
                source.hook = Some(hook);
                source.keep = Some(u64::MAX);
                Self(Inner::Pieces(Box::new(Reader::new(source))))
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

    /// Whether it has no bytes, as far as that is known beforehand.
    pub fn is_empty(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    /// Whether another attempt could send the same bytes.
    pub fn is_replayable(&self) -> bool {
        match &self.0 {
            Inner::Whole(_) => true,
            Inner::Pieces(reader) => reader.source().is_replayable(),
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
            Inner::Pieces(reader) => reader.source().failure.take(),
        }
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
            Inner::Pieces(reader) => reader.over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Pieces(reader) => match reader.length {
                Some(length) => SizeHint::with_exact(length.saturating_sub(reader.given)),
                None => SizeHint::default(),
            },
        }
    }
}

/// Where the pieces come from, shared by the readers of all attempts.
struct Source {
    pieces: Pin<Box<dyn Pieces>>,
    length: Option<u64>,
    /// What has been read, for the next attempt.
    kept: Vec<Bytes>,
    kept_bytes: u64,
    /// `None`: what the upstream says.
    keep: Option<u64>,
    state: State,
    /// Which reader may read; those of earlier attempts may not.
    latest: u64,
    hook: Option<UploadHook>,
    failure: Option<BoxError>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everything that was read is kept.
    Kept,
    /// Everything was read, and is kept.
    KeptWhole,
    /// More was read than is kept, or the source failed.
    Lost,
}

impl Source {
    fn new(pieces: Pin<Box<dyn Pieces>>, length: Option<u64>) -> Self {
        Self {
            pieces,
            length,
            kept: Vec::new(),
            kept_bytes: 0,
            keep: None,
            state: State::Kept,
            latest: 0,
            hook: None,
            failure: None,
        }
    }

    fn is_replayable(&self) -> bool {
        self.state != State::Lost
    }

    fn lose(&mut self) {
        self.state = State::Lost;
        self.kept = Vec::new();
        self.kept_bytes = 0;
    }

    /// The next piece that nobody has read yet.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.state == State::KeptWhole {
            return Poll::Ready(None);
        }
        match ready!(self.pieces.as_mut().poll_next(cx)) {
            Some(Ok(piece)) => {
                if self.state == State::Kept {
                    if self.kept_bytes.saturating_add(piece.len() as u64) > self.keep.unwrap_or(KEPT_BYTES) {
                        self.lose();
                    } else {
                        self.kept_bytes += piece.len() as u64;
                        self.kept.push(piece.clone());
                    }
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Some(Err(error)) => {
                self.lose();
                Poll::Ready(Some(Err(error)))
            }
            None => {
                if self.state == State::Kept {
                    self.state = State::KeptWhole;
                }
                Poll::Ready(None)
            }
        }
    }

    /// Notes why the body failed, and what the connection is told.
    fn fail(&mut self, error: BoxError) -> BoxError {
        let told = BoxError::from(error.to_string());
        self.lose();
        self.failure = Some(error);
        told
    }
}

/// One attempt's way through the pieces.
struct Reader {
    source: Arc<Mutex<Source>>,
    generation: u64,
    /// The next kept piece.
    next: usize,
    given: u64,
    length: Option<u64>,
    over: bool,
}

impl Reader {
    fn new(source: Source) -> Self {
        let length = source.length;
        let over = length == Some(0);
        Self { source: Arc::new(Mutex::new(source)), generation: 0, next: 0, given: 0, length, over }
    }

    fn source(&self) -> MutexGuard<'_, Source> {
        // A panic of the user's stream can leave it half-read: it is then lost for a further attempt, not for this one.
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn again(&self) -> Option<Self> {
        let mut source = self.source();
        if !source.is_replayable() {
            return None;
        }
        source.latest += 1;
        let (generation, length) = (source.latest, self.length);
        drop(source);
        let over = length == Some(0);
        Some(Self { source: Arc::clone(&self.source), generation, next: 0, given: 0, length, over })
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if source.latest != self.generation {
            self.over = true;
            return Poll::Ready(Some(Err("a later attempt sends this body".into())));
        }
        let piece = match source.kept.get(self.next) {
            Some(kept) if source.state != State::Lost => Some(Ok(kept.clone())),
            _ => ready!(source.poll_next(cx)),
        };
        self.next += 1;
        let result = match (piece, self.length) {
            (Some(Ok(piece)), length) => {
                self.given = self.given.saturating_add(piece.len() as u64);
                match length {
                    Some(length) if self.given > length => Some(Err(source.fail(Mismatch::Longer(length).into()))),
                    _ => Some(Ok(piece)),
                }
            }
            (Some(Err(error)), _) => Some(Err(source.fail(error))),
            (None, Some(length)) if self.given < length => {
                Some(Err(source.fail(Mismatch::Shorter { announced: length, came: self.given }.into())))
            }
            (None, _) => None,
        };
        self.over = !matches!(result, Some(Ok(_)));
        let hook = source.hook.clone().filter(|_| !self.over);
        drop(source);
        if let Some(hook) = hook {
            hook(Uploaded { bytes: self.given, total: self.length });
        }
        Poll::Ready(result)
    }
}

/// A body that is not as long as it was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mismatch {
    Longer(u64),
    Shorter { announced: u64, came: u64 },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Longer(announced) => write!(f, "the request's body has more than the announced {announced} bytes"),
            Self::Shorter { announced, came } => {
                write!(f, "the request's body ended after {came} of the announced {announced} bytes")
            }
        }
    }
}

impl std::error::Error for Mismatch {}

/// Pieces of bytes, one after the other.
trait Pieces: Send {
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>>;
}

pin_project_lite::pin_project! {
    struct Adapted<B> {
        #[pin]
        body: B,
    }
}

impl<B> Pieces for Adapted<B>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let mut body = self.project().body;
        loop {
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            }
        }
    }
}

pin_project_lite::pin_project! {
    struct Streamed<S> {
        #[pin]
        stream: S,
    }
}

impl<S, E> Pieces for Streamed<S>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: Into<BoxError>,
{
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.project().stream.poll_next(cx).map(|item| item.map(|item| item.map_err(Into::into)))
    }
}

pin_project_lite::pin_project! {
    struct Read<R> {
        #[pin]
        reader: R,
    }
}

impl<R: AsyncRead + Send> Pieces for Read<R> {
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let mut piece = vec![0; PIECE];
        let mut buffer = ReadBuf::new(&mut piece);
        if let Err(error) = ready!(self.project().reader.poll_read(cx, &mut buffer)) {
            return Poll::Ready(Some(Err(error.into())));
        }
        let read = buffer.filled().len();
        piece.truncate(read);
        Poll::Ready(Some(Ok(Bytes::from(piece))).filter(|_| read > 0))
    }
}

/// A whole body in pieces, so that its progress can be told.
struct Cut {
    bytes: Bytes,
}

impl Pieces for Cut {
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let next = self.bytes.len().min(PIECE);
        Poll::Ready(Some(Ok(self.bytes.split_to(next))))
    }
}
