//! A clock that stands still until it is moved.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use steadfast_policy::Time;

/// A clock for tests and simulations. Clones are the same clock.
///
/// Timers fire in the order of their instants, equal ones in the order in which they were armed; so a run is the same
/// each time. Waiting costs nothing: [`VirtualClock::run`] jumps from one timer to the next.
#[derive(Clone)]
pub struct VirtualClock(Arc<Mutex<State>>);

struct State {
    now: Time,
    wall_at_origin: SystemTime,
    sequence: u64,
    timers: BTreeMap<(Time, u64), Waker>,
}

/// The future cannot go on: it waits for something that is not a timer of this clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled;

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the future is pending and no timer of the virtual clock is armed")
    }
}

impl std::error::Error for Stalled {}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl VirtualClock {
    /// A clock at its origin; its wall shows 2026-01-01T00:00:00Z.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Time::ZERO,
            wall_at_origin: SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600),
            sequence: 0,
            timers: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the origin.
    pub fn now(&self) -> Time {
        self.state().now
    }

    /// The time of the wall.
    pub fn wall(&self) -> SystemTime {
        let state = self.state();
        state.wall_at_origin + state.now.since(Time::ZERO)
    }

    /// Moves the clock, firing every timer on the way in order. Tasks that a timer wakes run when they are polled next.
    pub fn advance(&self, duration: Duration) {
        let end = self.now() + duration;
        while self.next_timer().is_some_and(|at| at <= end) {
            self.advance_to_next_timer();
        }
        let mut state = self.state();
        state.now = state.now.max(end);
    }

    /// Moves the clock to `at`, unless it is there: for several threads that each wait for an instant of their own, and
    /// of whom none may move it further than that.
    pub(crate) fn advance_to(&self, at: Time) {
        loop {
            let mut state = self.state();
            let next = state.timers.first_entry().filter(|timer| timer.key().0 <= at);
            let Some(((due, _), waker)) = next.map(|timer| timer.remove_entry()) else {
                state.now = state.now.max(at);
                return;
            };
            state.now = state.now.max(due);
            drop(state);
            waker.wake();
        }
    }

    /// The instant of the next timer.
    pub fn next_timer(&self) -> Option<Time> {
        self.state().timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Jumps to the next timer and fires it; false when none is armed.
    pub fn advance_to_next_timer(&self) -> bool {
        let mut state = self.state();
        let Some(((at, _), waker)) = state.timers.pop_first() else { return false };
        state.now = state.now.max(at);
        drop(state);
        waker.wake();
        true
    }

    /// How many timers are armed: none must be left when everything has ended or was dropped.
    pub fn armed_timers(&self) -> usize {
        self.state().timers.len()
    }

    /// Runs a future to its end, jumping from timer to timer whenever it can go no further.
    ///
    /// # Errors
    /// [`Stalled`] when it waits for something else than this clock.
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, Stalled> {
        let mut future = pin!(future);
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut context = Context::from_waker(&waker);
        loop {
            while flag.0.swap(false, Ordering::AcqRel) {
                if let Poll::Ready(out) = future.as_mut().poll(&mut context) {
                    return Ok(out);
                }
            }
            if !self.advance_to_next_timer() {
                return Err(Stalled);
            }
        }
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("VirtualClock").field("now", &state.now).field("timers", &state.timers.len()).finish()
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// One armed timer of a virtual clock; dropping it disarms it.
#[derive(Default)]
pub(crate) struct VirtualTimer(Option<(VirtualClock, (Time, u64))>);

impl VirtualTimer {
    pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, clock: &VirtualClock, at: Time) -> Poll<()> {
        let mut state = clock.state();
        if state.now >= at {
            drop(state);
            self.disarm();
            return Poll::Ready(());
        }
        if let Some((_, key)) = &self.0
            && key.0 == at
            && let Some(waker) = state.timers.get_mut(key)
        {
            waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        let key = (at, state.sequence);
        state.sequence += 1;
        state.timers.insert(key, cx.waker().clone());
        drop(state);
        self.disarm();
        self.0 = Some((clock.clone(), key));
        Poll::Pending
    }

    fn disarm(&mut self) {
        if let Some((clock, key)) = self.0.take() {
            clock.state().timers.remove(&key);
        }
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        self.disarm();
    }
}
