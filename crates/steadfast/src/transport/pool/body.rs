//! The body of a response from the pool.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use steadfast_http::Sent;

use super::connection::Lease;
use super::faults::in_body;
use super::http2::StreamBody;
use crate::transport::TransportError;

/// The body of a response from the pool.
#[derive(Debug)]
pub(crate) enum PooledBody {
    Http1(Http1Body),
    Http2(StreamBody),
}

impl Body for PooledBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(cx),
            Self::Http2(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}

/// A body over HTTP/1.1. Its connection goes back when the end has been read, and is cut off if the body is dropped
/// before.
#[derive(Debug)]
pub(crate) struct Http1Body {
    incoming: Incoming,
    /// The last piece, kept until the connection is back.
    last: Option<Bytes>,
    lease: Option<Lease>,
}

impl Http1Body {
    /// `lease` is `None` if the response had no body, and its connection is back already.
    pub(crate) fn new(incoming: Incoming, lease: Option<Lease>) -> Self {
        Self { incoming, last: None, lease }
    }

    fn poll_settle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(lease) = &mut self.lease {
            ready!(lease.poll_settle(cx));
            self.lease = None;
        }
        Poll::Ready(())
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        if self.last.is_none() && !self.incoming.is_end_stream() {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => {
                    if let Some(lease) = &self.lease {
                        lease.on_wait();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(lease) = &self.lease {
                        lease.on_piece();
                    }
                    if !self.incoming.is_end_stream() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    self.last = frame.into_data().ok();
                }
                Poll::Ready(Some(Err(error))) => {
                    let error = match self.lease.take().and_then(|lease| lease.closed_by()) {
                        Some(limit) => TransportError::new(limit, Sent::Yes),
                        None => TransportError::new(in_body(&error), Sent::Yes).with_source(error),
                    };
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => {}
            }
        }
        ready!(self.poll_settle(cx));
        Poll::Ready(self.last.take().map(|last| Ok(Frame::data(last))))
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.last {
            Some(last) => SizeHint::with_exact(last.len() as u64),
            None => self.incoming.size_hint(),
        }
    }
}
