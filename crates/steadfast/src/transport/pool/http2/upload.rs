//! The request's body on its way out, as the upstream's windows allow.
//!
//! A piece is handed to h2 only as far as there is room for it, so that it is known when the upstream takes nothing; and
//! the stream is told when the body's source has nothing, for which the upstream is not to blame.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;
use steadfast_http::Fault;

use super::stream::{Cell, Stream};
use crate::error::BoxError;
use crate::transport::RequestBody;

/// So much is asked for at once, so that one long body does not claim the connection's whole window.
const AT_ONCE: usize = 64 * 1024;

pub(super) struct Upload {
    body: RequestBody,
    /// What has been read and not yet been taken.
    piece: Bytes,
}

/// What can be done with the outlet.
enum Step {
    /// The upstream wants no more, or the stream has ended.
    Stop,
    /// Some of the piece was taken; true: that was the end.
    Taken(bool),
}

impl Upload {
    pub(super) fn new(body: RequestBody) -> Self {
        Self { body, piece: Bytes::new() }
    }

    /// Ready when the request is sent, or need not be sent further. An error is the body's own; the stream is reset.
    pub(super) fn poll(&mut self, stream: &Stream, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.poll_on(stream.cell(), cx)
    }

    /// Goes on to the end, without the exchange.
    pub(super) async fn run(mut self, cell: Arc<Cell>) {
        let ended = poll_fn(|cx| self.poll_on(&cell, cx)).await;
        if let Err(error) = ended {
            tracing::debug!(%error, "the request's body failed after the response had begun");
            cell.abandon(Fault::LocalProtocol);
        }
    }

    fn poll_on(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let polled = self.advance(cell, cx);
        // Over, or waiting for the upstream.
        if polled.is_ready() || !self.piece.is_empty() {
            cell.on_source(false);
        }
        polled
    }

    fn advance(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            if self.piece.is_empty() {
                // Also registers for the upstream's reset while the body's source is waited for.
                if cell.with_outlet(|outlet| outlet.poll_reset(cx).is_ready()).unwrap_or(true) {
                    return Poll::Ready(Ok(()));
                }
                let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                    cell.on_source(true);
                    return Poll::Pending;
                };
                match frame {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) if !data.is_empty() => self.piece = data,
                        _ => continue,
                    },
                    Some(Err(error)) => {
                        cell.with_outlet(|outlet| outlet.send_reset(Reason::CANCEL));
                        cell.close_outlet();
                        return Poll::Ready(Err(error));
                    }
                    None => {
                        // It fails only if the stream has ended.
                        cell.with_outlet(|outlet| drop(outlet.send_data(Bytes::new(), true)));
                        cell.close_outlet();
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            let step = cell.with_outlet(|outlet| self.poll_piece(outlet, cx)).unwrap_or(Poll::Ready(Step::Stop));
            match step {
                Poll::Pending => {
                    cell.on_blocked();
                    return Poll::Pending;
                }
                Poll::Ready(Step::Taken(false)) => cell.on_taken(),
                Poll::Ready(Step::Taken(true)) => {
                    cell.on_taken();
                    cell.close_outlet();
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Step::Stop) => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Hands over as much of the piece as there is room for.
    fn poll_piece(&mut self, outlet: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<Step> {
        outlet.reserve_capacity(self.piece.len().min(AT_ONCE));
        while outlet.capacity() == 0 {
            match ready!(outlet.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(Step::Stop),
            }
        }
        let piece = self.piece.split_to(outlet.capacity().min(self.piece.len()));
        let is_last = self.piece.is_empty() && self.body.is_end_stream();
        match outlet.send_data(piece, is_last) {
            Ok(()) => Poll::Ready(Step::Taken(is_last)),
            Err(_) => Poll::Ready(Step::Stop),
        }
    }
}
