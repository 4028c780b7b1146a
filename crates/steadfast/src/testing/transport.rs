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

use super::clock::Hang;
use super::routes::{Pattern, Routes};
use super::step::{Action, End, Rest, Step};
use crate::clock::Clock;
use crate::timer::Timer;
use crate::transport::{Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ResponseBody, TransportError};

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
    routes: Routes,
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
            routes: Routes::default(),
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

    /// Plays these steps, the last one for ever, for the requests that `pattern` fits; the main script does not see them.
    /// One transport can so be several hosts, or several endpoints.
    ///
    /// A pattern is a host (`down.example.com`, with its port if that matters), a path (`/invoices/7`; `/invoices/*` for
    /// all below), or a host and a path, with a method and a space before it if that matters (`POST /payments`). Where
    /// several fit, the route that was set last has the request. The same pattern again replaces its steps.
    ///
    /// ```
    /// use steadfast::ServiceClient;
    /// use steadfast::testing::{Script, Step, fake_clock};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let time = fake_clock();
    /// let network = Script::new(&time, [Step::status(404)]);
    /// network.route("api.example.com", [Step::status(503), Step::reset(), Step::status(200)]);
    /// network.route("POST api.example.com/orders", [Step::status(201)]);
    ///
    /// let api = ServiceClient::builder("http://api.example.com").transport(network.clone()).build()?;
    /// assert_eq!(api.get("/users").send().await?.status(), 200);
    /// assert_eq!(api.post("/orders").send().await?.status(), 201);
    /// assert_eq!(network.requests_to("GET api.example.com/users"), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn route(&self, pattern: &str, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        self.state().routes.set(Pattern::new(pattern), steps);
    }

    /// How many requests there were that this pattern fits, as [`route`](Self::route) reads it.
    pub fn requests_to(&self, pattern: &str) -> usize {
        let pattern = Pattern::new(pattern);
        self.state().seen.iter().filter(|seen| pattern.fits(&seen.method, &seen.uri)).count()
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

    fn arrive(&self, head: &http::request::Parts) -> (Step, Serving) {
        let mut state = self.state();
        let State { steps, routes, .. } = &mut *state;
        let steps = routes.find(&head.method, &head.uri).unwrap_or(steps);
        let last = if steps.len() > 1 { steps.pop_front() } else { steps.front().cloned() };
        let step = last.unwrap_or_else(|| Step::status(200));
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
            let (step, serving) = self.arrive(&head);
            let clock = &self.0.clock;
            let body = if step.reads() {
                progress.hand_over();
                read(body).await?
            } else {
                body.as_bytes().cloned().unwrap_or_default()
            };
            self.see(head, body);
            if !step.after.is_zero() {
                clock.work(step.after).await;
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
                    clock.work(timeout).await;
                    Err(TransportError::new(Fault::ReadTimeout, Sent::Unknown))
                }
                Action::Drip { every } => loop {
                    clock.work(every).await;
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
    stall: Hang,
    _serving: Serving,
}

impl Playing {
    fn new(clock: Clock, first: Bytes, rest: Rest, serving: Serving) -> Self {
        let mut pieces = rest.pieces;
        if !first.is_empty() {
            pieces.push_front((Duration::ZERO, first));
        }
        let at = clock.now() + pieces.front().map_or(Duration::ZERO, |(after, _)| *after);
        Self {
            clock,
            pieces,
            end: rest.end,
            timer: Box::pin(Timer::new()),
            at,
            stall: Hang::default(),
            _serving: serving,
        }
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
                End::Stall => {
                    this.stall.poll(cx, &this.clock);
                    Poll::Pending
                }
            };
        }
        ready!(this.timer.as_mut().poll_work(cx, &this.clock, this.at));
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
