//! A transport that plays a script, in virtual time.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body_util::BodyExt;
use steadfast_http::{Fault, Sent};
use steadfast_policy::Time;

use crate::clock::Clock;
use crate::transport::{Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ResponseBody, TransportError};

/// What the upstream does with one request.
#[derive(Clone, Debug)]
pub struct Step {
    after: Duration,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Respond { status: u16, headers: Vec<(String, Vec<u8>)>, body: Bytes },
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
        Self::new(Action::Respond { status, headers: Vec::new(), body: Bytes::new() })
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

    fn arrive(&self, head: http::request::Parts, body: Bytes) -> (Step, Serving) {
        let mut state = self.state();
        let step = match state.steps.len() {
            0 => Step::status(200),
            1 => state.steps.front().cloned().unwrap_or_else(|| Step::status(200)),
            _ => state.steps.pop_front().unwrap_or_else(|| Step::status(200)),
        };
        let at = self.0.clock.now();
        state.seen.push(Seen { at, method: head.method, uri: head.uri, headers: head.headers, body });
        state.in_flight += 1;
        state.peak = state.peak.max(state.in_flight);
        drop(state);
        (step, Serving(self.clone()))
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
            let body = read(body, progress).await?;
            let (step, _serving) = self.arrive(head, body);
            let clock = &self.0.clock;
            if !matches!(step.action, Action::Fail { sent: Sent::No, .. }) {
                progress.hand_over();
            }
            if !step.after.is_zero() {
                clock.wait(step.after).await;
            }
            match step.action {
                Action::Respond { status, headers, body } => respond(status, headers, body),
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
async fn read(body: RequestBody, progress: &mut Progress) -> Result<Bytes, TransportError> {
    if let Some(bytes) = body.as_bytes() {
        return Ok(bytes.clone());
    }
    progress.hand_over();
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(TransportError::new(Fault::Reset, Sent::Unknown).with_source(error)),
    }
}

fn respond(
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Bytes,
) -> Result<http::Response<ResponseBody>, TransportError> {
    let scripted = |error: http::Error| TransportError::new(Fault::Protocol, Sent::Yes).with_source(error);
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(ResponseBody::full(body)).map_err(scripted)
}
