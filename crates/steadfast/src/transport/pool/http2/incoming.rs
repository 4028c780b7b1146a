//! The response's half of a stream, as far as it has come.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use http_body::Frame;

/// What is still to come on a stream.
pub(super) enum Incoming {
    /// The head.
    Head(ResponseFuture),
    /// The head has come, in the moment in which its limit passed; its user has not got it yet.
    Answered(Result<Response<RecvStream>, h2::Error>),
    Body(RecvStream),
    Trailers(RecvStream),
    /// Nothing: the handles were taken.
    Over,
}

impl Incoming {
    /// `None`: the handles were taken.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Response<RecvStream>, h2::Error>>> {
        match self {
            Self::Head(head) => Pin::new(head).poll(cx).map(Some),
            _ => match mem::replace(self, Self::Over) {
                Self::Answered(answer) => Poll::Ready(Some(answer)),
                _ => Poll::Ready(None),
            },
        }
    }

    /// Passes over the interim responses that have come, and says whether there were any: each ends a wait.
    pub(super) fn pass_interim(&mut self, cx: &mut Context<'_>) -> bool {
        let Self::Head(head) = self else { return false };
        let mut has_come = false;
        // An error stays where it is, for whoever asks for the head.
        while matches!(head.poll_informational(cx), Poll::Ready(Some(Ok(_)))) {
            has_come = true;
        }
        has_come
    }

    /// Whether what is waited for is there; without registering for it, so the user must be woken if it is.
    pub(super) fn has_come(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let is_interim = self.pass_interim(&mut cx);
        match self {
            Self::Head(head) => match Pin::new(head).poll(&mut cx) {
                Poll::Ready(answer) => {
                    *self = Self::Answered(answer);
                    true
                }
                Poll::Pending => is_interim,
            },
            Self::Body(body) => body.flow_control().used_capacity() > 0 || body.is_end_stream(),
            Self::Answered(_) => true,
            Self::Trailers(_) | Self::Over => false,
        }
    }

    /// Whether its user may be waiting.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Self::Head(_) | Self::Body(_))
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Body(body) | Self::Trailers(body) => body.is_end_stream(),
            Self::Head(_) | Self::Answered(_) | Self::Over => false,
        }
    }

    /// `Err(None)`: the handles were taken.
    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Option<h2::Error>>>> {
        if let Self::Body(body) = self {
            match ready!(body.poll_data(cx)) {
                Some(Ok(piece)) => {
                    // What is in hand may come again. It fails only if the stream is gone.
                    let _ = body.flow_control().release_capacity(piece.len());
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                Some(Err(error)) => return end_of(error),
                None => match mem::replace(self, Self::Over) {
                    Self::Body(body) => *self = Self::Trailers(body),
                    other => *self = other,
                },
            }
        }
        match self {
            Self::Trailers(body) => match ready!(body.poll_trailers(cx)) {
                Ok(Some(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Ok(None) => Poll::Ready(None),
                Err(error) => end_of(error),
            },
            _ => Poll::Ready(Some(Err(None))),
        }
    }
}

/// A server that has answered in full may ask with NO_ERROR that no more of the request is sent (RFC 9113 section 8.1).
/// h2 does not say whether the response was whole; its length may.
fn end_of<T>(error: h2::Error) -> Poll<Option<Result<T, Option<h2::Error>>>> {
    if error.is_reset() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR) {
        return Poll::Ready(None);
    }
    Poll::Ready(Some(Err(Some(error))))
}

/// How long the body is, where the head says so.
pub(super) fn length_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
