//! A response whose body is read by the caller, as it comes (contract 7.6).
//!
//! What the attempt held stays with the body: the slot, until the end or the deadline, and the breaker's permit, whose
//! verdict is the end of the body. A body that ends early by the upstream's doing is a failure; one that the caller
//! drops, or that the deadline ends, is no verdict. The slot is a lease that ends at the deadline, so a body that nobody
//! reads cannot keep it; the pool closes its connection then.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use steadfast_http::{Fault, Repeat, Sent, judge_fault};
use steadfast_policy::Time;

use super::alike::of_head;
use super::exchange::Answered;
use super::response::keep_end_to_end;
use super::stream_read::{Events, Lines};
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::report::{Ended, Report};
use crate::timer::Timer;
use crate::transport::body::AT_A_STRETCH;
use crate::transport::request_body::Spare;
use crate::transport::{ResponseBody, TransportError};
use crate::upstream::{Held, Upstream};

/// A response whose head is there, and whose body is still to come.
pub struct StreamingResponse {
    head: http::response::Parts,
    body: StreamingBody,
}

impl StreamingResponse {
    pub(crate) fn new(upstream: &Arc<Upstream>, answered: Answered, report: Report, held: Option<Box<Held>>) -> Self {
        let (body, upload) = match answered.open.map(|open| *open) {
            Some(open) => (Box::new(open.body), open.upload),
            None => (Box::new(ResponseBody::full(answered.body)), None),
        };
        let deadline = held.as_ref().map_or(Time::MAX, |held| held.deadline());
        let state = if body.is_end_stream() { State::Over } else { State::Coming(body) };
        let mut body = StreamingBody {
            state,
            held,
            deadline,
            started: upstream.clock.now(),
            timer: None,
            bytes: 0,
            upload,
            upstream: Arc::clone(upstream),
            report: Box::new(report),
        };
        if matches!(body.state, State::Over) {
            body.complete();
        }
        Self { head: answered.head, body }
    }

    of_head!();

    /// Every attempt and every wait up to the head.
    pub fn report(&self) -> &Report {
        &self.body.report
    }

    /// The upstream's name.
    pub fn upstream(&self) -> &str {
        &self.body.upstream.name
    }

    /// The next piece of the body; `None` after its end.
    ///
    /// Cancel safe: a piece that was not returned comes with the next call.
    ///
    /// # Errors
    /// The body ended early, once: `Unreachable` by the upstream's doing, `Timeout` by the call's deadline. After it
    /// the body is over.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.body.chunk().await
    }

    /// Reads the rest of the body, at most `max_bytes` of it.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and `Unreachable` with the outcome `too_large` for a longer body.
    pub async fn bytes(mut self, max_bytes: u64) -> Result<Bytes, Error> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            if (whole.len() as u64).saturating_add(piece.len() as u64) > max_bytes {
                return Err(self.body.too_large());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// The body as lines of text, at most 1 MiB each; [`Lines::with_decoder`] sets another limit.
    pub fn lines(self) -> Lines<StreamingBody> {
        Lines::new(self.body)
    }

    /// The body as server-sent events, at most 1 MiB each; [`Events::with_decoder`] sets another limit.
    pub fn events(self) -> Events<StreamingBody> {
        Events::new(self.body)
    }

    /// The body alone.
    pub fn into_body(self) -> StreamingBody {
        self.body
    }

    /// As an `http::Response`, for code that speaks those types: an axum handler can return it.
    ///
    /// Without what was about the upstream's connection (RFC 9110 section 7.6.1): `Connection` and the headers that it
    /// names, `Transfer-Encoding`, `Keep-Alive`, `Upgrade` and the like; and without `Content-Length` if some of the body
    /// was read already.
    pub fn into_http(self) -> http::Response<StreamingBody> {
        let Self { mut head, body } = self;
        keep_end_to_end(&mut head.headers, |_| body.received() == 0);
        http::Response::from_parts(head, body)
    }

    /// As it came: what was about the connection included.
    #[cfg(any(feature = "tower", feature = "blocking"))]
    pub(crate) fn into_parts(self) -> (http::response::Parts, StreamingBody) {
        (self.head, self.body)
    }
}

impl fmt::Debug for StreamingResponse {
    /// Without headers and body: they can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingResponse").field("status", &self.head.status).field("body", &self.body).finish()
    }
}

/// The body of a [`StreamingResponse`]: an `http_body::Body`, and a stream of its pieces. Trailers are passed over by
/// the stream, not by the body.
///
/// Dropping it before its end closes the connection, gives the slot back, and is no verdict.
pub struct StreamingBody {
    state: State,
    held: Option<Box<Held>>,
    deadline: Time,
    started: Time,
    /// Made when the body first has to be waited for.
    timer: Option<Pin<Box<Timer<'static>>>>,
    bytes: u64,
    /// The request's body, if it was still being sent when the head came.
    upload: Option<Spare>,
    upstream: Arc<Upstream>,
    report: Box<Report>,
}

enum State {
    Coming(Box<ResponseBody>),
    Over,
}

impl StreamingBody {
    /// How many bytes have come so far, decoded.
    pub fn received(&self) -> u64 {
        self.bytes
    }

    /// The next piece; `None` after the end.
    ///
    /// Cancel safe: a piece that was not returned comes with the next call.
    ///
    /// # Errors
    /// The body ended early; see [`StreamingResponse::chunk`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| self.poll_chunk(cx)).await.transpose()
    }

    /// Every attempt and every wait up to the head.
    #[cfg(feature = "blocking")]
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// The upstream's name.
    #[cfg(feature = "blocking")]
    pub(crate) fn upstream(&self) -> &str {
        &self.upstream.name
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        // A body of nothing but empty pieces would let nobody else have a turn.
        for _ in 0..AT_A_STRETCH {
            match std::task::ready!(Pin::new(&mut *self).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whatever the body held is let go of, but for its slot and its permit.
    fn end(&mut self) {
        self.state = State::Over;
        (self.timer, self.upload) = (None, None);
    }

    /// The body has come whole: what the head said counts now.
    fn complete(&mut self) {
        self.end();
        if let Some(held) = self.held.take() {
            held.complete();
        }
        self.tell(None);
    }

    /// The body has ended early.
    fn fail(&mut self, error: TransportError) -> Error {
        let error = error.or_blame(self.upload.as_ref().and_then(Spare::take_failure));
        let fault = error.fault();
        let has_ended = matches!(self.state, State::Over);
        self.end();
        // The head is out, so nothing is repeated, whatever the request; and a deadline after it is no verdict.
        let verdict =
            if fault == Fault::Deadline { None } else { judge_fault(Repeat::Forbidden, fault, Sent::Yes).verdict };
        if let Some(held) = self.held.take() {
            held.fail(verdict);
        }
        // The limit of `bytes` may be passed by the last piece: the body's end was told then.
        if !has_ended {
            self.tell(Some(fault));
        }
        self.error(fault).with_source(Some(error.into()))
    }

    fn error(&self, fault: Fault) -> Error {
        let (kind, ended) = match fault {
            Fault::Deadline => (ErrorKind::Timeout, Ended::Deadline),
            _ => (ErrorKind::Unreachable, Ended::BodyFailed),
        };
        let mut report = Report::clone(&self.report);
        let lasted = self.upstream.clock.now().since(self.started);
        report.body_failed(fault, ended, lasted);
        Error::new(kind, &self.upstream.name, report)
    }

    /// The caller's own limit: the upstream is up.
    pub(crate) fn too_large(&mut self) -> Error {
        self.fail(TransportError::new(Fault::TooLarge, Sent::Yes))
    }

    fn tell(&self, fault: Option<Fault>) {
        let upstream = &self.upstream;
        upstream.events.emit_fine(|| Event::BodyEnded {
            upstream: Arc::clone(&upstream.name),
            fault,
            bytes: self.bytes,
            duration: upstream.clock.now().since(self.started),
        });
    }

    /// Whether the deadline has passed; until then the task is woken at it.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(Timer::new()));
        timer.as_mut().poll_until(cx, &self.upstream.clock, self.deadline)
    }
}

impl Body for StreamingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let State::Coming(body) = &mut this.state else { return Poll::Ready(None) };
        // What is ready at the deadline is handed over; a body that is always ready must still end by it.
        let late = this.deadline < Time::MAX && this.upstream.clock.now() > this.deadline;
        let polled = if late { Poll::Pending } else { Pin::new(body).poll_frame(cx) };
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                this.bytes = this.bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len) as u64);
                if matches!(&this.state, State::Coming(body) if body.is_end_stream()) {
                    this.complete();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(this.fail(error)))),
            Poll::Ready(None) => {
                this.complete();
                Poll::Ready(None)
            }
            Poll::Pending if late || this.poll_deadline(cx).is_ready() => {
                Poll::Ready(Some(Err(this.fail(TransportError::new(Fault::Deadline, Sent::Yes)))))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Coming(body) => body.size_hint(),
            State::Over => SizeHint::with_exact(0),
        }
    }
}

impl Stream for StreamingBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_chunk(cx)
    }
}

impl fmt::Debug for StreamingBody {
    /// How far it has got; never its bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingBody")
            .field("upstream", &self.upstream.name)
            .field("received", &self.bytes)
            .field("over", &self.is_end_stream())
            .finish_non_exhaustive()
    }
}
