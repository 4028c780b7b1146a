//! The body of a response over HTTP/2.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use steadfast_http::{Fault, Sent};

use super::stream::Stream;
use crate::transport::TransportError;

/// The body of a response over HTTP/2. Its stream is over when the end has been read, and reset if the body is dropped
/// before.
pub(crate) struct StreamBody {
    /// `None` once the end has been read.
    stream: Option<Stream>,
    /// What is still to come, where the head said so.
    left: Option<u64>,
}

impl StreamBody {
    pub(super) fn new(stream: Stream, left: Option<u64>) -> Self {
        Self { stream: Some(stream), left }
    }
}

impl std::fmt::Debug for StreamBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamBody").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let Some(stream) = &self.stream else { return Poll::Ready(None) };
        let frame = match ready!(stream.poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.stream = None;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                self.stream = None;
                let is_cut = self.left.is_some_and(|left| left > 0);
                let cut =
                    || TransportError::new(Fault::Incomplete, Sent::Yes).with_source("the stream ended too early");
                return Poll::Ready(Some(Err(cut())).filter(|_| is_cut));
            }
        };
        let is_over = stream.is_over();
        if let (Some(left), Some(piece)) = (&mut self.left, frame.data_ref()) {
            *left = left.saturating_sub(piece.len() as u64);
        }
        if is_over {
            self.stream = None;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.stream, self.left) {
            (None, _) => SizeHint::with_exact(0),
            (Some(_), Some(left)) => SizeHint::with_exact(left),
            (Some(_), None) => SizeHint::default(),
        }
    }
}
