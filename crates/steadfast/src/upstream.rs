//! The shared state of one upstream: its policies behind one mutex, taken at admission and at settlement, never across
//! an await. Tasks are woken and events delivered after it was let go.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use steadfast_policy::breaker::{Breaker, BreakerConfig, Permit, Transition};
use steadfast_policy::budget::{Budget, BudgetConfig};
use steadfast_policy::line::{Entry, Line, LineConfig, Missing, Refusal, Slot, Ticket};
use steadfast_policy::retry::RetryRules;
use steadfast_policy::{Time, Verdict};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::error::ErrorKind;
use crate::event::{Event, EventHook};
use crate::park::Alarm;
use crate::report::Ended;
use crate::snapshot::Snapshot;
use crate::timer::{self, Timer};

/// What the loop itself needs to know of the configuration. Each call keeps those it began with.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) total_timeout: Duration,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) timeout_evidence: Duration,
    pub(crate) retry: RetryRules,
}

/// How the policies of one upstream are set up.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) breaker: BreakerConfig,
    pub(crate) budget: BudgetConfig,
    pub(crate) line: LineConfig,
    pub(crate) seed: Option<u64>,
}

/// One upstream or dependency, shared by every clone of its client or guard.
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) clock: Clock,
    pub(crate) events: EventHook,
    policies: Mutex<Policies>,
    closed: AtomicBool,
    running: AtomicUsize,
    last_ended: Notify,
    /// The longest time that any call may have had, in nanoseconds.
    longest_call: AtomicU64,
}

/// The state machines, and who waits for them.
pub(crate) struct Policies {
    pub(crate) breaker: Breaker,
    pub(crate) budget: Budget,
    pub(crate) line: Line,
    random: fastrand::Rng,
    waiters: HashMap<Ticket, Waker>,
}

/// What a change of the policies means to others, who do not know of it yet.
#[must_use = "waiters wait and hooks hear nothing until they are told"]
pub(crate) struct Untold {
    wakers: Vec<Waker>,
    transitions: Vec<Transition>,
}

/// Who asks to start an attempt.
#[derive(Clone, Copy)]
pub(crate) struct Entrant<'a> {
    /// Whose rate limit.
    pub(crate) key: &'a str,
    /// When the call must be over.
    pub(crate) deadline: Time,
    /// Whether it is the call's first attempt, which the budget counts (3.1).
    pub(crate) first: bool,
}

/// Where an attempt stands on its way out.
pub(crate) enum Step {
    /// It may go now.
    Granted(Slot, Permit),
    /// It waits: for what, and until when at the latest before it asks again.
    Queued(Ticket, Time, Missing),
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    CircuitOpen { retry_after: Option<Duration> },
    BulkheadFull,
    RateLimited { retry_after: Duration },
    Deadline,
    Closed,
}

impl Refused {
    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Self::CircuitOpen { .. } => ErrorKind::CircuitOpen,
            Self::BulkheadFull => ErrorKind::BulkheadFull,
            Self::RateLimited { .. } => ErrorKind::RateLimited,
            Self::Deadline => ErrorKind::Timeout,
            Self::Closed => ErrorKind::Closed,
        }
    }

    pub(crate) fn ended(self) -> Ended {
        match self {
            Self::CircuitOpen { .. } => Ended::CircuitOpen,
            Self::BulkheadFull => Ended::BulkheadFull,
            Self::RateLimited { .. } => Ended::RateLimited,
            Self::Deadline => Ended::Deadline,
            Self::Closed => Ended::Closed,
        }
    }

    pub(crate) fn retry_after(self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_after } => retry_after,
            Self::RateLimited { retry_after } => Some(retry_after),
            Self::BulkheadFull | Self::Deadline | Self::Closed => None,
        }
    }
}

impl Policies {
    /// A fresh random number.
    pub(crate) fn random(&mut self) -> u64 {
        self.random.u64(..)
    }

    /// Asks to start an attempt: the breaker's refusal first, so that a refused call spends no place, then the line,
    /// and the permit last.
    pub(crate) fn enter(&mut self, now: Time, who: Entrant<'_>) -> Result<Step, Refused> {
        self.breaker.check(now).map_err(|refused| Refused::CircuitOpen { retry_after: refused.retry_after })?;
        let entry = self.line.enter(now, who.key, who.deadline);
        self.step(now, entry, who.first)
    }

    /// Asks again for a waiter; `waker` is called when its turn may have come.
    pub(crate) fn poll(&mut self, now: Time, ticket: Ticket, first: bool, waker: &Waker) -> Result<Step, Refused> {
        let entry = self.line.poll(now, ticket);
        let step = self.step(now, entry, first);
        match &step {
            Ok(Step::Queued(..)) => match self.waiters.get_mut(&ticket) {
                Some(known) => known.clone_from(waker),
                None => drop(self.waiters.insert(ticket, waker.clone())),
            },
            _ => drop(self.waiters.remove(&ticket)),
        }
        step
    }

    /// What became of a permit: its verdict, or none.
    pub(crate) fn settle(&mut self, now: Time, permit: Option<Permit>, verdict: Option<Verdict>) {
        match (permit, verdict) {
            (Some(permit), Some(verdict)) => self.breaker.record(now, permit, verdict),
            (Some(permit), None) => self.breaker.cancel(now, permit),
            (None, _) => {}
        }
    }

    /// A waiter goes away.
    pub(crate) fn leave(&mut self, now: Time, ticket: Ticket) {
        self.waiters.remove(&ticket);
        self.line.leave(now, ticket);
    }

    fn step(&mut self, now: Time, entry: Entry, first: bool) -> Result<Step, Refused> {
        match entry {
            Entry::Admitted(slot) => match self.breaker.try_acquire(now) {
                Ok(permit) => {
                    if first {
                        self.budget.call_started(now);
                    }
                    Ok(Step::Granted(slot, permit))
                }
                Err(refused) => {
                    self.line.undo_start(now, slot);
                    Err(Refused::CircuitOpen { retry_after: refused.retry_after })
                }
            },
            Entry::Queued(ticket, poll_at) => Ok(Step::Queued(ticket, poll_at, self.line.missing(ticket))),
            Entry::Refused(Refusal::BulkheadFull) => Err(Refused::BulkheadFull),
            Entry::Refused(Refusal::RateLimited { retry_after }) => Err(Refused::RateLimited { retry_after }),
            Entry::Refused(Refusal::Deadline) => Err(Refused::Deadline),
        }
    }
}

impl Upstream {
    pub(crate) fn new(name: Arc<str>, setup: Setup, clock: Clock, events: EventHook) -> Self {
        Self {
            name,
            clock,
            events,
            policies: Mutex::new(Policies {
                breaker: Breaker::new(setup.breaker),
                budget: Budget::new(setup.budget),
                line: Line::new(setup.line),
                random: setup.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
                waiters: HashMap::new(),
            }),
            closed: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            last_ended: Notify::new(),
            longest_call: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Policies> {
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `decide` change the policies; wakes whoever's turn has come and tells of transitions once the lock is free.
    pub(crate) fn with<R>(&self, decide: impl FnOnce(&mut Policies) -> R) -> R {
        let (result, untold) = self.decide(decide);
        self.tell(untold);
        result
    }

    /// The first half of [`with`](Self::with), for one who holds a lock of his own: hooks are told outside of every lock.
    pub(crate) fn decide<R>(&self, decide: impl FnOnce(&mut Policies) -> R) -> (R, Untold) {
        let mut untold = Untold { wakers: Vec::new(), transitions: Vec::new() };
        let mut policies = self.lock();
        let result = decide(&mut policies);
        while let Some(ticket) = policies.line.next_wake() {
            untold.wakers.extend(policies.waiters.get(&ticket).cloned());
        }
        while let Some(transition) = policies.breaker.poll_event() {
            untold.transitions.push(transition);
        }
        (result, untold)
    }

    /// The second half.
    pub(crate) fn tell(&self, untold: Untold) {
        untold.wakers.into_iter().for_each(Waker::wake);
        for transition in untold.transitions {
            self.events.emit(|| Event::Transition { upstream: Arc::clone(&self.name), transition });
        }
    }

    /// The state as it is, without changing it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.clock.now();
        let policies = self.lock();
        Snapshot {
            upstream: Arc::clone(&self.name),
            breaker: policies.breaker.snapshot(now),
            budget: policies.budget.snapshot(now),
            line: policies.line.snapshot(now),
            pool: None,
            closed: self.is_closed(),
        }
    }

    // `closed` and `running` are two words that two threads write and read crosswise: whoever ends the last call must see
    // that the upstream was closed, or whoever closes it must see that the call has ended. Only SeqCst promises that.

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// From here on every new call ends as closed. Returns the latest deadline that a running call can have.
    pub(crate) fn refuse_new_calls(&self) -> Time {
        self.closed.store(true, Ordering::SeqCst);
        self.clock.now() + Duration::from_nanos(self.longest_call.load(Ordering::SeqCst))
    }

    /// Calls may from here on last as long as this.
    pub(crate) fn allow_calls_of(&self, total_timeout: Duration) {
        let nanos = u64::try_from(total_timeout.as_nanos()).unwrap_or(u64::MAX);
        self.longest_call.fetch_max(nanos, Ordering::SeqCst);
    }

    /// Counts a call as running until the returned guard is dropped; `None` once the upstream was closed.
    pub(crate) fn begin_call(&self) -> Option<Running<'_>> {
        // Asked first, so that calls that are refused do not keep the count from reaching zero.
        if self.is_closed() {
            return None;
        }
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = Running(self);
        (!self.is_closed()).then_some(running)
    }

    /// Counts work that may outlive its call as running, until [`end_call`](Self::end_call). To be called by a call that is.
    pub(crate) fn begin_work(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end_call(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_closed() {
            self.last_ended.notify_waiters();
        }
    }

    /// Waits until the running calls have ended, at the longest until `limit`: a call whose future is kept and not polled
    /// never ends. To be called once new calls are refused.
    ///
    /// Cancel safe: dropping the future only forgets the wait.
    pub(crate) async fn ended(&self, limit: Time, alarm: Option<&Alarm>) {
        let all_ended = async {
            loop {
                let ended = self.last_ended.notified();
                if self.running.load(Ordering::SeqCst) == 0 {
                    return;
                }
                ended.await;
            }
        };
        timer::until(pin!(all_ended), pin!(Timer::with(alarm)), &self.clock, limit).await;
    }
}

/// A call that is running.
pub(crate) struct Running<'a>(&'a Upstream);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

/// What an attempt holds on to while its response is still being read: the slot, the permit whose verdict is not known
/// yet, and the call's place among the running ones. Dropping it gives all of it back, and is no verdict (7.6).
pub(crate) struct Held {
    upstream: Arc<Upstream>,
    slot: Option<Slot>,
    permit: Option<Permit>,
    /// What the head said, and what counts if the body comes whole.
    at_end: Option<Verdict>,
    /// When the call must be over.
    deadline: Time,
}

impl Held {
    /// To be made while the call itself still counts as running.
    pub(crate) fn new(
        upstream: &Arc<Upstream>,
        slot: Option<Slot>,
        permit: Option<Permit>,
        at_end: Option<Verdict>,
    ) -> Self {
        upstream.running.fetch_add(1, Ordering::SeqCst);
        Self { upstream: Arc::clone(upstream), slot, permit, at_end, deadline: Time::MAX }
    }

    /// The same, and when the call must be over.
    pub(crate) fn until(mut self, deadline: Time) -> Self {
        self.deadline = deadline;
        self
    }

    /// When the call must be over.
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// The body has come whole.
    pub(crate) fn complete(mut self) {
        let verdict = self.at_end;
        self.settle(verdict);
    }

    /// The body ended early, with this verdict.
    pub(crate) fn fail(mut self, verdict: Option<Verdict>) {
        self.settle(verdict);
    }

    fn settle(&mut self, verdict: Option<Verdict>) {
        let (slot, permit) = (self.slot.take(), self.permit.take());
        if slot.is_none() && permit.is_none() {
            return;
        }
        let now = self.upstream.clock.now();
        self.upstream.with(|policies| {
            policies.settle(now, permit, verdict);
            if let Some(slot) = slot {
                policies.line.release(now, slot);
            }
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.settle(None);
        self.upstream.end_call();
    }
}
