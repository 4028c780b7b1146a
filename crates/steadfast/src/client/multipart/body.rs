//! A form's bytes on their way into a request's body.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::error::BoxError;
use crate::transport::RequestBody;

/// The form's bytes in their order; neighbours that are there already lie together.
#[derive(Default)]
pub(super) struct Pieces {
    queue: VecDeque<Piece>,
    last: Vec<u8>,
}

enum Piece {
    Whole(Bytes),
    Streamed(RequestBody),
}

impl Pieces {
    pub(super) fn whole(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
    }

    pub(super) fn streamed(&mut self, body: RequestBody) {
        self.queue.push_back(Piece::Whole(mem::take(&mut self.last).into()));
        // The form keeps what is to be sent again; its part need not do it too.
        self.queue.push_back(Piece::Streamed(body.keep(0)));
    }

    pub(super) fn into_body(mut self) -> RequestBody {
        let last = Bytes::from(self.last);
        if self.queue.is_empty() {
            return RequestBody::whole(last);
        }
        self.queue.push_back(Piece::Whole(last));
        RequestBody::pieces(FormBody(self.queue))
    }
}

/// A form that comes in pieces.
struct FormBody(VecDeque<Piece>);

impl Body for FormBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let frame = match self.0.front_mut() {
                None => return Poll::Ready(None),
                Some(Piece::Whole(bytes)) => Some(Ok(Frame::data(mem::take(bytes)))),
                Some(Piece::Streamed(body)) => match ready!(Pin::new(body).poll_frame(cx)) {
                    Some(frame) => return Poll::Ready(Some(frame)),
                    None => None,
                },
            };
            self.0.pop_front();
            if frame.is_some() {
                return Poll::Ready(frame);
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let lengths = self.0.iter().map(|piece| match piece {
            Piece::Whole(bytes) => Some(bytes.len() as u64),
            Piece::Streamed(body) => body.size_hint().exact(),
        });
        let all = lengths.into_iter().try_fold(0_u64, |all, length| all.checked_add(length?));
        all.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
