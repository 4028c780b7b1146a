//! Guarded operations on plain threads (11.7), with no runtime anywhere.
//!
//! | the operation runs | from a plain thread | from async code |
//! |---|---|---|
//! | on the thread that calls | `call_blocking`, `call_blocking_with`, `serve_blocking` | |
//! | on a helper thread | `call_on_thread_blocking`, `serve_on_thread_blocking` | `call_on_thread`, `serve_on_thread` |
//!
//! Both go through the one loop that every call goes through. The thread that calls polls it and parks in between
//! ([`park`](crate::park)); the operation itself is run outside of the poll.
//!
//! An operation that blocks cannot be stopped. On the caller's own thread the deadline is therefore looked at between
//! attempts only. On a helper thread the caller is let go at the deadline, while the work goes on. Either way its slot
//! stays taken until it ends, and nothing is tried again before: there are never more operations than `max_concurrent`.
//!
//! Limits: a call is refused in an event hook, which the call itself would tell of itself. In an async task these methods
//! hold up the thread that the task runs on.

mod caller;
mod errand;
mod helper;
mod on_thread;

use std::pin::pin;

use steadfast_policy::Time;

use super::classify::{Asked, Classify};
use super::context::Context;
use super::error::GuardError;
use super::served::{Fallback, Served};
use super::{Guard, GuardCall, Guarded};
use crate::error::Error;
use crate::event;
use crate::park::{self, Bell, Then};
use crate::report::Report;

/// What a call brought, before a fallback is thought of.
type Outcome<T, E> = Result<(T, Report), GuardError<E>>;

impl<J, B> GuardCall<'_, J, B> {
    /// Runs the operation on this thread, which waits where the call has to wait. No runtime is needed, and nothing has to
    /// be `Send`: a connection that belongs to this thread is fine.
    ///
    /// The operation is not interrupted. The deadline is checked between attempts: a value that comes late is returned, an
    /// error that comes late is not retried. `attempt_timeout` has no effect but that a value which took more than half of it
    /// is a slow one to the retry budget. Where the deadline must end the wait, use
    /// [`call_on_thread_blocking`](Self::call_on_thread_blocking), or give the driver a timeout of its own
    /// ([`Context::time_left`]).
    ///
    /// The operation may make guarded calls itself. One that panics unwinds through, and gives everything back. In an async
    /// task this holds up the task's thread: use [`call`](Self::call) or [`call_on_thread`](Self::call_on_thread) there.
    ///
    /// # Errors
    /// The operation's own last error, or the limit that ended the call; with a fallback only a permanent error. In an event
    /// hook `InvalidRequest`.
    pub fn call_blocking<T, E, F>(self, mut operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Result<T, E>,
        J: Classify<E>,
        B: Fallback<T, E>,
    {
        self.call_blocking_with(move |_| operation())
    }

    /// The same for an operation that is told the number of its attempt, the time that is left, and the call's idempotency
    /// key: see [`call_blocking`](Self::call_blocking).
    ///
    /// # Errors
    /// As [`call_blocking`](Self::call_blocking).
    pub fn call_blocking_with<T, E, F>(self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E>,
        J: Classify<E>,
        B: Fallback<T, E>,
    {
        self.serve_blocking(operation).map(Served::into_value)
    }

    /// Runs the operation on this thread, and tells how the value came: every attempt and wait, and whether it is the
    /// fallback's. See [`call_blocking`](Self::call_blocking).
    ///
    /// # Errors
    /// As [`call_blocking`](Self::call_blocking).
    pub fn serve_blocking<T, E, F>(self, operation: F) -> Result<Served<T>, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E>,
        J: Classify<E>,
        B: Fallback<T, E>,
    {
        let Self { guard, options, judge, fallback } = self;
        let (guarded, judge) = (&*guard.0, Asked::new(judge));
        let outcome = not_in_a_hook(guarded).and_then(|()| guarded.run_here(options, &judge, operation));
        guarded.served(&judge, fallback, outcome)
    }
}

impl Guard {
    /// Runs `operation` on this thread; every error counts against the dependency, and none is retried. See
    /// [`GuardCall::call_blocking`] for what the deadline does here.
    ///
    /// ```
    /// use std::io;
    /// use steadfast::Guard;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reports = Guard::database("reports").build()?;
    /// // Nothing of this is `Send`, and there is no runtime.
    /// let lines = std::rc::Rc::new(vec!["a", "b"]);
    /// let count = reports
    ///     .transient(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut)
    ///     .call_blocking(|| Ok::<_, io::Error>(lines.len()))?;
    /// assert_eq!(count, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation's own error, or the limit that ended the call.
    pub fn call_blocking<T, E, F>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        GuardCall::new(self).call_blocking(operation)
    }

    /// The same for an operation that is told of its call: see [`GuardCall::call_blocking_with`].
    ///
    /// # Errors
    /// As [`call_blocking`](Self::call_blocking).
    pub fn call_blocking_with<T, E, F>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E>,
    {
        GuardCall::new(self).call_blocking_with(operation)
    }

    /// A call on this thread that tells how its value came: see [`GuardCall::serve_blocking`].
    ///
    /// # Errors
    /// As [`call_blocking`](Self::call_blocking).
    pub fn serve_blocking<T, E, F>(&self, operation: F) -> Result<Served<T>, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E>,
    {
        GuardCall::new(self).serve_blocking(operation)
    }

    /// [`close`](Self::close) on this thread, without a runtime: refuses new calls, and waits for the running ones, those of
    /// async callers included, and for work on helper threads; to the latest deadline that any of them can have, and no
    /// longer. In an event hook, which a running call may be waiting for, it does not wait.
    pub fn close_blocking(&self) {
        self.ended_blocking(self.0.upstream.refuse_new_calls());
    }

    /// The second half: waits for the running ones, at the longest until `limit`.
    pub(super) fn ended_blocking(&self, limit: Time) {
        let upstream = &self.0.upstream;
        if !event::is_in_hook() {
            let bell = Bell::new();
            park::drive(&upstream.clock, &bell, pin!(upstream.ended(limit, Some(&bell))), || Then::Wait);
        }
    }
}

impl Guarded {
    /// What the caller gets.
    fn served<T, E, J, B>(
        &self,
        judge: &Asked<J>,
        fallback: B,
        outcome: Outcome<T, E>,
    ) -> Result<Served<T>, GuardError<E>>
    where
        B: Fallback<T, E>,
    {
        match outcome {
            Ok((value, report)) => Ok(Served { value, degraded: None, report }),
            Err(cause) if !B::EXISTS || is_misuse(&cause) => Err(cause),
            Err(cause) => {
                let report = cause.report().clone();
                let (value, degraded) = self.instead(judge, fallback, cause)?;
                Ok(Served { value, degraded: Some(degraded), report })
            }
        }
    }
}

/// A blocking call tells the hook of its upstream of itself; and a hook should return soon.
fn not_in_a_hook<E>(guarded: &Guarded) -> Result<(), GuardError<E>> {
    if !event::is_in_hook() {
        return Ok(());
    }
    let detail = "a blocking call was made in an event hook, which must return soon; hand it to another thread";
    Err(GuardError::Limit { error: Error::invalid_request(&guarded.upstream.name, detail), last: None })
}

/// Whether it says that the program is wrong, which no fallback should hide.
fn is_misuse<E>(cause: &GuardError<E>) -> bool {
    matches!(cause, GuardError::Limit { error, .. } if error.is_invalid_request())
}
