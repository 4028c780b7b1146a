//! The places inside, and the queue before them.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

use steadfast::Clock;
use steadfast::policy::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// What all services of a layer share. The semaphore is fair: a place that is given back goes to the first that waits, and
/// none is free while any does.
#[derive(Debug)]
pub(super) struct Door {
    places: Arc<Semaphore>,
    max_in_flight: usize,
    queued: AtomicUsize,
    admitted: AtomicU64,
    overloaded: AtomicU64,
    expired: AtomicU64,
}

/// A layer's door at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedSnapshot {
    /// Requests in the service inside.
    pub in_flight: usize,
    /// Requests that wait.
    pub queued: usize,
    /// How many were let in, ever.
    pub admitted: u64,
    /// How many were turned away because too many were there, ever.
    pub overloaded: u64,
    /// How many were answered without being worked on because their deadline had passed, ever.
    pub expired: u64,
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Overloaded,
    Expired,
}

impl Door {
    pub(super) fn new(max_in_flight: usize) -> Self {
        let max_in_flight = max_in_flight.min(Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(max_in_flight)),
            max_in_flight,
            queued: AtomicUsize::new(0),
            admitted: AtomicU64::new(0),
            overloaded: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    pub(super) fn snapshot(&self) -> ShedSnapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ShedSnapshot {
            in_flight: self.max_in_flight.saturating_sub(self.places.available_permits()),
            queued: self.queued.load(Ordering::Relaxed),
            admitted: count(&self.admitted),
            overloaded: count(&self.overloaded),
            expired: count(&self.expired),
        }
    }

    /// A place, at the latest at `latest`, and before the request's deadline.
    ///
    /// Cancel safe: who leaves gives up the place in the queue, or the one that was just granted.
    pub(super) async fn enter(
        &self,
        clock: &Clock,
        max_queued: usize,
        latest: Time,
        deadline: Option<Time>,
    ) -> Result<OwnedSemaphorePermit, Refused> {
        let result = self.wait(clock, max_queued, latest, deadline.unwrap_or(Time::MAX)).await;
        let counter = match &result {
            Ok(_) => &self.admitted,
            Err(Refused::Overloaded) => &self.overloaded,
            Err(Refused::Expired) => &self.expired,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    async fn wait(
        &self,
        clock: &Clock,
        max_queued: usize,
        latest: Time,
        deadline: Time,
    ) -> Result<OwnedSemaphorePermit, Refused> {
        if clock.now() >= deadline {
            return Err(Refused::Expired);
        }
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => return Ok(place),
            // Never closed.
            Err(TryAcquireError::Closed) => return Err(Refused::Overloaded),
            Err(TryAcquireError::NoPermits) => {}
        }
        if clock.now() >= latest {
            return Err(Refused::Overloaded);
        }
        let _queued = Queued::enter(&self.queued, max_queued).ok_or(Refused::Overloaded)?;
        let limit = latest.min(deadline);
        let mut place = pin!(Arc::clone(&self.places).acquire_owned());
        let mut timer = pin!(clock.limit(limit));
        let granted = poll_fn(|cx| match place.as_mut().poll(cx) {
            Poll::Ready(granted) => Poll::Ready(granted.ok()),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
        })
        .await;
        // A place beats a wait that ran out, and no deadline: nobody waits for that answer.
        match granted {
            _ if clock.now() >= deadline || (granted.is_none() && limit == deadline) => Err(Refused::Expired),
            Some(place) => Ok(place),
            None => Err(Refused::Overloaded),
        }
    }
}

/// One that waits.
struct Queued<'a>(&'a AtomicUsize);

impl<'a> Queued<'a> {
    fn enter(queued: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |queued: usize| (queued < most).then_some(queued + 1);
        queued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self(queued))
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
