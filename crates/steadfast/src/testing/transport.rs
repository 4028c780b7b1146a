//! A transport that plays a script, in virtual time.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use steadfast_http::{Fault, Sent};
use steadfast_policy::Time;

use crate::clock::Clock;
use crate::timer::Timer;
use crate::transport::{Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ResponseBody, TransportError};

/// The pieces of a body that follow the head, each so long after the one before.
#[derive(Clone, Debug, Default)]
struct Rest {
    pieces: VecDeque<(Duration, Bytes)>,
    end: End,
}

#[derive(Clone, Copy, Debug, Default)]
enum End {
    #[default]
    Whole,
    Cut(Fault),
    Stall,
}

/// What the upstream does with one request.
#[derive(Clone, Debug)]
pub struct Step {
    after: Duration,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Respond { status: u16, headers: Vec<(String, Vec<u8>)>, body: Bytes, rest: Option<Rest> },
    Fail { fault: Fault, sent: Sent },
    Hang,
    Drip { every: Duration },
}

impl Step {
    fn new(action: Action) -> Self {
        Self { after: Duration::ZERO, action }
    }

    /// Answers with this status and an empty body.
    pub fn status(status: u16) -> Self {
        Self::new(Action::Respond { status, headers: Vec::new(), body: Bytes::new(), rest: None })
    }

    /// Refuses the connection: nothing is sent.
    pub fn refuse() -> Self {
        Self::fail(Fault::Connect, Sent::No)
    }

    /// Resets the connection after the request was written.
    pub fn reset() -> Self {
        Self::fail(Fault::Reset, Sent::Unknown)
    }

    /// Fails in this way.
    pub fn fail(fault: Fault, sent: Sent) -> Self {
        Self::new(Action::Fail { fault, sent })
    }

    /// Accepts the request and never answers: the read timeout ends it, or an earlier limit.
    pub fn hang() -> Self {
        Self::new(Action::Hang)
    }

    /// Sends a piece of a body for ever, so that no read timeout ends it.
    pub fn drip(every: Duration) -> Self {
        Self::new(Action::Drip { every })
    }

    /// With this response header; values are bytes, as they are on the wire.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if let Action::Respond { headers, .. } = &mut self.action {
            headers.push((name.to_owned(), value.as_ref().to_vec()));
        }
        self
    }

    /// With this response body.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let Action::Respond { body, .. } = &mut self.action {
            *body = bytes.into();
        }
        self
    }

    /// With one more piece of the body, so long after the one before it. The head comes at once.
    #[must_use]
    pub fn piece(mut self, after: Duration, bytes: impl Into<Bytes>) -> Self {
        if let Some(rest) = self.rest() {
            rest.pieces.push_back((after, bytes.into()));
        }
        self
    }

    /// The body fails in this way after its last piece.
    #[must_use]
    pub fn cut(mut self, fault: Fault) -> Self {
        if let Some(rest) = self.rest() {
            rest.end = End::Cut(fault);
        }
        self
    }

    /// Nothing comes after the last piece, not even the end.
    #[must_use]
    pub fn stall(mut self) -> Self {
        if let Some(rest) = self.rest() {
            rest.end = End::Stall;
        }
        self
    }

    fn rest(&mut self) -> Option<&mut Rest> {
        match &mut self.action {
            Action::Respond { rest, .. } => Some(rest.get_or_insert_default()),
            _ => None,
        }
    }

    /// Whether the upstream gets to see the request.
    fn reads(&self) -> bool {
        !matches!(self.action, Action::Fail { sent: Sent::No, .. })
    }

    /// Takes this long first.
    #[must_use]
    pub fn after(mut self, duration: Duration) -> Self {
        self.after = duration;
        self
    }
}

/// One request that reached the upstream (or, for a refused connection, would have).
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it came.
    pub at: Time,
    /// Its method.
    pub method: Method,
    /// Its absolute URI.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// A scripted upstream. The last step repeats. Clones are the same upstream.
#[derive(Clone, Debug)]
pub struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    steps: VecDeque<Step>,
    read_timeout: Duration,
    seen: Vec<Seen>,
    in_flight: usize,
    peak: usize,
}

impl Script {
    /// An upstream that plays these steps in order, and the last one for ever.
    pub fn new(clock: impl Into<Clock>, steps: impl IntoIterator<Item = Step>) -> Self {
        let state = State {
            steps: steps.into_iter().collect(),
            read_timeout: Duration::from_secs(10),
            seen: Vec::new(),
            in_flight: 0,
            peak: 0,
        };
        Self(Arc::new(Inner { clock: clock.into(), state: Mutex::new(state) }))
    }

    /// The read timeout that ends a step which hangs. 10 s, unless set.
    pub fn set_read_timeout(&self, timeout: Duration) {
        self.state().read_timeout = timeout;
    }

    /// Plays these steps from the next request on.
    pub fn play(&self, steps: impl IntoIterator<Item = Step>) {
        self.state().steps = steps.into_iter().collect();
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        self.state().seen.len()
    }

    /// How many are being answered now: zero when everything has ended or was dropped.
    pub fn in_flight(&self) -> usize {
        self.state().in_flight
    }

    /// The most that were being answered at once.
    pub fn peak(&self) -> usize {
        self.state().peak
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self) -> (Step, Serving) {
        let mut state = self.state();
        let step = match state.steps.len() {
            0 => Step::status(200),
            1 => state.steps.front().cloned().unwrap_or_else(|| Step::status(200)),
            _ => state.steps.pop_front().unwrap_or_else(|| Step::status(200)),
        };
        state.in_flight += 1;
        state.peak = state.peak.max(state.in_flight);
        drop(state);
        (step, Serving(self.clone()))
    }

    fn see(&self, head: http::request::Parts, body: Bytes) {
        let at = self.0.clock.now();
        self.state().seen.push(Seen { at, method: head.method, uri: head.uri, headers: head.headers, body });
    }
}

/// A request that is being answered.
struct Serving(Script);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}

impl Exchange for Script {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async move {
            let (head, body) = outgoing.request.into_parts();
            let (step, serving) = self.arrive();
            let clock = &self.0.clock;
            let body = if step.reads() {
                progress.hand_over();
                read(body).await?
            } else {
                body.as_bytes().cloned().unwrap_or_default()
            };
            self.see(head, body);
            if !step.after.is_zero() {
                clock.wait(step.after).await;
            }
            match step.action {
                Action::Respond { status, headers, body, rest } => {
                    let body = match rest {
                        Some(rest) => ResponseBody::boxed(Playing::new(clock.clone(), body, rest, serving)),
                        None => ResponseBody::full(body),
                    };
                    respond(status, headers, body)
                }
                Action::Fail { fault, sent } => {
                    Err(TransportError::new(fault, sent).with_source(io::Error::other("scripted failure")))
                }
                Action::Hang => {
                    let timeout = self.state().read_timeout;
                    clock.wait(timeout).await;
                    Err(TransportError::new(Fault::ReadTimeout, Sent::Unknown))
                }
                Action::Drip { every } => loop {
                    clock.wait(every).await;
                },
            }
        })
    }
}

/// Takes the request's body in, as an upstream does before it answers.
async fn read(body: RequestBody) -> Result<Bytes, TransportError> {
    if let Some(bytes) = body.as_bytes() {
        return Ok(bytes.clone());
    }
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(TransportError::new(Fault::Reset, Sent::Unknown).with_source(error)),
    }
}

/// A body that is being played.
struct Playing {
    clock: Clock,
    pieces: VecDeque<(Duration, Bytes)>,
    end: End,
    timer: Pin<Box<Timer<'static>>>,
    /// When the next piece comes.
    at: Time,
    _serving: Serving,
}

impl Playing {
    fn new(clock: Clock, first: Bytes, rest: Rest, serving: Serving) -> Self {
        let mut pieces = rest.pieces;
        if !first.is_empty() {
            pieces.push_front((Duration::ZERO, first));
        }
        let at = clock.now() + pieces.front().map_or(Duration::ZERO, |(after, _)| *after);
        Self { clock, pieces, end: rest.end, timer: Box::pin(Timer::new()), at, _serving: serving }
    }
}

impl Body for Playing {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let this = self.get_mut();
        if this.pieces.is_empty() {
            return match this.end {
                End::Whole => Poll::Ready(None),
                End::Cut(fault) => Poll::Ready(Some(Err(TransportError::new(fault, Sent::Yes)))),
                End::Stall => Poll::Pending,
            };
        }
        ready!(this.timer.as_mut().poll_until(cx, &this.clock, this.at));
        let piece = this.pieces.pop_front().map(|(_, bytes)| bytes).unwrap_or_default();
        this.at = this.clock.now() + this.pieces.front().map_or(Duration::ZERO, |(after, _)| *after);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

fn respond(
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: ResponseBody,
) -> Result<http::Response<ResponseBody>, TransportError> {
    let scripted = |error: http::Error| TransportError::new(Fault::Protocol, Sent::Yes).with_source(error);
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).map_err(scripted)
}
