//! Drives a future on the calling thread, with the sockets and timers of one background thread.
//!
//! The future is polled where it is, and the thread parks in between; so there is no task to abort, nothing to send to
//! another thread, and unwinding drops the call as dropping the async one does. `Handle::enter` is all that the future
//! needs of the background runtime: it may be called anywhere, where `block_on` panics inside of another runtime.
//!
//! Invariants:
//!
//! - The wait ends. The future has the call's deadline; should the background thread be held up by a user's hook, so that
//!   no timer fires, the wait itself ends a second later.
//! - A thread that has to go on so that others can is not parked. Such a thread is a scheduler's: the one of a tokio task.
//!   There is no question that tokio answers, but a yield shows it: a scheduler puts the wake-up off until the thread is
//!   free again, and elsewhere (plain threads, `spawn_blocking`, `block_in_place`) it comes at once. That is also exactly
//!   what decides whether a yield inside of the future could ever return.
//! - tokio's budget of a task is not applied: on such a thread it is never filled up again.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use steadfast_policy::Time;
use tokio::runtime::{self, Handle};
use tokio::task::coop::unconstrained;

use crate::client::RequestBuilder;
use crate::error::{Error, ErrorKind};
use crate::event;
use crate::park::Parked;
use crate::report::{Ended, Report};
use crate::upstream::Upstream;

/// How deep calls may lie in hooks of calls: a hook that makes the call that it belongs to would never come to an end.
const DEPTH: u32 = 4;
/// How long after its deadline a call that has not ended is given up.
const GRACE: Duration = Duration::from_secs(1);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is in a hook, so that waiting for the running calls would be waiting for itself.
pub(super) fn is_in_a_call() -> bool {
    event::is_in_hook() || CALLS.get() > 0
}

/// One call that is waited for: whose, since when, and when it must have ended.
#[derive(Clone)]
pub(super) struct Wait {
    upstream: Arc<Upstream>,
    since: Instant,
    limit: Option<Instant>,
}

impl Wait {
    /// For a call that begins now.
    pub(super) fn begin(call: &RequestBuilder) -> Self {
        let (upstream, longest) = call.bounds();
        let limit = after(upstream, upstream.clock.now() + longest);
        Self { upstream: Arc::clone(upstream), since: Instant::now(), limit }
    }

    /// Waits for the call, or for a piece of its response.
    pub(super) fn run<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        run(call, self.limit).unwrap_or_else(|not_run| Err(self.error(not_run)))
    }

    fn error(&self, not_run: NotRun) -> Error {
        let name = &self.upstream.name;
        match not_run {
            NotRun::Late => {
                let mut report = Report::default();
                report.end(Ended::Deadline, self.since.elapsed(), None);
                Error::new(ErrorKind::Timeout, name, report)
            }
            NotRun::NotStarted(error) => {
                Error::invalid_request(name, "the background thread of blocking calls cannot be started")
                    .with_source(Some(error.into()))
            }
            refused => Error::invalid_request(name, refused),
        }
    }
}

/// When the wait for something that ends at `at` is given up; never under a virtual clock.
pub(super) fn after(upstream: &Upstream, at: Time) -> Option<Instant> {
    upstream.clock.instant(at + GRACE).map(tokio::time::Instant::into_std)
}

/// Why a future was not driven to its end.
#[derive(Debug)]
pub(super) enum NotRun {
    InAsync,
    InEventHook,
    TooDeep,
    ThreadEnds,
    NotStarted(io::Error),
    Late,
}

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAsync => f.write_str(
                "a blocking call was made in an async context, whose other tasks it would hold up; \
                 use the async client, or spawn_blocking",
            ),
            Self::InEventHook => f.write_str(
                "a blocking call was made in an event hook, which must return soon; hand it to another thread",
            ),
            Self::TooDeep => {
                write!(f, "blocking calls are made from hooks of blocking calls, more than {DEPTH} deep")
            }
            Self::ThreadEnds => f.write_str("a blocking call was made while its thread was ending"),
            Self::NotStarted(error) => error.fmt(f),
            Self::Late => f.write_str("the background thread of blocking calls is held up"),
        }
    }
}

/// Drives the future to its end, or to `limit`, on this thread.
pub(super) fn run<F: Future>(future: F, limit: Option<Instant>) -> Result<F::Output, NotRun> {
    let _call = Nested::enter()?;
    if would_hold_up_a_scheduler()? {
        return Err(NotRun::InAsync);
    }
    let background = background().map_err(NotRun::NotStarted)?;
    let _entered = background.enter();
    // Dropped before the runtime is left, whichever way.
    let future = pin!(unconstrained(future));
    drive(future, limit).ok_or(NotRun::Late)
}

fn drive<F: Future>(mut future: std::pin::Pin<&mut F>, limit: Option<Instant>) -> Option<F::Output> {
    let (parked, waker) = Parked::here();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut context) {
            return Some(out);
        }
        loop {
            // Asked even of a future that keeps waking itself.
            let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            if parked.take_wake() {
                break;
            }
            left.map_or_else(thread::park, thread::park_timeout);
        }
    }
}

/// Counts a call among those of this thread, one inside of the other.
struct Nested;

impl Nested {
    fn enter() -> Result<Self, NotRun> {
        if event::is_in_hook() {
            return Err(NotRun::InEventHook);
        }
        let calls = CALLS.get();
        if calls >= DEPTH {
            return Err(NotRun::TooDeep);
        }
        CALLS.set(calls + 1);
        Ok(Self)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        CALLS.set(CALLS.get().saturating_sub(1));
    }
}

/// Whether this thread is the one that a runtime's tasks run on, at this moment.
fn would_hold_up_a_scheduler() -> Result<bool, NotRun> {
    match Handle::try_current() {
        Ok(_) => {}
        Err(error) if error.is_thread_local_destroyed() => return Err(NotRun::ThreadEnds),
        Err(_) => return Ok(false),
    }
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let first = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker));
    Ok(first.is_pending() && !woken.0.load(Ordering::Acquire))
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// The background thread's runtime; started by whoever asks first. A start that failed is tried again by the next.
fn background() -> io::Result<&'static Handle> {
    static BACKGROUND: OnceLock<Handle> = OnceLock::new();
    static START: Mutex<()> = Mutex::new(());
    if let Some(handle) = BACKGROUND.get() {
        return Ok(handle);
    }
    let _one_at_a_time = START.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = BACKGROUND.get() {
        return Ok(handle);
    }
    let handle = start()?;
    Ok(BACKGROUND.get_or_init(|| handle))
}

fn start() -> io::Result<Handle> {
    let (tell, told) = mpsc::sync_channel(1);
    // Built on its own thread: a runtime may not be dropped on one that runs tasks, should the thread not start.
    thread::Builder::new().name("steadfast".into()).spawn(move || {
        let built = runtime::Builder::new_current_thread().enable_all().thread_name("steadfast-blocking").build();
        match built {
            Ok(runtime) => {
                let _ = tell.send(Ok(runtime.handle().clone()));
                runtime.block_on(std::future::pending::<()>());
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("the background thread ended")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timer that never fires, as while the background thread is held up: the wait ends all the same.
    #[test]
    fn a_wait_ends_at_its_limit_even_if_nothing_wakes_it() {
        let start = Instant::now();
        let limit = Some(start + Duration::from_millis(20));
        assert!(matches!(run(std::future::pending::<()>(), limit), Err(NotRun::Late)));
        assert!(start.elapsed() >= Duration::from_millis(20));
        let restless = std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(matches!(run(restless, Some(Instant::now() + Duration::from_millis(20))), Err(NotRun::Late)));
        assert!(run(async { 7 }, Some(start)).is_ok_and(|seven| seven == 7));
    }

    #[test]
    fn one_thread_drives_every_wait() {
        let id = |_| thread::spawn(|| run(async { tokio::spawn(async { thread::current().id() }).await }, None));
        let ids: Vec<_> = (0..4).map(id).map(|thread| thread.join().unwrap().unwrap().unwrap()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[test]
    fn a_wait_inside_of_another_takes_none_of_its_wake_ups() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let out = run(
            async move {
                let mut told = pin!(told);
                let mut tell = Some(tell);
                std::future::poll_fn(|context| {
                    let polled = told.as_mut().poll(context);
                    if let Some(tell) = tell.take() {
                        // Both are woken while only the inner one is polled.
                        let inner = run(
                            async {
                                let _ = tell.send(7);
                                tokio::time::sleep(Duration::from_millis(5)).await;
                            },
                            None,
                        );
                        assert!(inner.is_ok());
                    }
                    polled
                })
                .await
            },
            Some(Instant::now() + Duration::from_secs(10)),
        );
        assert_eq!(out.unwrap().unwrap(), 7);
    }

    #[test]
    fn a_panic_leaves_the_thread_as_it_was() {
        let panics = std::future::poll_fn(|_| -> Poll<()> { panic!("on purpose") });
        let panicked = std::panic::catch_unwind(|| run(panics, None));
        assert!(panicked.is_err() && !is_in_a_call());
        assert!(Handle::try_current().is_err());
        assert!(run(async { 7 }, None).is_ok());
    }
}
