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

use super::fake::FastClock;
use super::limits::LimitSwitch;
use crate::clock::Clock;

/// A clock for tests and simulations. Clones are the same clock.
///
/// Timers fire in the order of their instants, equal ones in the order in which they were armed; so a run is the same
/// each time. Waiting costs nothing: [`VirtualClock::run`] jumps from one timer to the next.
///
/// One that was made by [`fake_clock`](super::fake_clock) is also moved by whoever sleeps on it.
#[derive(Clone)]
pub struct VirtualClock(Arc<Mutex<State>>, LimitSwitch);

struct State {
    now: Time,
    wall_at_origin: SystemTime,
    sequence: u64,
    timers: BTreeMap<(Time, u64), Waker>,
    /// Whether a sleep moves the clock by itself.
    is_fake: bool,
    sleeps: Vec<Duration>,
    seed: Option<u64>,
    /// How often anything has happened: a timer was armed or disarmed, the clock was moved.
    events: u64,
    /// How often sleepers have been polled since the last event.
    polls: u32,
}

/// So often sleepers are polled, at the least, before they move a clock on which nothing happens. A scheduler of tokio's
/// looks for tasks from elsewhere after 31 polls, and for sockets after 61.
const POLLS: u32 = 64;
/// So many turns each of them waits for. One is enough for whoever is woken; these are for whom they wake in turn.
const TURNS: u32 = 3;

/// For how many turns one sleeper has seen nothing happen.
#[derive(Default)]
struct Patience {
    /// How many events there had been, or what was slept for.
    events: u64,
    turns: u32,
}

impl State {
    fn happens(&mut self) {
        self.events += 1;
        self.polls = 0;
    }

    /// Takes a turn; `true` once everybody who could go on must have done so.
    fn is_quiet(&mut self, patience: &mut Patience) -> bool {
        self.polls = self.polls.saturating_add(1);
        if patience.events != self.events {
            *patience = Patience { events: self.events, turns: 0 };
        }
        patience.turns = patience.turns.saturating_add(1);
        patience.turns > TURNS && self.polls > POLLS
    }
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
        let state = State {
            now: Time::ZERO,
            wall_at_origin: SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600),
            sequence: 0,
            timers: BTreeMap::new(),
            is_fake: false,
            sleeps: Vec::new(),
            seed: None,
            events: 0,
            polls: 0,
        };
        Self(Arc::new(Mutex::new(state)), LimitSwitch::default())
    }

    /// One that whoever sleeps on it moves.
    pub(super) fn fake() -> Self {
        let clock = Self::new();
        clock.state().is_fake = true;
        clock
    }

    pub(super) fn set_seed(&self, seed: u64) {
        self.state().seed = Some(seed);
    }

    /// The seed of whatever is built on this clock without one of its own.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.state().seed
    }

    /// Whether the rate limits of this clock are off.
    pub(crate) fn limits(&self) -> &LimitSwitch {
        &self.1
    }

    /// A sleep that has ended, as it was asked for.
    pub(crate) fn note_sleep(&self, asked: Duration) {
        let mut state = self.state();
        if state.is_fake {
            state.sleeps.push(asked);
        }
    }

    pub(super) fn sleeps(&self) -> Vec<Duration> {
        self.state().sleeps.clone()
    }

    pub(super) fn clear_sleeps(&self) {
        self.state().sleeps.clear();
    }

    pub(super) fn is_fake(&self) -> bool {
        self.state().is_fake
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
        while self.jump(end) {}
        let mut state = self.state();
        state.now = state.now.max(end);
        state.happens();
    }

    /// Moves the clock to `at`, unless it is there: for several threads that each wait for an instant of their own, and
    /// of whom none may move it further than that.
    pub(crate) fn advance_to(&self, at: Time) {
        while self.jump(at) {}
        let mut state = self.state();
        state.now = state.now.max(at);
    }

    /// The instant of the next timer.
    pub fn next_timer(&self) -> Option<Time> {
        self.state().timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Jumps to the next timer and fires it; false when none is armed.
    pub fn advance_to_next_timer(&self) -> bool {
        self.jump(Time::MAX)
    }

    /// The same for a timer that comes no later than `limit`: others may move the clock at the same time.
    fn jump(&self, limit: Time) -> bool {
        let mut state = self.state();
        if state.timers.first_key_value().is_none_or(|((at, _), _)| *at > limit) {
            return false;
        }
        let Some(((at, _), waker)) = state.timers.pop_first() else { return false };
        state.now = state.now.max(at);
        state.happens();
        drop(state);
        waker.wake();
        true
    }

    /// One turn of somebody who lets time pass until `limit`: on a clock that is quiet, a jump to the next instant. Every
    /// timer of that instant fires, as whoever moved the clock may not come again.
    fn take_turn(&self, patience: &mut Patience, limit: Time) {
        let is_quiet = self.state().is_quiet(patience);
        if is_quiet && self.jump(limit) {
            while self.jump(self.now()) {}
        }
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

/// Work that does not end by itself: on a fake clock it lets time pass until a limit ends it.
#[derive(Default)]
pub(crate) struct Hang(Patience);

impl Hang {
    /// To be called with every poll. Once nothing is armed that could end it, it wakes nobody any more.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, clock: &Clock) {
        let Some(clock) = clock.as_virtual().filter(|clock| clock.is_fake()) else { return };
        clock.take_turn(&mut self.0, Time::MAX);
        // The limit that it runs under is armed after its first poll.
        if self.0.turns <= TURNS || clock.armed_timers() > 0 {
            cx.waker().wake_by_ref();
        }
    }
}

/// One armed timer of a virtual clock; dropping it disarms it.
#[derive(Default)]
pub(crate) struct VirtualTimer {
    armed: Option<(VirtualClock, (Time, u64))>,
    patience: Patience,
}

impl VirtualTimer {
    pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, clock: &VirtualClock, at: Time) -> Poll<()> {
        let mut state = clock.state();
        if state.now >= at {
            drop(state);
            self.disarm();
            return Poll::Ready(());
        }
        if let Some((_, key)) = &self.armed
            && key.0 == at
            && let Some(waker) = state.timers.get_mut(key)
        {
            waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        let key = (at, state.sequence);
        state.sequence += 1;
        state.timers.insert(key, cx.waker().clone());
        state.happens();
        drop(state);
        self.disarm();
        self.armed = Some((clock.clone(), key));
        Poll::Pending
    }

    /// The same; on a fake clock, once everybody else has had a turn, whoever waits here moves it to the next timer.
    ///
    /// In this way several sleeps at once end in the order of their instants, what one of them sets going is over before
    /// the clock moves again, and a limit that comes before the end of scripted work cuts it.
    pub(crate) fn poll_moving(&mut self, cx: &mut Context<'_>, clock: &VirtualClock, at: Time) -> Poll<()> {
        if clock.is_fake() && self.armed.as_ref().is_some_and(|(_, key)| key.0 == at) {
            clock.take_turn(&mut self.patience, at);
        }
        let polled = self.poll_until(cx, clock, at);
        if polled.is_pending() && clock.is_fake() {
            cx.waker().wake_by_ref();
        }
        polled
    }

    /// Ends a sleep on a clock that skips them, once everybody else has had a turn: who was let through by then must not
    /// find that its own time has been skipped, too.
    pub(crate) fn poll_skipping(&mut self, cx: &mut Context<'_>, clock: &FastClock, at: Time) -> Poll<()> {
        if self.patience.events != at.as_nanos() {
            self.patience = Patience { events: at.as_nanos(), turns: 0 };
        }
        self.patience.turns += 1;
        if self.patience.turns > POLLS {
            self.patience.turns = 0;
            clock.skip_to(at);
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn disarm(&mut self) {
        if let Some((clock, key)) = self.armed.take() {
            let mut state = clock.state();
            let disarmed = state.timers.remove(&key);
            state.happens();
            drop(state);
            // The waker is anybody's code, and is dropped without the lock.
            drop(disarmed);
        }
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        self.disarm();
    }
}
