//! An operation that plays a script: what a guard's test calls instead of a database or a mail server.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use steadfast_policy::Time;
use tokio::sync::Notify;

use super::clock::Hang;
use super::reply::{Action, Reply};
use crate::clock::Clock;
use crate::guard::{Context, IdempotencyKey};

/// One call of a scripted operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenCall {
    /// When it came.
    pub at: Time,
    /// The number of the attempt that it was, if its [`Context`] was handed on.
    pub attempt: Option<u32>,
    /// What was left of the deadline then, if its context was handed on.
    pub time_left: Option<Duration>,
    /// The call's idempotency key, if its context was handed on.
    pub key: Option<IdempotencyKey>,
}

/// An operation that plays a script. The last step repeats. Clones are the same operation.
///
/// Called as `guard.call(|| operation.call())`, or `guard.call_with(|context| operation.call_with(context))`, which lets it
/// see attempt, deadline and key.
///
/// The time that a step takes is its clock's. On a [`fake_clock`](super::fake_clock) it passes at once, up to the first
/// limit; on a [`VirtualClock`](super::VirtualClock) when that is moved; on the system's in earnest.
pub struct ScriptedOperation<T, E>(Arc<Inner<T, E>>);

struct Inner<T, E> {
    clock: Clock,
    state: Mutex<State<T, E>>,
    /// The script is another: for tasks, and for threads.
    played: Notify,
    played_for_threads: Condvar,
}

struct State<T, E> {
    steps: VecDeque<Reply<T, E>>,
    /// How often `play` was called.
    version: u64,
    seen: Vec<SeenCall>,
    in_flight: usize,
    peak: usize,
}

impl<T, E> Clone for ScriptedOperation<T, E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T, E> ScriptedOperation<T, E> {
    /// An operation that does these things in order, and the last one for ever. Without any it hangs until it is
    /// [played](Self::play).
    pub fn new(clock: impl Into<Clock>, steps: impl IntoIterator<Item: Into<Reply<T, E>>>) -> Self {
        let steps = steps.into_iter().map(Into::into).collect();
        let state = State { steps, version: 0, seen: Vec::new(), in_flight: 0, peak: 0 };
        let (played, played_for_threads) = (Notify::new(), Condvar::new());
        Self(Arc::new(Inner { clock: clock.into(), state: Mutex::new(state), played, played_for_threads }))
    }

    /// Does these things from the next call on; so do the calls that hang.
    pub fn play(&self, steps: impl IntoIterator<Item: Into<Reply<T, E>>>) {
        let steps = steps.into_iter().map(Into::into).collect();
        let mut state = self.state();
        // What the old steps hold is dropped without the lock.
        let old = std::mem::replace(&mut state.steps, steps);
        state.version += 1;
        drop(state);
        drop(old);
        self.0.played.notify_waiters();
        self.0.played_for_threads.notify_all();
    }

    /// Every call so far.
    pub fn seen(&self) -> Vec<SeenCall> {
        self.state().seen.clone()
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.state().seen.len()
    }

    /// How many are running now: zero when everything has ended or was dropped.
    pub fn in_flight(&self) -> usize {
        self.state().in_flight
    }

    /// The most that were running at once.
    pub fn peak(&self) -> usize {
        self.state().peak
    }

    fn state(&self) -> MutexGuard<'_, State<T, E>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self, context: Option<Context>) -> Running<T, E> {
        let seen = SeenCall {
            at: self.0.clock.now(),
            attempt: context.map(|context| context.attempt),
            time_left: context.map(|context| context.time_left),
            key: context.map(|context| context.idempotency_key()),
        };
        let mut state = self.state();
        state.seen.push(seen);
        state.in_flight += 1;
        state.peak = state.peak.max(state.in_flight);
        drop(state);
        Running(self.clone())
    }

    /// The next step, and which script it is of.
    fn next_step(&self) -> (Reply<T, E>, u64) {
        let mut state = self.state();
        let last = if state.steps.len() > 1 { state.steps.pop_front() } else { state.steps.front().cloned() };
        (last.unwrap_or_else(Reply::hang), state.version)
    }
}

impl<T: 'static, E: 'static> ScriptedOperation<T, E> {
    /// Plays the next step.
    ///
    /// Cancel safe: dropping the future ends the call.
    ///
    /// # Panics
    /// Where the script says so.
    pub fn call(&self) -> impl Future<Output = Result<T, E>> + Send + use<T, E> {
        self.clone().perform(None)
    }

    /// The same, and keeps what an attempt is told for [`seen`](Self::seen).
    pub fn call_with(&self, context: Context) -> impl Future<Output = Result<T, E>> + Send + use<T, E> {
        self.clone().perform(Some(context))
    }

    async fn perform(self, context: Option<Context>) -> Result<T, E> {
        let running = self.arrive(context);
        loop {
            let (step, version) = running.0.next_step();
            if !step.after.is_zero() {
                running.0.0.clock.work(step.after).await;
            }
            match step.action {
                Action::Return(make) => return make(),
                Action::Hang => running.0.is_played_after(version).await,
                Action::Panic(message) => resume_unwind(Box::new(message.to_string())),
            }
        }
    }

    async fn is_played_after(&self, version: u64) {
        let mut hang = Hang::default();
        let mut played = pin!(self.0.played.notified());
        played.as_mut().enable();
        if self.state().version != version {
            return;
        }
        poll_fn(|cx| {
            if played.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            hang.poll(cx, &self.0.clock);
            Poll::Pending
        })
        .await;
    }

    /// Plays the next step on this thread. The time that it takes passes on a test's clock, or else in earnest. A step that
    /// hangs holds the thread until the script is [played](Self::play) anew.
    ///
    /// # Errors
    /// Those of the script.
    ///
    /// # Panics
    /// Where the script says so.
    pub fn call_blocking(&self) -> Result<T, E> {
        self.perform_blocking(None)
    }

    /// The same, and keeps what an attempt is told for [`seen`](Self::seen).
    ///
    /// # Errors
    /// Those of the script.
    ///
    /// # Panics
    /// Where the script says so.
    pub fn call_blocking_with(&self, context: Context) -> Result<T, E> {
        self.perform_blocking(Some(context))
    }

    fn perform_blocking(&self, context: Option<Context>) -> Result<T, E> {
        let running = self.arrive(context);
        loop {
            let (step, version) = running.0.next_step();
            match self.0.clock.as_virtual() {
                Some(clock) => clock.advance(step.after),
                None => std::thread::sleep(step.after),
            }
            match step.action {
                Action::Return(make) => return make(),
                Action::Hang => {
                    let is_old = |state: &mut State<T, E>| state.version == version;
                    let waited = self.0.played_for_threads.wait_while(self.state(), is_old);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                Action::Panic(message) => resume_unwind(Box::new(message.to_string())),
            }
        }
    }
}

impl<T, E> fmt::Debug for ScriptedOperation<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedOperation")
            .field("steps", &state.steps.len())
            .field("calls", &state.seen.len())
            .field("in_flight", &state.in_flight)
            .finish_non_exhaustive()
    }
}

/// A call that is running.
struct Running<T, E>(ScriptedOperation<T, E>);

impl<T, E> Drop for Running<T, E> {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}
