//! One attempt's work on another thread, and the caller that waits for it: either may be gone first.
//!
//! | | the caller waits | the caller has gone |
//! |---|---|---|
//! | not begun | it begins | it never does; what it would have needed was given back at once |
//! | running | | it goes on, and keeps its slot |
//! | over | the result is the caller's | the result is dropped on the work's thread, then the slot is given back |
//!
//! A panic of the work is kept and goes on in the caller. A thread that never comes, because there are none left or
//! because the runtime is going down, is told to the caller too.

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use steadfast_policy::Time;
use tokio::runtime::Handle;
use tracing::Span;

use crate::context::Carried;
use crate::guard::context::Context;
use crate::lent::Lent;

/// Where helper threads come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// A thread of its own.
    Own,
    /// Those that the runtime of the calling task keeps for blocking work; a thread of its own outside of a runtime.
    OfTheRuntime,
}

impl Threads {
    /// Runs `work` on another thread. It is dropped if there is none.
    fn start(self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        if self == Self::OfTheRuntime
            && let Ok(runtime) = Handle::try_current()
        {
            // It panics where the system has no thread to give.
            let started = catch_unwind(AssertUnwindSafe(|| drop(runtime.spawn_blocking(work))));
            return started.map_err(|_| io::Error::other("the runtime could not start a thread for blocking work"));
        }
        thread::Builder::new().name("steadfast-guard".into()).spawn(work).map(drop)
    }
}

/// What a helper thread is given: the operation, and what it runs with.
pub(super) struct Task<F> {
    pub(super) operation: F,
    pub(super) context: Context,
    pub(super) slot: Arc<Lent>,
    /// What is degraded in the work is noted where the caller looks for it, and its calls are for the same request.
    carried: Carried,
    span: Span,
    #[cfg(feature = "otel")]
    trace: opentelemetry::Context,
}

impl<F> Task<F> {
    /// To be made by the calling task or thread.
    pub(super) fn new(operation: F, context: Context, slot: Arc<Lent>) -> Self {
        Self {
            operation,
            context,
            slot,
            carried: Carried::here(),
            span: Span::current(),
            #[cfg(feature = "otel")]
            trace: opentelemetry::Context::current(),
        }
    }
}

/// How the work ended.
pub(super) enum Over<F, R> {
    /// With a result. The operation comes back, for another attempt.
    Ran(F, R),
    Panicked(Box<dyn Any + Send>),
    /// No thread took it on.
    NotStarted(io::Error),
}

/// The work, as both sides see it.
pub(super) struct Errand<F, R>(Mutex<State<F, R>>);

struct State<F, R> {
    stage: Stage<F, R>,
    began: Option<Time>,
    waker: Option<Waker>,
}

enum Stage<F, R> {
    Waiting(Task<F>),
    Running,
    Over(Over<F, R>),
    /// The caller has its result.
    Told,
    /// The caller waits no longer.
    Abandoned,
}

impl<F, R> Errand<F, R>
where
    F: FnMut(Context) -> R + Send + 'static,
    R: Send + 'static,
{
    /// Sends the work to another thread.
    pub(super) fn send(task: Task<F>, threads: Threads) -> Arc<Self> {
        let state = State { stage: Stage::Waiting(task), began: None, waker: None };
        let errand = Arc::new(Self(Mutex::new(state)));
        let runner = Runner(Arc::clone(&errand));
        if let Err(error) = threads.start(move || runner.run()) {
            errand.not_started(error);
        }
        errand
    }
}

impl<F, R> Errand<F, R> {
    fn lock(&self) -> MutexGuard<'_, State<F, R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the work began, if it has.
    pub(super) fn began(&self) -> Option<Time> {
        self.lock().began
    }

    fn begin(&self) -> Option<Task<F>> {
        let mut state = self.lock();
        match std::mem::replace(&mut state.stage, Stage::Running) {
            Stage::Waiting(task) => {
                state.began = Some(task.slot.now());
                Some(task)
            }
            other => {
                state.stage = other;
                None
            }
        }
    }

    /// Hands the result to the caller, or drops it where there is none; the work's share of the slot goes last.
    fn finish(&self, over: Over<F, R>, slot: Arc<Lent>) {
        if !matches!(self.lock().stage, Stage::Abandoned) {
            // The caller may never come for it.
            slot.work_is_over();
        }
        let mut state = self.lock();
        if matches!(state.stage, Stage::Abandoned) {
            drop(state);
            drop(over);
            return drop(slot);
        }
        state.stage = Stage::Over(over);
        let waker = state.waker.take();
        // While the caller waits, it has a share of its own: this is not the last, and gives nothing back. The other order
        // would let the caller be settled, and try again, before this share is gone.
        drop(slot);
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn not_started(&self, error: io::Error) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Abandoned | Stage::Told) {
            return;
        }
        let before = std::mem::replace(&mut state.stage, Stage::Over(Over::NotStarted(error)));
        let waker = state.waker.take();
        drop(state);
        drop(before);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The thread's side of an errand. Dropped without having run, it says so.
struct Runner<F, R>(Arc<Errand<F, R>>);

impl<F: FnMut(Context) -> R, R> Runner<F, R> {
    fn run(self) {
        let Some(task) = self.0.begin() else { return };
        #[cfg(feature = "otel")]
        let inside = task.trace.attach();
        let Task { mut operation, context, slot, carried, span, .. } = task;
        let work = AssertUnwindSafe(|| carried.around(|| span.in_scope(|| operation(context))));
        let result = catch_unwind(work);
        #[cfg(feature = "otel")]
        drop(inside);
        // The call's span ends with the call, not with this thread.
        drop(span);
        let over = match result {
            Ok(result) => Over::Ran(operation, result),
            Err(panic) => {
                // What it owns may panic in turn. It is the first panic that the caller hears of.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(operation)));
                Over::Panicked(panic)
            }
        };
        self.0.finish(over, slot);
    }
}

impl<F, R> Drop for Runner<F, R> {
    fn drop(&mut self) {
        let ended = matches!(self.0.lock().stage, Stage::Over(_) | Stage::Told | Stage::Abandoned);
        if !ended {
            self.0.not_started(io::Error::other("the work was given up: its runtime is shutting down"));
        }
    }
}

/// The caller's side: ready with how the work ended. Dropping it is going away.
pub(super) struct Awaited<'a, F, R>(pub(super) &'a Errand<F, R>);

impl<F, R> Future for Awaited<'_, F, R> {
    type Output = Over<F, R>;

    fn poll(self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Over<F, R>> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut state.stage, Stage::Told) {
            Stage::Over(over) => Poll::Ready(over),
            other => {
                state.stage = other;
                match &mut state.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => state.waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl<F, R> Drop for Awaited<'_, F, R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(state.stage, Stage::Told) {
            return;
        }
        // Work that has not begun, or a result that nobody has taken, goes here and now.
        let left = std::mem::replace(&mut state.stage, Stage::Abandoned);
        let waker = state.waker.take();
        drop(state);
        drop((left, waker));
    }
}
