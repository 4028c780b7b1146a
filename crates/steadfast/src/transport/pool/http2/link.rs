//! One connection as its users share it.
//!
//! The stock counts the shares, under its lock; the link holds what a share needs to become a stream, and what the
//! driver must know: the streams with their limits, and the earliest of these.
//!
//! [`Link::next`](Link) is the instant at which the driver must look at the limits. Whoever has a limit lowers it, and
//! wakes the driver if it was lowered; it is raised only by the driver, which looks at all streams then. So a request
//! among many wakes nobody and arms nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::registry::Registry;
use crate::transport::TlsFailure;
use crate::transport::connect::TlsState;
use crate::transport::pool::meter::{Meter, NEVER, RESTED, nanos};
use crate::transport::pool::stock::Stock;

/// The upstream has not yet said how many streams it allows. No upstream can say this number.
pub(super) const UNSETTLED: usize = usize::MAX - 1;

pub(crate) struct Link {
    /// `None` once no further stream may be opened: h2 takes its leave when the last one is gone.
    sender: Mutex<Option<SendRequest<Bytes>>>,
    meter: Arc<Meter>,
    /// `None`: plain TCP.
    tls: Option<TlsState>,
    runtime: Handle,
    pub(super) registry: Registry,
    /// How many streams the upstream allows at once.
    limit: AtomicUsize,
    next: AtomicU64,
    /// When the last stream ended.
    idle_since: AtomicU64,
    ping_interval: u64,
    /// The connection is to be dropped at once.
    is_cut: AtomicBool,
    has_ended: AtomicBool,
    ended: Notify,
}

impl Link {
    pub(super) fn new(
        sender: SendRequest<Bytes>,
        meter: Arc<Meter>,
        tls: Option<TlsState>,
        runtime: Handle,
        ping_interval: Option<Duration>,
    ) -> Self {
        let next = AtomicU64::new(meter.limits().age);
        Self {
            sender: Mutex::new(Some(sender)),
            meter,
            tls,
            runtime,
            registry: Registry::default(),
            limit: AtomicUsize::new(UNSETTLED),
            next,
            idle_since: AtomicU64::new(0),
            ping_interval: ping_interval.map_or(NEVER, nanos),
            is_cut: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            ended: Notify::new(),
        }
    }

    pub(super) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Whether it was opened with other certificates than count now.
    pub(crate) fn is_outdated(&self) -> bool {
        self.tls.as_ref().is_some_and(TlsState::is_outdated)
    }

    /// How TLS failed, if it did. h2 keeps the text of an error of the socket's, and not the error.
    pub(super) fn tls_failure(&self) -> Option<TlsFailure> {
        self.tls.as_ref().and_then(TlsState::failure)
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn lock(&self) -> MutexGuard<'_, Option<SendRequest<Bytes>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What opens a stream, or why the connection opens none any more.
    pub(super) fn sender(&self) -> Result<SendRequest<Bytes>, h2::Error> {
        let Some(mut sender) = self.lock().clone() else { return Err(Reason::NO_ERROR.into()) };
        match sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) | Poll::Pending => Ok(sender),
            Poll::Ready(Err(error)) => Err(error),
        }
    }

    /// How many streams may be open at once. Until the upstream has said so it is one, so that none is refused.
    pub(crate) fn capacity(&self) -> usize {
        match self.limit.load(Ordering::Acquire) {
            UNSETTLED => 1,
            limit => limit,
        }
    }

    /// What the upstream allows, once it has said so.
    pub(crate) fn settled(&self) -> Option<usize> {
        Some(self.limit.load(Ordering::Acquire)).filter(|limit| *limit != UNSETTLED)
    }

    /// Notes what the upstream allows, and returns what it allowed before if that is something else.
    pub(super) fn set_limit(&self, limit: usize) -> Option<usize> {
        Some(self.limit.swap(limit, Ordering::AcqRel)).filter(|before| *before != limit)
    }

    /// Too old for a further stream.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.meter.at(now) >= self.meter.limits().age
    }

    /// Kept long enough without a stream.
    pub(crate) fn is_unused(&self, now: Instant) -> bool {
        self.meter.at(now) >= self.idle_limit()
    }

    /// The last stream has ended; another may follow at once.
    pub(crate) fn on_last(&self) {
        self.idle_since.store(self.meter.now(), Ordering::Relaxed);
    }

    /// No stream follows for now.
    pub(crate) fn rest(&self) {
        self.ask_for(self.idle_limit());
    }

    /// Whether neither a stream nor a byte has been seen for a while.
    fn has_rested(&self, now: Instant) -> bool {
        self.meter.has_rested(now)
            && self.meter.at(now).saturating_sub(self.idle_since.load(Ordering::Relaxed)) >= RESTED
    }

    pub(super) fn idle_limit(&self) -> u64 {
        self.idle_since.load(Ordering::Relaxed).saturating_add(self.meter.limits().idle)
    }

    /// No further stream: the connection closes in good order.
    pub(crate) fn close(&self) {
        // Dropped outside the lock; the last one wakes the driver.
        let sender = self.lock().take();
        drop(sender);
        self.meter.wake_driver();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().is_none()
    }

    // ---- limits

    /// A stream's limit, which the driver must keep.
    pub(super) fn ask_for(&self, at: u64) {
        if self.next.fetch_min(at, Ordering::SeqCst) > at {
            self.meter.wake_driver();
        }
    }

    /// A stream begins; its first limit is `at`.
    pub(super) fn on_begin(&self, now: u64, at: u64) {
        self.ask_for(at.min(now.saturating_add(self.ping_interval)));
    }

    pub(super) fn next(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// The driver begins to look at all limits: what is asked for from now on counts.
    pub(super) fn reset_next(&self) {
        self.next.store(NEVER, Ordering::SeqCst);
    }

    // ---- its end

    /// Drops the connection at once, and returns when that has been done.
    pub(super) async fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.meter.wake_driver();
        let ended = self.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        if !self.has_ended.load(Ordering::SeqCst) {
            ended.await;
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    /// The connection is gone.
    pub(super) fn on_end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let sender = self.lock().take();
        drop(sender);
        self.ended.notify_waiters();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("limit", &self.settled()).finish_non_exhaustive()
    }
}

/// The right to one stream of a connection. Dropping it hands the right on.
#[derive(Debug)]
pub(crate) struct Share {
    // `None` only once it was given back.
    link: Arc<Link>,
    stock: Option<Arc<Stock>>,
    woken: bool,
}

impl Share {
    /// `woken`: the connection was idle.
    pub(crate) fn new(link: Arc<Link>, stock: Arc<Stock>, woken: bool) -> Self {
        Self { link, stock: Some(stock), woken }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Whether the connection lay idle for so long that it may have been given up. Anything that has come meanwhile and
    /// was not read then counts as its end: a GOAWAY, a close. What is late for a stream that was reset is there earlier.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.woken && self.link.has_rested(now)
    }

    /// The connection opens no stream any more.
    pub(super) fn on_refused(&self, reason: Option<Reason>) {
        if let Some(stock) = &self.stock {
            stock.retire(&self.link);
            if reason == Some(Reason::HTTP_1_1_REQUIRED) {
                stock.on_http1_required();
            }
        }
    }

    /// The connection may be dead, and takes no further stream.
    pub(super) fn suspect(&self) {
        if let Some(stock) = &self.stock {
            stock.retire(&self.link);
        }
    }

    pub(super) fn stock(&self) -> Option<Arc<Stock>> {
        self.stock.clone()
    }

    /// Forgets it: the stock counts it as given back already.
    pub(crate) fn disarm(mut self) {
        self.stock = None;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(stock) = self.stock.take() {
            stock.give_back(&self.link);
        }
    }
}
