//! A body read by a decoder.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body;

use super::{EventDecoder, LineDecoder, ServerSentEvent, StreamError};

/// So many steps without anything complete are made before others have a turn.
const AT_A_STRETCH: usize = 32;
/// So many bytes of a piece of the body are decoded at once, so that a large one is not held twice.
const PIECE: usize = 16 * 1024;

/// Why a stream of lines or events ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError<E> {
    /// The body ended with an error: it was cut, or took too long.
    Body(E),
    /// What came is not what was to be read.
    Content(StreamError),
}

impl<E> fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(_) => f.write_str("the body ended early"),
            Self::Content(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ReadError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Body(error) => Some(error),
            Self::Content(_) => None,
        }
    }
}

/// What makes items of bytes.
trait Decode {
    type Item;
    fn push(&mut self, piece: &[u8]);
    fn finish(&mut self);
    fn next(&mut self) -> Result<Option<Self::Item>, StreamError>;
}

impl Decode for LineDecoder {
    type Item = String;

    fn push(&mut self, piece: &[u8]) {
        self.push(piece);
    }

    fn finish(&mut self) {
        self.finish();
    }

    fn next(&mut self) -> Result<Option<String>, StreamError> {
        self.next_line()
    }
}

impl Decode for EventDecoder {
    type Item = ServerSentEvent;

    fn push(&mut self, piece: &[u8]) {
        self.push(piece);
    }

    fn finish(&mut self) {
        self.finish();
    }

    fn next(&mut self) -> Result<Option<ServerSentEvent>, StreamError> {
        self.next_event()
    }
}

/// An item, why there are no more, or nothing at the body's end.
type Next<T, E> = Option<Result<T, ReadError<E>>>;

/// A body, how far it is read, and what reads it.
struct Reader<B, D> {
    /// `None` once it has ended.
    body: Option<B>,
    /// What has come and is not decoded yet.
    input: Bytes,
    decoder: D,
    over: bool,
}

impl<B, D> Reader<B, D>
where
    B: Body<Data = Bytes> + Unpin,
    D: Decode,
{
    fn new(body: B, decoder: D) -> Self {
        Self { body: Some(body), input: Bytes::new(), decoder, over: false }
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Next<D::Item, B::Error>> {
        if self.over {
            return Poll::Ready(None);
        }
        for _ in 0..AT_A_STRETCH {
            match self.decoder.next() {
                Ok(Some(item)) => return Poll::Ready(Some(Ok(item))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(self.fail(ReadError::Content(error))))),
            }
            if !self.input.is_empty() {
                let piece = self.input.split_to(self.input.len().min(PIECE));
                self.decoder.push(&piece);
                continue;
            }
            let Some(body) = &mut self.body else {
                self.over = true;
                return Poll::Ready(None);
            };
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => self.input = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(self.fail(ReadError::Body(error))))),
                None => {
                    self.body = None;
                    self.decoder.finish();
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Nothing more is read; the connection is closed with the body.
    fn fail(&mut self, error: ReadError<B::Error>) -> ReadError<B::Error> {
        self.over = true;
        self.body = None;
        self.input = Bytes::new();
        error
    }
}

macro_rules! adapter {
    ($(#[doc = $doc:literal])+ $name:ident, $decoder:ident, $item:ty, $what:literal) => {
        $(#[doc = $doc])+
        #[must_use = "nothing is read before it is asked for"]
        pub struct $name<B>(Reader<B, $decoder>);

        impl<B: Body<Data = Bytes> + Unpin> $name<B> {
            #[doc = concat!("The ", $what, "s of this body.")]
            pub fn new(body: B) -> Self {
                Self::with_decoder(body, $decoder::new())
            }

            /// The same with a decoder that is set up already: with another bound.
            pub fn with_decoder(body: B, decoder: $decoder) -> Self {
                Self(Reader::new(body, decoder))
            }

            #[doc = concat!("The next ", $what, ". `None`: the body has ended, or an error was returned.")]
            ///
            /// Cancel safe: what has come is kept for the next time.
            ///
            /// # Errors
            /// [`ReadError`]; nothing more is read after it.
            pub async fn next(&mut self) -> Option<Result<$item, ReadError<B::Error>>> {
                poll_fn(|cx| self.0.poll_item(cx)).await
            }
        }

        impl<B: Body<Data = Bytes> + Unpin> Stream for $name<B> {
            type Item = Result<$item, ReadError<B::Error>>;

            fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                self.get_mut().0.poll_item(cx)
            }
        }

        impl<B> fmt::Debug for $name<B> {
            /// Without what has come.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("over", &self.0.over).finish_non_exhaustive()
            }
        }
    };
}

adapter! {
    /// The lines of a body, as they come; see [`LineDecoder`] for what a line is.
    Lines, LineDecoder, String, "line"
}

adapter! {
    /// The server-sent events of a body, as they come; see [`EventDecoder`].
    ///
    /// It does not connect again: a service that does sends [`last_event_id`](Self::last_event_id) as `Last-Event-ID`
    /// after a wait of [`retry`](Self::retry), and hands the id on with
    /// [`with_last_event_id`](Self::with_last_event_id).
    Events, EventDecoder, ServerSentEvent, "event"
}

impl<B> Events<B> {
    /// Begins with the id that the stream before this one ended with; see [`EventDecoder::with_last_event_id`]. To be set
    /// before anything is read.
    pub fn with_last_event_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.0.decoder = std::mem::take(&mut self.0.decoder).with_last_event_id(id);
        self
    }

    /// The last id that the stream has given, or the one that it began with; empty: none.
    pub fn last_event_id(&self) -> &Arc<str> {
        self.0.decoder.last_event_id()
    }

    /// How long to wait before connecting again, as the stream said last.
    pub fn retry(&self) -> Option<Duration> {
        self.0.decoder.retry()
    }
}
