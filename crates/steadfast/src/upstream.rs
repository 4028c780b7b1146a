//! The shared state of one upstream: its policies behind one mutex, taken at admission and at settlement, never across
//! an await. Tasks are woken and events delivered after it was let go.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use steadfast_policy::breaker::{BreakerConfig, BreakerSnapshot, Permit};
use steadfast_policy::budget::BudgetConfig;
use steadfast_policy::line::{LineConfig, Slot};
use steadfast_policy::retry::RetryRules;
use steadfast_policy::{Time, Verdict};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::event::{Event, EventHook};
use crate::park::Bell;
use crate::policies::{Policies, Untold};
use crate::snapshot::Snapshot;
#[cfg(feature = "metrics")]
use crate::telemetry::metrics::{self, Meter};
#[cfg(feature = "otel")]
use crate::telemetry::otel;
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
    /// Whether it is one policy alone, of a stack that is seen as a whole.
    pub(crate) is_part: bool,
    /// What all guards of its family are called, if it is one of several.
    #[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "only spans show it"))]
    pub(crate) family: Option<Arc<str>>,
}

/// One upstream or dependency, shared by every clone of its client or guard.
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) clock: Clock,
    pub(crate) events: EventHook,
    /// Whether it is one policy alone, whose calls are no spans of their own.
    pub(crate) is_part: bool,
    /// What all guards of its family are called, if it is one of several: a key may come from outside, and is told to no
    /// backend of traces.
    #[cfg(feature = "otel")]
    family: Option<Arc<str>>,
    #[cfg(feature = "otel")]
    pub(crate) otel: otel::Source,
    policies: Apart<Mutex<Policies>>,
    last_ended: Notify,
}

/// Shares no line of the processor's cache with anything else: what is only read stays with every thread that reads it.
#[repr(align(128))]
struct Apart<T>(T);

impl Upstream {
    pub(crate) fn new(name: Arc<str>, setup: Setup, clock: Clock, events: EventHook) -> Self {
        let is_part = setup.is_part;
        #[cfg(feature = "otel")]
        let family = setup.family.clone();
        let policies = Apart(Mutex::new(Policies::new(setup, &clock)));
        Self {
            name,
            clock,
            events,
            is_part,
            #[cfg(feature = "otel")]
            family,
            #[cfg(feature = "otel")]
            otel: otel::Source::new(),
            policies,
            last_ended: Notify::new(),
        }
    }

    /// What spans call it.
    #[cfg(feature = "otel")]
    pub(crate) fn shown_as(&self) -> &str {
        self.family.as_deref().unwrap_or(&self.name)
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Policies> {
        self.policies.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `decide` change the policies; wakes whoever's turn has come and tells of transitions once the lock is free.
    #[inline]
    pub(crate) fn with<R>(&self, decide: impl FnOnce(&mut Policies) -> R) -> R {
        let mut policies = self.lock();
        let result = decide(&mut policies);
        if policies.has_news() {
            let untold = policies.news();
            drop(policies);
            self.tell(untold);
        }
        result
    }

    /// The first half of [`with`](Self::with), for one who holds a lock of his own: hooks are told outside of every lock.
    pub(crate) fn decide<R>(&self, decide: impl FnOnce(&mut Policies) -> R) -> (R, Untold) {
        let mut policies = self.lock();
        let result = decide(&mut policies);
        (result, policies.news())
    }

    /// The second half.
    #[cold]
    pub(crate) fn tell(&self, untold: Untold) {
        untold.wakers.into_iter().for_each(Waker::wake);
        for transition in untold.transitions {
            self.events.emit(|| Event::Transition { upstream: Arc::clone(&self.name), transition });
        }
        if untold.all_ended {
            self.last_ended.notify_waiters();
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
            closed: policies.is_closed(),
        }
    }

    /// Whether nothing that matters would be forgotten with this upstream; `spent` says so of the breaker.
    pub(crate) fn is_at_rest(&self, spent: impl FnOnce(&BreakerSnapshot) -> bool) -> bool {
        let now = self.clock.now();
        let policies = self.lock();
        let is_idle = !policies.is_any_running() && policies.line.is_at_rest(now);
        is_idle && spent(&policies.breaker.snapshot(now))
    }

    /// Opens the breaker until it is reset.
    pub(crate) fn force_open(&self) {
        let now = self.clock.now();
        self.with(|policies| policies.breaker.force_open(now));
    }

    /// Closes it, and lets it ignore every verdict, until it is reset.
    pub(crate) fn force_close(&self) {
        let now = self.clock.now();
        self.with(|policies| policies.breaker.force_close(now));
    }

    /// A closed breaker that has seen nothing.
    pub(crate) fn reset_breaker(&self) {
        let now = self.clock.now();
        self.with(|policies| policies.breaker.reset(now));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed()
    }

    /// From here on every new call ends as closed. Returns the latest deadline that a running call can have.
    pub(crate) fn refuse_new_calls(&self) -> Time {
        let longest_call = self.lock().close();
        self.clock.now() + longest_call
    }

    /// Calls may from here on last as long as this.
    pub(crate) fn allow_calls_of(&self, total_timeout: Duration) {
        self.lock().allow_calls_of(total_timeout);
    }

    /// Waits until the running calls have ended, at the longest until `limit`: a call whose future is kept and not polled
    /// never ends. To be called once new calls are refused.
    ///
    /// Cancel safe: dropping the future only forgets the wait.
    pub(crate) async fn ended(&self, limit: Time, bell: Option<&Bell>) {
        let all_ended = async {
            loop {
                // Made before the question, so that an end in between is heard of.
                let ended = self.last_ended.notified();
                if !self.lock().is_any_running() {
                    return;
                }
                ended.await;
            }
        };
        timer::until(pin!(all_ended), pin!(Timer::with(bell)), &self.clock, limit).await;
    }
}

/// Guards and layers, whose limits stay as they were built.
#[cfg(feature = "metrics")]
impl metrics::Observed for Upstream {
    fn meter(&self) -> Option<&Meter> {
        self.events.meter()
    }

    fn snapshot(&self) -> Snapshot {
        Self::snapshot(self)
    }

    fn total_timeout(&self) -> Duration {
        self.lock().longest_call()
    }
}

/// What a response whose body is still to come keeps of its attempt.
pub(crate) type Kept = (Slot, Option<Permit>);

/// What an attempt holds on to while its response is still being read: the slot, the permit whose verdict is not known
/// yet, and the call's place among the running ones. Dropping it gives all of it back, and is no verdict (7.6).
pub(crate) struct Held {
    upstream: Arc<Upstream>,
    /// Taken when everything is given back.
    slot: Option<Slot>,
    permit: Option<Permit>,
    /// What the head said, and what counts if the body comes whole.
    at_end: Option<Verdict>,
    /// When the call must be over.
    deadline: Time,
}

impl Held {
    /// It has the place among the running ones that its call had.
    pub(crate) fn new(upstream: &Arc<Upstream>, (slot, permit): Kept, at_end: Option<Verdict>, deadline: Time) -> Self {
        Self { upstream: Arc::clone(upstream), slot: Some(slot), permit, at_end, deadline }
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
        let Some(slot) = self.slot.take() else { return };
        let permit = self.permit.take();
        let now = self.upstream.clock.now();
        self.upstream.with(|policies| {
            policies.settle(now, permit, verdict);
            policies.line.release(now, slot);
            policies.end();
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.settle(None);
    }
}
