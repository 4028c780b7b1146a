//! One attempt's way through the pieces of a body, and what all attempts share.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::pieces::Pieces;
use super::{KEPT_BYTES, PIECE, UploadHook, Uploaded};
use crate::error::BoxError;
use crate::transport::pool::meter::Meter;

/// Where the pieces come from, shared by the readers of all attempts.
pub(super) struct Source {
    pieces: Pin<Box<dyn Pieces>>,
    length: Option<u64>,
    /// What has been read, for the next attempt.
    kept: Vec<Bytes>,
    kept_bytes: u64,
    /// `None`: what the upstream says.
    pub(super) keep: Option<u64>,
    state: State,
    /// Which reader may read; those of earlier attempts may not.
    latest: u64,
    pub(super) hook: Option<UploadHook>,
    pub(super) failure: Option<BoxError>,
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
    pub(super) fn new(pieces: Pin<Box<dyn Pieces>>, length: Option<u64>) -> Self {
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

    pub(super) fn is_replayable(&self) -> bool {
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
pub(super) struct Reader {
    source: Arc<Mutex<Source>>,
    generation: u64,
    /// The next kept piece.
    next: usize,
    /// What was read and is not handed over yet: the rest of a piece that is larger than what a hook is told at once.
    rest: Bytes,
    /// Bytes handed over.
    given: u64,
    length: Option<u64>,
    over: bool,
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
    pub(super) fn new(source: Source) -> Self {
        let length = source.length;
        let over = length == Some(0);
        let source = Arc::new(Mutex::new(source));
        Self { source, generation: 0, next: 0, rest: Bytes::new(), given: 0, length, over, watch: None }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// How many bytes are still to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        self.length.map(|length| length.saturating_sub(self.given))
    }

    /// See [`RequestBody::watch_for`](super::RequestBody::watch_for).
    pub(super) fn watch_for(&mut self, meter: &Arc<Meter>) {
        self.watch = Some(Watch { meter: Arc::clone(meter), waits: false });
    }

    pub(super) fn source(&self) -> MutexGuard<'_, Source> {
        // A panic of the user's stream can leave it half-read: it is then lost for a further attempt, not for this one.
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn again(&self) -> Option<Self> {
        let mut source = self.source();
        if !source.is_replayable() {
            return None;
        }
        source.latest += 1;
        let (generation, length) = (source.latest, self.length);
        drop(source);
        let over = length == Some(0);
        Some(Self {
            source: Arc::clone(&self.source),
            generation,
            next: 0,
            rest: Bytes::new(),
            given: 0,
            length,
            over,
            watch: None,
        })
    }

    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
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
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if source.latest != self.generation {
            self.over = true;
            return Poll::Ready(Some(Err("a later attempt sends this body".into())));
        }
        if self.rest.is_empty() {
            let piece = match source.kept.get(self.next) {
                Some(kept) if source.state != State::Lost => Some(Ok(kept.clone())),
                _ => ready!(source.poll_next(cx)),
            };
            self.next += 1;
            match self.check(&mut source, piece) {
                Some(Ok(piece)) => self.rest = piece,
                ended => {
                    self.over = true;
                    return Poll::Ready(ended);
                }
            }
        }
        let hook = source.hook.clone();
        drop(source);
        let piece = match hook {
            None => std::mem::take(&mut self.rest),
            Some(_) => self.rest.split_to(self.rest.len().min(PIECE)),
        };
        self.given = self.given.saturating_add(piece.len() as u64);
        if let Some(hook) = hook {
            hook(Uploaded { bytes: self.given, total: self.length });
        }
        Poll::Ready(Some(Ok(piece)))
    }

    /// What was read, or an error if the body is not as long as announced, or failed.
    fn check(&self, source: &mut Source, piece: Option<Result<Bytes, BoxError>>) -> Option<Result<Bytes, BoxError>> {
        let error = match (piece, self.length) {
            (Some(Ok(piece)), Some(length)) if self.given.saturating_add(piece.len() as u64) > length => {
                Mismatch::Longer(length).into()
            }
            (None, Some(length)) if self.given < length => {
                Mismatch::Shorter { announced: length, came: self.given }.into()
            }
            (Some(Err(error)), _) => error,
            (piece, _) => return piece,
        };
        Some(Err(source.fail(error)))
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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use futures_util::stream;
    use http_body::Body;
    use steadfast_http::Fault;
    use tokio::time::Instant;

    use super::*;
    use crate::transport::RequestBody;
    use crate::transport::pool::meter::{Limits, NEVER};

    fn poll(body: &mut RequestBody) -> bool {
        Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// 1.2: a body that the connection drops, as the upstream wants no more of it, holds no limit back; nor does one of
    /// whose source nothing was asked.
    #[test]
    fn c1_2_only_a_source_that_is_waited_for_holds_the_limits_back() {
        let meter = Arc::new(Meter::new(Limits { read: 100, write: 200, idle: 1_000, age: 5_000 }));
        meter.begin(Instant::now(), None, false);
        let pieces = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
        let pieces = futures_util::StreamExt::chain(pieces, stream::pending());
        let mut body = RequestBody::stream(pieces, None);
        body.watch_for(&meter);
        assert_eq!(meter.limit().fault, Some(Fault::ReadTimeout));
        assert!(poll(&mut body));
        assert_eq!(meter.limit().fault, Some(Fault::ReadTimeout));
        assert!(!poll(&mut body) && !poll(&mut body));
        assert_eq!(meter.limit().at, NEVER);
        drop(body);
        assert_eq!(meter.limit().fault, Some(Fault::ReadTimeout));
    }
}
