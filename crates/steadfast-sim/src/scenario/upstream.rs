//! Who plays an upstream's script: which reply comes next, and what the upstream got to read. How a reply gets to the
//! client is the stage's.
//!
//! Each route has a queue of its own, and what is for all requests has another; a request goes to the first route that fits
//! it. A reply is taken when the request arrives, so that the order is that of arrival.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use steadfast::Clock;
use steadfast::policy::Time;

use super::model::{Act, Reply, Respond, Route};
use super::timeline::{TimeLine, show};

/// One request that the upstream got to read.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When.
    pub at: Time,
    /// Its method.
    pub method: Method,
    /// Its path, with its query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

/// An upstream that plays a script. Clones are the same upstream.
#[derive(Clone, Debug)]
pub struct Upstream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    clock: Clock,
    line: TimeLine,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<(Option<Route>, VecDeque<Reply>)>,
    seen: Vec<Seen>,
    in_flight: u64,
}

impl Upstream {
    /// An upstream of this name, with these replies.
    pub fn new(name: &str, replies: &[Reply], clock: Clock, line: TimeLine) -> Self {
        let upstream = Self(Arc::new(Inner { name: name.to_owned(), clock, line, state: Mutex::default() }));
        upstream.play(replies);
        upstream
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Plays these replies from the next request on, from their beginning.
    pub fn play(&self, replies: &[Reply]) {
        self.state().queues = queues(replies);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has arrived: what is to be done with it. It counts as in flight until the value is dropped.
    pub fn take(&self, method: &Method, path: &str) -> Taken {
        let mut state = self.state();
        let bare = path.split('?').next().unwrap_or_default();
        let mut fitting = state.queues.iter_mut().filter(|(route, _)| match route {
            Some(route) => route.fits(method, bare),
            None => true,
        });
        let reply =
            fitting.next().and_then(|(_, queue)| next(queue, |reply| &mut reply.times)).unwrap_or_else(not_scripted);
        state.in_flight += 1;
        drop(state);
        let path = super::words::path(path);
        self.note(format!("request {method} {path}: {}", words(&reply)));
        Taken { reply, upstream: self.clone() }
    }

    /// A connection is about to be opened: what refuses it, if that is what comes next. On a stage where nobody knows
    /// before the request what it is for.
    pub fn take_refusal(&self) -> Option<Taken> {
        let mut state = self.state();
        let (_, queue) = state.queues.iter_mut().find(|(_, queue)| queue.front().is_some_and(Reply::refuses))?;
        let reply = next(queue, |reply| &mut reply.times)?;
        state.in_flight += 1;
        drop(state);
        self.note("connection: refused");
        Some(Taken { reply, upstream: self.clone() })
    }

    /// Whether any reply that is still to come refuses a connection: then each request needs one of its own.
    pub fn may_refuse(&self) -> bool {
        self.state().queues.iter().any(|(_, queue)| queue.iter().any(Reply::refuses))
    }

    /// The upstream has read this request whole.
    pub fn read(&self, method: Method, path: String, headers: HeaderMap, body: Vec<u8>) {
        let at = self.0.clock.now();
        self.state().seen.push(Seen { at, method, path, headers, body });
    }

    /// How many requests it has read.
    pub fn requests(&self) -> usize {
        self.state().seen.len()
    }

    /// The requests from this one on, counted from 0.
    pub fn seen_from(&self, first: usize) -> Vec<Seen> {
        self.state().seen.get(first..).unwrap_or_default().to_vec()
    }

    /// How many requests are being answered.
    pub fn in_flight(&self) -> u64 {
        self.state().in_flight
    }

    /// Notes something in the time line.
    pub fn note(&self, what: impl Into<String>) {
        self.0.line.note(self.0.clock.now(), &self.0.name, what);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Taken {
    /// What is to be done with it.
    pub reply: Reply,
    upstream: Upstream,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.upstream.state().in_flight -= 1;
    }
}

/// A queue for each route, in the order in which they are named first; what is for all comes last.
fn queues(replies: &[Reply]) -> Vec<(Option<Route>, VecDeque<Reply>)> {
    let mut queues: Vec<(Option<Route>, VecDeque<Reply>)> = Vec::new();
    for reply in replies {
        match queues.iter_mut().find(|(route, _)| *route == reply.route) {
            Some((_, queue)) => queue.push_back(reply.clone()),
            None => queues.push((reply.route.clone(), VecDeque::from([reply.clone()]))),
        }
    }
    queues.sort_by_key(|(route, _)| route.is_none());
    queues
}

/// The next reply, or answer, each so many `times`; the last stays.
pub(super) fn next<T: Clone>(queue: &mut VecDeque<T>, times: fn(&mut T) -> &mut u32) -> Option<T> {
    let is_last = queue.len() == 1;
    let front = queue.front_mut()?;
    let left = times(front);
    if !is_last && *left <= 1 {
        return queue.pop_front();
    }
    *left = left.saturating_sub(1).max(1);
    Some(front.clone())
}

/// What a request gets that nothing is scripted for.
fn not_scripted() -> Reply {
    let respond = Respond { status: 404, headers: Vec::new(), body: b"not scripted".to_vec(), cut: None, drip: None };
    Reply { route: None, times: 1, after: Duration::ZERO, act: Act::Respond(respond) }
}

/// A reply in words.
fn words(reply: &Reply) -> String {
    let act = match &reply.act {
        Act::Respond(Respond { status, cut: Some(bytes), .. }) => format!("{status}, cut after {bytes} bytes"),
        Act::Respond(Respond { status, drip: Some(every), .. }) => format!("{status}, a byte each {}", show(*every)),
        Act::Respond(Respond { status, .. }) => status.to_string(),
        Act::Hang => "hangs".to_owned(),
        Act::Refuse => "refused".to_owned(),
        Act::Reset { read: true } => "reset after the request".to_owned(),
        Act::Reset { read: false } => "reset before the request".to_owned(),
    };
    if reply.after.is_zero() { act } else { format!("{act} after {}", show(reply.after)) }
}

/// The headers of a response that is sent when the wall's clock shows `now`: dates are filled in.
pub fn headers_at(respond: &Respond, now: std::time::SystemTime) -> Vec<(HeaderName, HeaderValue)> {
    let filled = |(name, value): &(HeaderName, HeaderValue)| (name.clone(), super::words::dated(value, now));
    respond.headers.iter().map(filled).collect()
}
