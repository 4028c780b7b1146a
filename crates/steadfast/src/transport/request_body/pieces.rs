//! Where the pieces of a body come from: a body, a stream, a reader, or bytes that are there already.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body;
use tokio::io::{AsyncRead, ReadBuf};

use super::PIECE;
use crate::error::BoxError;

/// Pieces of bytes, one after the other.
pub(super) trait Pieces: Send {
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>>;
}

pin_project_lite::pin_project! {
    pub(super) struct Adapted<B> {
        #[pin]
        body: B,
    }
}

impl<B> Adapted<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body }
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
    pub(super) struct Streamed<S> {
        #[pin]
        stream: S,
    }
}

impl<S> Streamed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream }
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
    pub(super) struct Read<R> {
        #[pin]
        reader: R,
    }
}

impl<R> Read<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader }
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
pub(super) struct Cut(pub(super) Bytes);

impl Pieces for Cut {
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let next = self.0.len().min(PIECE);
        Poll::Ready(Some(Ok(self.0.split_to(next))))
    }
}
