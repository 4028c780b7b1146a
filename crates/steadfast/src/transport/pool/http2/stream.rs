//! One stream: the exchange or body that uses it, and the cell that it shares with its connection's driver.
//!
//! Whatever ends the stream takes h2's handles out of the cell and drops them: h2 then resets the stream unless it is
//! over, and forgets what came for it. The user may do so by dropping its side, the driver when a limit has passed,
//! whether anybody polls or not. The first wins; the share of the connection goes back with the handles.
//!
//! Lock order: registry, then cell, then h2's own. Nothing of a user's runs under a lock.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use http::Response;
use http_body::Frame;
use steadfast_http::{Fault, Sent};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::faults::in_body;
use super::incoming::{Incoming, length_of};
use super::link::{Link, Share};
use super::upload::Upload;
use crate::transport::TransportError;
use crate::transport::pool::meter::{Limit, Limits, NEVER};

/// An attempt that was given up after so long, without a byte on the whole connection meanwhile, makes the connection
/// suspect: 250 ms, which is longer than any round trip should take.
const SILENCE: u64 = 250_000_000;

/// The user's side. Dropping it resets the stream unless it is over.
pub(super) struct Stream(Arc<Cell>);

/// What the head says of the body.
pub(super) struct Head {
    /// There is no body.
    pub(super) is_over: bool,
    pub(super) length: Option<u64>,
}

/// Why there is no head.
pub(super) enum Failure {
    /// One of our limits.
    Limit(TransportError),
    /// The upstream, or the connection.
    Wire(h2::Error),
}

pub(super) struct Cell {
    key: usize,
    link: Arc<Link>,
    deadline: u64,
    is_paused: AtomicBool,
    /// When the current wait began.
    since: AtomicU64,
    /// How often the connection had been read from by then.
    reads: AtomicU64,
    /// Since when the upstream does not take the next piece of the request.
    blocked: AtomicU64,
    /// Whether the source of the request's body has nothing: then nobody waits for the upstream.
    is_starved: AtomicBool,
    handles: Mutex<Handles>,
}

struct Handles {
    incoming: Incoming,
    /// `None` once the request is sent.
    outlet: Option<SendStream<Bytes>>,
    /// The task that sends the rest of the request after the head has come.
    upload: Option<AbortHandle>,
    share: Option<Share>,
    waker: Option<Waker>,
    ended_by: Option<Fault>,
}

impl Cell {
    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next limit. Of equal ones the call's deadline is named.
    pub(super) fn limit(&self, limits: &Limits) -> Limit {
        let blocked = self.blocked.load(Ordering::SeqCst);
        let (at, fault) = if blocked != NEVER {
            (blocked.saturating_add(limits.write), Fault::WriteTimeout)
        } else if self.is_paused.load(Ordering::SeqCst) || self.is_starved.load(Ordering::SeqCst) {
            (NEVER, Fault::Deadline)
        } else {
            (self.since.load(Ordering::SeqCst).saturating_add(limits.read), Fault::ReadTimeout)
        };
        if at < self.deadline {
            Limit { at, fault: Some(fault) }
        } else {
            Limit { at: self.deadline, fault: Some(Fault::Deadline) }
        }
    }

    /// A wait begins, or has made progress.
    fn touch(&self, now: u64) {
        self.since.store(now, Ordering::SeqCst);
        self.reads.store(self.link.meter().reads(), Ordering::SeqCst);
    }

    fn wait(&self) {
        if !self.is_paused.load(Ordering::SeqCst) {
            return;
        }
        let now = self.link.meter().now();
        self.touch(now);
        self.is_paused.store(false, Ordering::SeqCst);
        self.link.ask_for(now.saturating_add(self.link.meter().limits().read));
    }

    fn pause(&self) {
        self.is_paused.store(true, Ordering::SeqCst);
    }

    /// The upstream takes nothing at the moment.
    pub(super) fn on_blocked(&self) {
        if self.blocked.load(Ordering::SeqCst) == NEVER {
            let now = self.link.meter().now();
            self.touch(now);
            self.blocked.store(now, Ordering::SeqCst);
            self.link.ask_for(now.saturating_add(self.link.meter().limits().write));
        }
    }

    /// The upstream has taken a piece.
    pub(super) fn on_taken(&self) {
        let now = self.link.meter().now();
        // First, or the driver might see the wait for the head as one that began before the upstream took this.
        self.touch(now);
        let was_blocked = self.blocked.load(Ordering::SeqCst) != NEVER;
        if was_blocked {
            self.blocked.store(NEVER, Ordering::SeqCst);
        }
        if was_blocked && !self.is_paused.load(Ordering::SeqCst) {
            // The driver may have been told to look only when the limit of the wait that is over would have passed.
            self.link.ask_for(now.saturating_add(self.link.meter().limits().read));
        }
    }

    /// The source of the request's body has nothing (`waits`), or goes on: then the wait for the upstream begins anew.
    pub(super) fn on_source(&self, waits: bool) {
        if self.is_starved.load(Ordering::SeqCst) == waits {
            return;
        }
        if waits {
            self.is_starved.store(true, Ordering::SeqCst);
        } else {
            let now = self.link.meter().now();
            self.touch(now);
            self.is_starved.store(false, Ordering::SeqCst);
            self.link.ask_for(now.saturating_add(self.link.meter().limits().read));
        }
    }

    /// Whether its user waits for the upstream.
    fn waits(&self) -> bool {
        let reads = !self.is_paused.load(Ordering::SeqCst) && !self.is_starved.load(Ordering::SeqCst);
        reads || self.blocked.load(Ordering::SeqCst) != NEVER
    }

    /// Whether the connection has been silent during the whole of a wait that lasted so long.
    fn is_silent(&self, now: u64, at_least: u64) -> bool {
        self.waits()
            && now.saturating_sub(self.since.load(Ordering::SeqCst)) >= at_least
            && self.link.meter().reads() == self.reads.load(Ordering::SeqCst)
    }

    /// Ends the stream if its limit has passed; the driver asks.
    pub(super) fn look(&self, now: u64) {
        let limits = self.link.meter().limits();
        let mut handles = self.lock();
        let limit = self.limit(limits);
        let fault = match limit.fault {
            // Its user may have got on meanwhile.
            Some(fault) if limit.at <= now => fault,
            _ => return self.link.ask_for(limit.at),
        };
        if self.has_moved(&mut handles, fault) {
            self.on_taken();
            return self.link.ask_for(self.limit(limits).at);
        }
        let at_least = if fault == Fault::Deadline { SILENCE } else { 0 };
        handles.ended_by = Some(fault);
        self.end(handles, self.is_silent(now, at_least));
    }

    /// Ends the stream for a fault of our own.
    pub(super) fn abandon(&self, fault: Fault) {
        let mut handles = self.lock();
        handles.ended_by = Some(fault);
        self.end(handles, false);
    }

    /// Whether what was waited for is there, and the user has not got to it yet: it beats the limit.
    fn has_moved(&self, handles: &mut Handles, fault: Fault) -> bool {
        match (fault, &mut handles.incoming) {
            (Fault::WriteTimeout, _) => handles.outlet.as_ref().is_some_and(|outlet| outlet.capacity() > 0),
            (Fault::ReadTimeout, incoming) => {
                let has_come = incoming.has_come();
                if has_come && let Some(waker) = handles.waker.take() {
                    waker.wake();
                }
                has_come
            }
            _ => false,
        }
    }

    /// Takes everything out and gives it back, the first time.
    fn end(&self, mut handles: MutexGuard<'_, Handles>, is_suspect: bool) {
        // From now on the key may be another stream's.
        let Some(share) = handles.share.take() else { return };
        let incoming = mem::replace(&mut handles.incoming, Incoming::Over);
        let outlet = handles.outlet.take();
        let (upload, waker) = (handles.upload.take(), handles.waker.take());
        let was_ended = handles.ended_by.is_some();
        drop(handles);
        self.link.registry.leave(self.key);
        if let Some(upload) = upload {
            upload.abort();
        }
        drop((incoming, outlet));
        if is_suspect {
            share.suspect();
        }
        drop(share);
        if let Some(waker) = waker.filter(|_| was_ended) {
            waker.wake();
        }
    }

    /// The outlet, while the request is being sent.
    pub(super) fn with_outlet<T>(&self, act: impl FnOnce(&mut SendStream<Bytes>) -> T) -> Option<T> {
        self.lock().outlet.as_mut().map(act)
    }

    /// The request is sent.
    pub(super) fn close_outlet(&self) {
        let outlet = self.lock().outlet.take();
        drop(outlet);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let handles = self.0.lock();
        let gave_up = handles.incoming.is_awaited();
        let is_suspect = gave_up && self.0.waits() && self.0.is_silent(self.0.link.meter().now(), SILENCE);
        self.0.end(handles, is_suspect);
    }
}

impl Stream {
    pub(super) fn begin(
        share: Share,
        answer: ResponseFuture,
        outlet: Option<SendStream<Bytes>>,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Self {
        let link = Arc::clone(share.link());
        let (meter, waker, upload) = (link.meter(), None, None);
        let (now, deadline) = (meter.at(now), deadline.map_or(NEVER, |deadline| meter.at(deadline)));
        let incoming = Incoming::Head(answer);
        let handles = Handles { incoming, outlet, upload, share: Some(share), waker, ended_by: None };
        let cell = link.registry.enter(now, |key| Cell {
            key,
            link: Arc::clone(&link),
            deadline,
            is_paused: AtomicBool::new(false),
            since: AtomicU64::new(now),
            reads: AtomicU64::new(meter.reads()),
            blocked: AtomicU64::new(NEVER),
            is_starved: AtomicBool::new(false),
            handles: Mutex::new(handles),
        });
        link.on_begin(now, cell.limit(meter.limits()).at);
        Self(cell)
    }

    pub(super) fn cell(&self) -> &Arc<Cell> {
        &self.0
    }

    /// The head of the response.
    pub(super) fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<Response<Head>, Failure>> {
        let mut handles = self.0.lock();
        if handles.incoming.pass_interim(cx) {
            self.0.touch(self.0.link.meter().now());
        }
        let answer = match handles.incoming.poll_head(cx) {
            Poll::Ready(Some(answer)) => answer,
            Poll::Ready(None) => {
                let fault = handles.ended_by.unwrap_or(Fault::LocalProtocol);
                return Poll::Ready(Err(Failure::Limit(TransportError::new(fault, Sent::Unknown))));
            }
            Poll::Pending => {
                keep_waker(&mut handles, cx);
                return Poll::Pending;
            }
        };
        let (parts, body) = match answer {
            Ok(response) => response.into_parts(),
            Err(error) => return Poll::Ready(Err(Failure::Wire(error))),
        };
        self.0.pause();
        let head = Head { is_over: body.is_end_stream(), length: length_of(&parts.headers) };
        handles.incoming = Incoming::Body(body);
        Poll::Ready(Ok(Response::from_parts(parts, head)))
    }

    /// The next piece of the body, or its trailers.
    pub(super) fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let mut handles = self.0.lock();
        let polled = handles.incoming.poll_frame(cx);
        match polled {
            Poll::Pending => {
                keep_waker(&mut handles, cx);
                drop(handles);
                self.0.wait();
                Poll::Pending
            }
            Poll::Ready(Some(Err(None))) => {
                let fault = handles.ended_by.unwrap_or(Fault::Incomplete);
                Poll::Ready(Some(Err(TransportError::new(fault, Sent::Yes))))
            }
            Poll::Ready(Some(Err(Some(error)))) => {
                let error = TransportError::new(in_body(&error), Sent::Yes).with_source(error);
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.0.pause();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => Poll::Ready(None),
        }
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().incoming.is_over()
    }

    /// The rest of the request goes on, in a task of its own that ends with the stream.
    pub(super) fn detach(&self, upload: Upload) {
        let cell = Arc::clone(&self.0);
        let task = self.0.link.runtime().spawn(upload.run(cell));
        let mut handles = self.0.lock();
        if matches!(handles.incoming, Incoming::Over) {
            drop(handles);
            task.abort();
        } else {
            handles.upload = Some(task.abort_handle());
        }
    }

    /// The upstream wants HTTP/1.1.
    pub(super) fn on_http1_required(&self) {
        let stock = self.0.lock().share.as_ref().and_then(Share::stock);
        if let Some(stock) = stock {
            stock.on_http1_required();
        }
    }
}

fn keep_waker(handles: &mut Handles, cx: &Context<'_>) {
    match &mut handles.waker {
        Some(waker) => waker.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}
