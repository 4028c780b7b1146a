//! Where the pieces of a body come from, and each attempt's way through them.
//!
//! Invariants: at most `keep` bytes are held, in memory of our own, so that a small piece of something large does not
//! hold all of it. Only the latest reader reads, and it reads on only where it has given all that was read: no attempt
//! leaves a byte out. A source that has panicked is not asked again: the mutex, which is then poisoned, tells.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::pieces::{Pieces, Read};
use super::{KEPT_BYTES, PIECE, UploadHook, Uploaded};
use crate::error::BoxError;
use crate::transport::body::AT_A_STRETCH;
use crate::transport::pool::meter::Meter;

/// Of no reader that reads.
const SPARE: u64 = u64::MAX;
const PANICKED: &str = "the source of the request's body panicked";

/// Where the pieces come from, shared by the readers of all attempts.
pub(super) struct Source {
    pieces: Pin<Box<dyn Pieces>>,
    /// What has been read, for the next attempt; nothing once it is lost.
    kept: Vec<u8>,
    /// How many bytes have been read.
    read: u64,
    /// `None`: what the upstream says.
    pub(super) keep: Option<u64>,
    state: State,
    /// Which reader may read; those of earlier attempts may not.
    latest: u64,
    /// Whether the latest reader has come to its end.
    over: bool,
    pub(super) hook: Option<UploadHook>,
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
    fn lose(&mut self) {
        self.state = State::Lost;
        self.kept = Vec::new();
    }

    /// What follows the first `given` bytes.
    fn poll_from(&mut self, cx: &mut Context<'_>, given: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        let kept = usize::try_from(given).ok().and_then(|given| self.kept.get(given..)).unwrap_or_default();
        if let Some(piece) = kept.get(..kept.len().min(PIECE)).filter(|piece| !piece.is_empty()) {
            return Poll::Ready(Some(Ok(Bytes::copy_from_slice(piece))));
        }
        if given != self.read {
            return Poll::Ready(Some(Err("what was read of the request's body before is not kept".into())));
        }
        self.poll_next(cx)
    }

    /// The next piece that nobody has read yet. Empty ones are passed over.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.state == State::KeptWhole {
            return Poll::Ready(None);
        }
        for _ in 0..AT_A_STRETCH {
            match ready!(self.pieces.as_mut().poll_next(cx)) {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    self.keep(&piece);
                    return Poll::Ready(Some(Ok(piece)));
                }
                Some(Err(error)) => {
                    self.lose();
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    if self.state == State::Kept {
                        self.state = State::KeptWhole;
                    }
                    return Poll::Ready(None);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn keep(&mut self, piece: &[u8]) {
        self.read = self.read.saturating_add(piece.len() as u64);
        if self.state != State::Kept {
            return;
        }
        let most = usize::try_from(self.keep.unwrap_or(KEPT_BYTES)).unwrap_or(usize::MAX);
        let needed = self.kept.len().saturating_add(piece.len());
        if needed > most {
            self.lose();
            return;
        }
        if needed > self.kept.capacity() {
            // Doubled, as a `Vec` does by itself, but to no more than may be kept.
            let room = self.kept.capacity().saturating_mul(2).clamp(needed, most);
            self.kept.reserve_exact(room - self.kept.len());
        }
        self.kept.extend_from_slice(piece);
    }

    /// What is wrong once all that was announced has been given. The connection asks for no more then, so what is at hand
    /// beyond it is looked for here.
    fn excess(&mut self, cx: &mut Context<'_>, given: u64, announced: u64) -> Option<BoxError> {
        if given < announced {
            return None;
        }
        match self.poll_next(cx) {
            Poll::Ready(Some(Err(error))) if given == announced => Some(error),
            Poll::Ready(Some(Ok(_))) => Some(Mismatch::Longer(announced).into()),
            _ => (given > announced).then(|| Mismatch::Longer(announced).into()),
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
pub(super) struct Reader {
    source: Arc<Mutex<Source>>,
    /// A body that is there already, of which only the progress is told.
    whole: Option<Bytes>,
    generation: u64,
    /// How much has been taken from the source.
    given: u64,
    /// What of it is not handed over yet: the rest of a piece that is larger than what a hook is told at once.
    rest: Bytes,
    length: Option<u64>,
    over: bool,
    hesitates: bool,
    /// What is told that the source has nothing.
    watch: Option<Watch>,
}

/// The connection that sends the body.
struct Watch {
    meter: Arc<Meter>,
    /// Whether it was told that the source has nothing.
    waits: bool,
}

impl Watch {
    fn set(&mut self, waits: bool) {
        if self.waits != waits {
            self.waits = waits;
            self.meter.on_source(waits);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The upstream wants no more of the body: whatever is waited for then is not the source.
        self.set(false);
    }
}

impl Reader {
    pub(super) fn new(pieces: Pin<Box<dyn Pieces>>, length: Option<u64>) -> Self {
        let over = length == Some(0);
        let source = Source {
            pieces,
            kept: Vec::new(),
            read: 0,
            keep: None,
            state: State::Kept,
            latest: 0,
            over,
            hook: None,
            failure: None,
        };
        let source = Arc::new(Mutex::new(source));
        Self { over, generation: 0, ..Self::idle(source, None, length) }
    }

    /// One that cannot read, and changes nothing.
    fn idle(source: Arc<Mutex<Source>>, whole: Option<Bytes>, length: Option<u64>) -> Self {
        Self {
            source,
            whole,
            generation: SPARE,
            given: 0,
            rest: Bytes::new(),
            length,
            over: false,
            hesitates: false,
            watch: None,
        }
    }

    /// Of a body that is there already.
    pub(super) fn of_whole(whole: Bytes) -> Self {
        let nothing = Box::pin(Read { reader: tokio::io::empty() });
        Self { whole: Some(whole.clone()), ..Self::new(nothing, Some(whole.len() as u64)) }
    }

    pub(super) fn source(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn whole(&self) -> Option<&Bytes> {
        self.whole.as_ref()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// How many bytes are to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        let handed_over = self.given.saturating_sub(self.rest.len() as u64);
        self.length.map(|length| length.saturating_sub(handed_over))
    }

    pub(super) fn is_replayable(&self) -> bool {
        self.source.lock().is_ok_and(|source| source.state != State::Lost)
    }

    /// Whether the reader that is under way, this or a later one, has more to give.
    pub(super) fn is_under_way(&self) -> bool {
        !self.source().over
    }

    pub(super) fn take_failure(&self) -> Option<BoxError> {
        match self.source.lock() {
            Ok(mut source) => source.failure.take(),
            Err(_) => Some(PANICKED.into()),
        }
    }

    /// Another one from the start, which is the latest from now on.
    pub(super) fn again(&self) -> Option<Self> {
        let mut source = self.source.lock().ok().filter(|source| source.state != State::Lost)?;
        source.latest += 1;
        source.over = self.length == Some(0);
        Some(Self { generation: source.latest, over: source.over, ..self.spare() })
    }

    /// One that cannot read, and changes nothing.
    pub(super) fn spare(&self) -> Self {
        Self::idle(Arc::clone(&self.source), self.whole.clone(), self.length)
    }

    pub(super) fn hesitate(&mut self) {
        self.hesitates = true;
    }

    /// See [`RequestBody::watch_for`](super::RequestBody::watch_for).
    pub(super) fn watch_for(&mut self, meter: &Arc<Meter>) {
        self.watch = Some(Watch { meter: Arc::clone(meter), waits: false });
    }

    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if std::mem::take(&mut self.hesitates) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = self.poll_source(cx);
        if let Some(watch) = &mut self.watch {
            watch.set(polled.is_pending());
        }
        polled
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let Ok(mut source) = self.source.lock() else {
            self.over = true;
            return Poll::Ready(Some(Err(PANICKED.into())));
        };
        if source.latest != self.generation {
            self.over = true;
            return Poll::Ready(Some(Err("a later attempt sends this body".into())));
        }
        let mut result = if self.rest.is_empty() {
            let piece = match &self.whole {
                Some(whole) => part_of(whole, self.given).map(Ok),
                None => ready!(source.poll_from(cx, self.given)),
            };
            if let Some(Ok(piece)) = &piece {
                self.given = self.given.saturating_add(piece.len() as u64);
            }
            let result = match (piece, self.length) {
                (Some(Ok(piece)), Some(length)) => Some(source.excess(cx, self.given, length).map_or(Ok(piece), Err)),
                (None, Some(length)) if self.given < length => {
                    Some(Err(Mismatch::Shorter { announced: length, came: self.given }.into()))
                }
                (piece, _) => piece,
            };
            result.map(|piece| piece.map_err(|error| source.fail(error)))
        } else {
            Some(Ok(std::mem::take(&mut self.rest)))
        };
        let hook = source.hook.clone();
        if let (Some(_), Some(Ok(piece))) = (&hook, &mut result) {
            self.rest = piece.split_off(piece.len().min(PIECE));
        }
        let came = matches!(result, Some(Ok(_)));
        self.over = !came || (self.rest.is_empty() && self.length == Some(self.given));
        source.over = self.over;
        drop(source);
        if let Some(hook) = hook.filter(|_| came) {
            let bytes = self.given.saturating_sub(self.rest.len() as u64);
            tell(&hook, Uploaded { bytes, total: self.length });
        }
        Poll::Ready(result)
    }
}

/// The piece of a whole body that follows the first `given` bytes.
fn part_of(whole: &Bytes, given: u64) -> Option<Bytes> {
    let start = usize::try_from(given).unwrap_or(usize::MAX).min(whole.len());
    let end = whole.len().min(start.saturating_add(PIECE));
    (start < end).then(|| whole.slice(start..end))
}

/// A hook that panics would end the task of the connection, for a request that nothing is wrong with.
fn tell(hook: &UploadHook, uploaded: Uploaded) {
    if catch_unwind(AssertUnwindSafe(|| hook(uploaded))).is_err() {
        tracing::error!("an upload hook panicked; the upload goes on");
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
