//! The request that a task is serving, so that its calls need not be told.
//!
//! Whoever serves a request, or runs a job, puts its [`CallContext`] around the work with [`scope`]; `steadfast-axum` has a
//! layer that does. From there on every call that the task makes and that was given no context of its own has this one:
//! its request id, bearer and trace (an HTTP call), and what is left of its deadline (a guard's call too). A context given
//! to a call replaces this one as a whole.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::{CallContext, context};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let served = CallContext::new().with_request_id("r-42").with_time_left(Duration::from_secs(3));
//! context::scope(served, async {
//!     // `client.get("/invoices/7").send()` in here sends `X-Request-ID: r-42`, and is over within three seconds.
//!     let here = context::current().unwrap();
//!     assert_eq!(here.request_id(), Some("r-42"));
//!     assert!(here.time_left() <= Some(Duration::from_secs(3)));
//! })
//! .await;
//! assert!(context::current().is_none());
//! # }
//! ```
//!
//! # Other tasks and threads
//!
//! A context belongs to one task. A task that it spawns has none, unless it is taken along: [`spawn`] and
//! [`spawn_blocking`] do, [`carry`] and [`carry_blocking`] do for any other executor, and all of them take the collector
//! of what was [degraded] along as well. So does a guard's own work on another thread (`call_on_thread`). What goes on after its request was answered should not have
//! its deadline, nor its user's token: `tokio::spawn(context::scope(context::for_job(), work))`.
//!
//! # Jobs
//!
//! [`for_job`] is what a job may keep, and it serialises: the request id and the trace, never the bearer. The worker puts
//! it around its handler with [`scope`]. A job that was queued by no request has an empty one: nothing is invented.
//!
//! Invariants: the time left counts from the moment at which the scope was made, whenever it is asked for; no task ever
//! sees another's context. Limits: a call looks for the context when it is sent (`send()`, or the first poll of a guard's
//! call), in the task that does so.
//!
//! [degraded]: crate::degraded

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use steadfast_http::CallContext;
use steadfast_policy::Time;
use tokio::task::JoinHandle;
use tokio::task::futures::TaskLocalFuture;

use crate::clock::Clock;
use crate::degraded::Collector;

tokio::task_local! {
    // `None`: a task that was spawned by one without a context.
    static CURRENT: Option<Arc<Current>>;
}

/// A context, and when its deadline is. Behind a pointer, since a scope swaps it in and out at each poll.
struct Current {
    context: CallContext,
    deadline: Option<(Clock, Time)>,
}

/// Whether any scope was ever made: where none was, no call has to look for one.
static IN_USE: AtomicBool = AtomicBool::new(false);

impl Current {
    fn begin(context: CallContext, clock: impl FnOnce() -> Clock) -> Arc<Self> {
        // A scope is seen by whoever runs in it, and that comes after this on the same thread, or was handed over to another.
        if !IN_USE.load(Ordering::Relaxed) {
            IN_USE.store(true, Ordering::Relaxed);
        }
        let deadline = context.time_left().map(|left| {
            let clock = clock();
            let at = clock.now() + left;
            (clock, at)
        });
        Arc::new(Self { context, deadline })
    }

    fn time_left(&self) -> Option<Duration> {
        self.deadline.as_ref().map(|(clock, at)| at.since(clock.now()))
    }

    /// The context as of now.
    fn context(&self) -> CallContext {
        match self.time_left() {
            Some(left) => self.context.clone().with_time_left(left),
            None => self.context.clone(),
        }
    }
}

/// The context of the request that this task serves, with the time that it has left now; `None` where there is none.
#[inline]
pub fn current() -> Option<CallContext> {
    if !IN_USE.load(Ordering::Relaxed) {
        return None;
    }
    CURRENT.try_with(|current| current.as_deref().map(Current::context)).ok().flatten()
}

/// The trace that it is part of.
#[cfg(feature = "otel")]
pub(crate) fn current_trace() -> Option<steadfast_http::TraceContext> {
    let trace = |current: &Option<Arc<Current>>| current.as_ref().and_then(|current| current.context.trace().cloned());
    CURRENT.try_with(trace).ok().flatten()
}

/// How much time the request that this task serves has left; `None` where nobody said.
#[inline]
pub fn time_left() -> Option<Duration> {
    if !IN_USE.load(Ordering::Relaxed) {
        return None;
    }
    CURRENT.try_with(|current| current.as_deref().and_then(Current::time_left)).ok().flatten()
}

/// What a job that is queued here may keep of the request being served: its id and trace. Empty where none is served.
pub fn for_job() -> CallContext {
    let kept = |current: &Option<Arc<Current>>| current.as_ref().map(|current| current.context.for_job());
    CURRENT.try_with(kept).ok().flatten().unwrap_or_default()
}

/// Runs the future with this context: the calls in it that are given none have this one. Its time left counts from now.
///
/// A scope inside of another replaces it: with [`CallContext::new`] the calls in it have none.
///
/// Cancel safe if `future` is.
pub fn scope<F: Future>(context: CallContext, future: F) -> Scope<F> {
    Scope::new(Current::begin(context, Clock::system), future)
}

/// The same with a clock of one's own, by which its deadline is told: for tests with a virtual one.
pub fn scope_on<F: Future>(clock: &Clock, context: CallContext, future: F) -> Scope<F> {
    Scope::new(Current::begin(context, || clock.clone()), future)
}

/// Runs the closure on this thread with this context.
pub fn scope_blocking<R>(context: CallContext, work: impl FnOnce() -> R) -> R {
    CURRENT.sync_scope(Some(Current::begin(context, Clock::system)), work)
}

/// The same with a clock of one's own.
pub fn scope_blocking_on<R>(clock: &Clock, context: CallContext, work: impl FnOnce() -> R) -> R {
    CURRENT.sync_scope(Some(Current::begin(context, || clock.clone())), work)
}

/// The future with the context of this task, and its collector of what was degraded, for wherever it is polled.
///
/// Cancel safe if `future` is.
pub fn carry<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    let Carried { current, collector } = Carried::here();
    let future = CURRENT.scope(current, future);
    async move {
        match collector {
            Some(collector) => collector.scope(future).await,
            None => future.await,
        }
    }
}

/// The same for a closure that another thread runs.
pub fn carry_blocking<R>(work: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let carried = Carried::here();
    move || carried.around(work)
}

/// `tokio::spawn` with the context of this task taken along; see [`carry`].
///
/// # Panics
/// Outside of a tokio runtime, as `tokio::spawn`.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(carry(future))
}

/// `tokio::task::spawn_blocking` with the context of this task taken along; see [`carry_blocking`].
///
/// # Panics
/// Outside of a tokio runtime, as tokio's own.
pub fn spawn_blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    tokio::task::spawn_blocking(carry_blocking(work))
}

/// What a task takes along to another thread: its context, and its collector.
pub(crate) struct Carried {
    current: Option<Arc<Current>>,
    collector: Option<Collector>,
}

impl Carried {
    /// That of the task, or thread, that this is called in.
    pub(crate) fn here() -> Self {
        Self { current: CURRENT.try_with(Clone::clone).ok().flatten(), collector: Collector::current() }
    }

    /// Runs the work as if it were still there.
    pub(crate) fn around<R>(self, work: impl FnOnce() -> R) -> R {
        let work = || CURRENT.sync_scope(self.current, work);
        match self.collector {
            Some(collector) => collector.scope_blocking(work),
            None => work(),
        }
    }
}

pin_project! {
    /// A future with a context around it. Made by [`scope`].
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Scope<F> {
        #[pin]
        inner: TaskLocalFuture<Option<Arc<Current>>, F>,
    }
}

impl<F: Future> Scope<F> {
    fn new(current: Arc<Current>, future: F) -> Self {
        Self { inner: CURRENT.scope(Some(current), future) }
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inner.poll(cx)
    }
}

impl<F> fmt::Debug for Scope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
