//! Guarded operations on helper threads: where the deadline must end the wait.

use std::sync::atomic::AtomicBool;

use super::errand::Threads;
use crate::guard::classify::{Asked, Classify};
use crate::guard::context::Context;
use crate::guard::error::GuardError;
use crate::guard::served::{Fallback, Served};
use crate::guard::{Guard, GuardCall};

impl<J, B> GuardCall<'_, J, B> {
    /// Runs the operation on a helper thread, and lets the caller go at the deadline or at `attempt_timeout`, whether or not
    /// the operation has come to an end. For drivers and libraries that block, in async code.
    ///
    /// Work whose caller has gone goes on: nothing can stop it, so nothing is tried again (the call ends with the limit, even
    /// where `transient` was said), and it keeps its slot until it ends. So no more threads are at work than
    /// `max_concurrent`; what hangs for ever takes a slot for ever. What the late work brings is dropped on its thread.
    ///
    /// The thread is one of those that the runtime keeps for blocking work (`spawn_blocking`); outside of a runtime it is a
    /// new one. tokio waits for such threads when a runtime is dropped; `shutdown_timeout` does not. If no thread can be
    /// had, the call ends with `BulkheadFull`, and the system's error is that error's source. The work sees the tracing span
    /// and the [`degraded`](crate::degraded) collector of its caller. A panic of the operation goes on in the caller.
    ///
    /// Cancel safe: dropping the future gives everything back, but for the slot of work that has begun.
    ///
    /// ```
    /// use std::{fs, io};
    /// use steadfast::Guard;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let share = Guard::builder("network share").build()?;
    /// let path = std::env::temp_dir();
    /// let entries = share.call_on_thread(move |_| Ok::<_, io::Error>(fs::read_dir(&path)?.count())).await?;
    /// println!("{entries}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation's own last error, or the limit that ended the call; with a fallback only a permanent error.
    ///
    /// # Panics
    /// If the operation does. With the system clock outside a tokio runtime, or in one without time (`enable_time`).
    pub async fn call_on_thread<T, E, F>(self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        J: Classify<E> + Send,
        B: Fallback<T, E> + Send,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.serve_on_thread(operation).await.map(Served::into_value)
    }

    /// The same, and tells how the value came: see [`call_on_thread`](Self::call_on_thread).
    ///
    /// Cancel safe, panics: as [`call_on_thread`](Self::call_on_thread).
    ///
    /// # Errors
    /// As [`call_on_thread`](Self::call_on_thread).
    pub async fn serve_on_thread<T, E, F>(self, operation: F) -> Result<Served<T>, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        J: Classify<E> + Send,
        B: Fallback<T, E> + Send,
        T: Send + 'static,
        E: Send + 'static,
    {
        let Self { guard, options, judge, fallback } = self;
        let guarded = &*guard.0;
        let is_out = AtomicBool::new(false);
        let threads = Threads::OfTheRuntime;
        let (judge, outcome) = guarded.run_on_thread(options, Asked::new(judge), operation, threads, &is_out).await;
        guarded.served(&judge, fallback, outcome)
    }

    /// [`call_on_thread`](Self::call_on_thread) for a caller that is a plain thread: the operation runs on a new thread,
    /// and this one waits for it, at the longest until the deadline. No runtime is needed.
    ///
    /// # Errors
    /// As [`call_on_thread`](Self::call_on_thread). In an event hook `InvalidRequest`.
    ///
    /// # Panics
    /// If the operation does.
    pub fn call_on_thread_blocking<T, E, F>(self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        J: Classify<E> + Send,
        B: Fallback<T, E>,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.serve_on_thread_blocking(operation).map(Served::into_value)
    }

    /// The same, and tells how the value came: see [`call_on_thread_blocking`](Self::call_on_thread_blocking).
    ///
    /// # Errors
    /// As [`call_on_thread_blocking`](Self::call_on_thread_blocking).
    ///
    /// # Panics
    /// If the operation does.
    pub fn serve_on_thread_blocking<T, E, F>(self, operation: F) -> Result<Served<T>, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        J: Classify<E> + Send,
        B: Fallback<T, E>,
        T: Send + 'static,
        E: Send + 'static,
    {
        let Self { guard, options, judge, fallback } = self;
        let guarded = &*guard.0;
        let (judge, outcome) = guarded.wait_for_thread(options, Asked::new(judge), operation);
        guarded.served(&judge, fallback, outcome)
    }
}

impl Guard {
    /// Runs `operation` on a helper thread, where the deadline can end the wait; every error counts against the dependency,
    /// and none is retried: see [`GuardCall::call_on_thread`].
    ///
    /// Cancel safe, panics: as there.
    ///
    /// # Errors
    /// The operation's own error, or the limit that ended the call.
    pub async fn call_on_thread<T, E, F>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        GuardCall::new(self).call_on_thread(operation).await
    }

    /// The same for a caller that is a plain thread: see [`GuardCall::call_on_thread_blocking`].
    ///
    /// # Errors
    /// As [`call_on_thread`](Self::call_on_thread).
    ///
    /// # Panics
    /// If the operation does.
    pub fn call_on_thread_blocking<T, E, F>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        GuardCall::new(self).call_on_thread_blocking(operation)
    }
}
