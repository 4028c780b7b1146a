//! A layer that serves so many requests at once, lets a few more wait, and turns the rest away at once.
//!
//! Decides which requests are worked on. Retries end an outage only where the work that nobody waits for any more is not
//! done: so a request whose deadline has passed before its turn came is answered without being worked on (504), and one
//! that finds the queue full, or waits too long, is told to come back (503).
//!
//! Invariants: at most so many are in the service inside and at most so many wait, first in, first out; a request that is
//! dropped, wherever it is, gives its place back at once; nothing is sent in for a deadline that has passed.
//!
//! Limits: a request counts until its response's head is there. A body that is streamed after it does not: else a few
//! readers who take their time could hold every place.

mod door;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use steadfast::{Clock, ProblemDetails, context};
use tower_layer::Layer;
use tower_service::Service;

pub use door::ShedSnapshot;

use door::{Door, Refused};

/// Turns requests away that cannot be served in time, with a problem document (RFC 9457) and `Retry-After`.
///
/// | request | answer |
/// |---|---|
/// | finds as many waiting as may | 503 `overloaded`, at once |
/// | waits longer than [`queue_wait`](Self::queue_wait) | 503 `overloaded` |
/// | its deadline passes before its turn | 504 `deadline_passed`, at that moment; it is not worked on |
///
/// The deadline is that of the request's context: put [`ContextLayer`](crate::ContextLayer) outside, with a header for it or
/// a time limit. Clones, and all services of a layer, share the places: a router's routes have them together.
///
/// The response's body must be something that bytes can be made into, such as axum's `Body` or `Full<Bytes>`.
#[derive(Clone)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct ShedLayer {
    door: Arc<Door>,
    settings: Settings,
}

#[derive(Clone)]
struct Settings {
    max_queued: usize,
    queue_wait: Duration,
    retry_after: Duration,
    clock: Clock,
}

impl ShedLayer {
    /// At most so many requests in the service inside at once; at least 1. As many may wait.
    pub fn new(max_in_flight: usize) -> Self {
        let max_in_flight = max_in_flight.max(1);
        let settings = Settings {
            max_queued: max_in_flight,
            queue_wait: Duration::from_millis(500),
            retry_after: Duration::from_secs(1),
            clock: Clock::system(),
        };
        Self { door: Arc::new(Door::new(max_in_flight)), settings }
    }

    /// How many may wait. As many as may be inside; 0: none.
    pub fn max_queued(mut self, most: usize) -> Self {
        self.settings.max_queued = most;
        self
    }

    /// How long a request may wait, if its deadline allows. 0.5 s; 0: not at all.
    pub fn queue_wait(mut self, longest: Duration) -> Self {
        self.settings.queue_wait = longest;
        self
    }

    /// What a request that is turned away is told to wait before it comes back, rounded up to whole seconds. 1 s.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.settings.retry_after = wait;
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.settings.clock = clock.into();
        self
    }

    /// How many are inside, how many wait, and how many were turned away. Taking it changes nothing.
    pub fn snapshot(&self) -> ShedSnapshot {
        self.door.snapshot()
    }
}

impl<S> Layer<S> for ShedLayer {
    type Service = ShedService<S>;

    fn layer(&self, inner: S) -> ShedService<S> {
        ShedService { inner, door: Arc::clone(&self.door), settings: self.settings.clone() }
    }
}

impl fmt::Debug for ShedLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedLayer").field("now", &self.snapshot()).finish_non_exhaustive()
    }
}

/// A service behind a door. Made by [`ShedLayer`].
///
/// It is always ready. A request that is let in has its place while the service inside gets ready for it.
#[derive(Clone)]
pub struct ShedService<S> {
    inner: S,
    door: Arc<Door>,
    settings: Settings,
}

/// A request that waits, or is being served.
///
/// Cancel safe if the service's own future is: dropping it gives the place back at once.
pub type ShedFuture<R, E> = Pin<Box<dyn Future<Output = Result<Response<R>, E>> + Send>>;

impl<S, B, R> Service<Request<B>> for ShedService<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Send> + Clone + Send + 'static,
    B: Send + 'static,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ShedFuture<R, S::Error>;

    /// Always: who waits, waits at the door, where it is counted and bounded.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut inner = self.inner.clone();
        let (door, settings) = (Arc::clone(&self.door), self.settings.clone());
        let now = settings.clock.now();
        let deadline = context::time_left().map(|left| now + left);
        Box::pin(async move {
            let Settings { max_queued, queue_wait, retry_after, clock } = settings;
            let entered = door.enter(&clock, max_queued, now + queue_wait, deadline).await;
            let _place = match entered {
                Ok(place) => place,
                Err(refused) => return Ok(refused.problem(retry_after).to_response()),
            };
            poll_fn(|cx| inner.poll_ready(cx)).await?;
            inner.call(request).await
        })
    }
}

impl Refused {
    fn problem(self, retry_after: Duration) -> ProblemDetails {
        let problem = match self {
            Self::Overloaded => ProblemDetails::of_service("overloaded").with_retry_after(retry_after),
            Self::Expired => ProblemDetails::of_service("deadline_passed"),
        };
        match context::current().as_ref().and_then(|served| served.request_id()) {
            Some(id) => problem.with_request_id(id),
            None => problem,
        }
    }
}

impl<S> fmt::Debug for ShedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedService").field("now", &self.door.snapshot()).finish_non_exhaustive()
    }
}
