//! A response's body on its way in.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use steadfast_http::{Fault, Sent};

use super::TransportError;
use super::decode::Decoded;
use super::pool::PooledBody;

/// So much memory at most is set aside because a head says that so many bytes will come.
const AT_ONCE: u64 = 1024 * 1024;
/// So many frames at most that bring nothing are passed over before others have a turn: a body of nothing else would let
/// no deadline be looked at.
pub(crate) const AT_A_STRETCH: usize = 32;

/// A response's body on its way in: whole, from the pool, decoded, or of another transport.
///
/// Dropping it before its end closes the connection that it comes from.
pub struct ResponseBody(Inner);

enum Inner {
    Full(Option<Bytes>),
    Pooled(PooledBody),
    Decoded(Box<Decoded>),
    /// In a mutex, so that a body that is not `Sync` can be part of what is. Whoever reads has it for itself: no waiting.
    Boxed(Mutex<Pin<Box<dyn Body<Data = Bytes, Error = TransportError> + Send>>>),
}

impl ResponseBody {
    /// A body that is there already.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Full(Some(bytes.into())))
    }

    /// The body of another transport. It costs one allocation.
    pub fn boxed(body: impl Body<Data = Bytes, Error = TransportError> + Send + 'static) -> Self {
        Self(Inner::Boxed(Mutex::new(Box::pin(body))))
    }

    pub(crate) fn pooled(body: PooledBody) -> Self {
        Self(Inner::Pooled(body))
    }

    pub(crate) fn decoded(body: Decoded) -> Self {
        Self(Inner::Decoded(Box::new(body)))
    }

    /// Whether the bytes were compressed on the wire and are decoded here.
    pub fn is_decoded(&self) -> bool {
        matches!(self.0, Inner::Decoded(_))
    }

    /// Reads the body to its end. A body that comes in one piece is not copied.
    ///
    /// # Errors
    ///
    /// [`Fault::TooLarge`] once it is certain that the body has more than `max_bytes`; otherwise what ended the body.
    /// Either way the connection is closed, as it is when the future is dropped before its end.
    pub async fn collect(mut self, max_bytes: u64) -> Result<Bytes, TransportError> {
        self.read(max_bytes).await
    }

    /// The same where the body lies. After an error it is to be dropped, which closes the connection.
    pub(crate) async fn read(&mut self, max_bytes: u64) -> Result<Bytes, TransportError> {
        if self.size_hint().lower() > max_bytes {
            return Err(too_large());
        }
        let Some(first) = self.next_data().await? else { return Ok(Bytes::new()) };
        if first.len() as u64 > max_bytes {
            return Err(too_large());
        }
        let Some(second) = self.next_data().await? else { return Ok(first) };
        let rest = self.size_hint().lower().min(max_bytes).min(AT_ONCE);
        let mut whole = BytesMut::with_capacity(first.len() + second.len() + usize::try_from(rest).unwrap_or(0));
        whole.extend_from_slice(&first);
        drop(first);
        let mut piece = second;
        loop {
            if whole.len() as u64 + piece.len() as u64 > max_bytes {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
            match self.next_data().await? {
                Some(next) => piece = next,
                None => return Ok(whole.freeze()),
            }
        }
    }

    /// The next piece that has bytes; trailers are passed over.
    async fn next_data(&mut self) -> Result<Option<Bytes>, TransportError> {
        let mut passed_over = 0;
        while !self.is_end_stream() {
            if passed_over == AT_A_STRETCH {
                passed_over = 0;
                tokio::task::yield_now().await;
            }
            passed_over += 1;
            let Some(frame) = self.frame().await else { return Ok(None) };
            if let Ok(data) = frame?.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

fn too_large() -> TransportError {
    TransportError::new(Fault::TooLarge, Sent::Yes)
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        match &mut self.get_mut().0 {
            Inner::Full(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Inner::Pooled(body) => Pin::new(body).poll_frame(cx),
            Inner::Decoded(body) => Poll::Ready(ready!(body.poll_piece(cx)).map(|piece| piece.map(Frame::data))),
            Inner::Boxed(body) => body.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Full(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Inner::Pooled(body) => body.is_end_stream(),
            Inner::Decoded(body) => body.is_over(),
            Inner::Boxed(body) => body.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Inner::Pooled(body) => body.size_hint(),
            Inner::Decoded(_) => SizeHint::default(),
            Inner::Boxed(body) => body.lock().unwrap_or_else(PoisonError::into_inner).size_hint(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    /// Which kind it is; never its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Inner::Full(_) => "full",
            Inner::Pooled(_) => "pooled",
            Inner::Decoded(_) => "decoded",
            Inner::Boxed(_) => "boxed",
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
