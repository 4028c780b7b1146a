//! The state machines of one upstream, as its mutex holds them: what is decided in one turn of that lock.
//!
//! A call takes two turns, so that threads which share an upstream meet as seldom as they can: one counts the call as
//! running and admits its first attempt, one settles the last attempt, decides, and counts the call as over. Nearly every
//! turn changes nothing that others must be told; whether it did is one question ([`Policies::has_news`]).

use std::collections::HashMap;
use std::task::Waker;
use std::time::Duration;

use steadfast_policy::breaker::{Breaker, Permit, Transition};
use steadfast_policy::budget::Budget;
use steadfast_policy::line::{Entry, Line, LineConfig, Missing, Refusal, Slot, Ticket};
use steadfast_policy::{Time, Verdict};

use crate::clock::Clock;
use crate::error::ErrorKind;
use crate::report::Ended;
#[cfg(feature = "testing")]
use crate::testing::LineSetting;
use crate::upstream::Setup;

/// The state machines, who waits for them, and how many calls are under way.
// In this order in memory: first what each turn of the lock writes, which one thread hands to the other 64 bytes at a time.
// The lock lies apart from it: who waits for it and looks at it again and again must not take that away.
#[repr(C, align(64))]
pub(crate) struct Policies {
    /// Calls that have begun and not ended; what a response holds on to while its body is read counts as one.
    running: usize,
    random: fastrand::Rng,
    pub(crate) breaker: Breaker,
    pub(crate) line: Line,
    pub(crate) budget: Budget,
    closed: bool,
    /// A closed upstream's last call has ended, and nobody was told yet.
    all_ended: bool,
    /// The longest time that any call may have had.
    longest_call: Duration,
    waiters: HashMap<Ticket, Waker>,
    #[cfg(feature = "testing")]
    line_setting: LineSetting,
}

/// What a change of the policies means to others, who do not know of it yet.
#[must_use = "waiters wait and hooks hear nothing until they are told"]
pub(crate) struct Untold {
    pub(crate) wakers: Vec<Waker>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) all_ended: bool,
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
    #[cfg_attr(not(feature = "testing"), expect(unused_variables, reason = "a test's clock may switch limits off"))]
    pub(crate) fn new(setup: Setup, clock: &Clock) -> Self {
        #[cfg(steadfast_planted)]
        let setup = crate::planted::setup(setup);
        Self {
            running: 0,
            closed: false,
            all_ended: false,
            longest_call: Duration::ZERO,
            random: setup.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            breaker: Breaker::new(setup.breaker),
            budget: Budget::new(setup.budget),
            #[cfg(feature = "testing")]
            line_setting: LineSetting::new(setup.line, clock),
            line: Line::new(setup.line),
            waiters: HashMap::new(),
        }
    }

    /// Begins a call and asks to start its first attempt. A call that is refused has not begun.
    #[inline(always)]
    pub(crate) fn begin(&mut self, now: Time, who: Entrant<'_>) -> Result<Step, Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        let step = self.enter(now, who)?;
        self.running += 1;
        Ok(step)
    }

    /// Work begins that may outlive its call, and counts as one.
    pub(crate) fn begin_work(&mut self) {
        self.running += 1;
    }

    /// A call is over.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.running -= 1;
        self.all_ended |= self.closed && self.running == 0;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// From here on every new call ends as closed. Returns the longest that a running one can last.
    pub(crate) fn close(&mut self) -> Duration {
        self.closed = true;
        self.longest_call
    }

    /// Calls may from here on last as long as this.
    pub(crate) fn allow_calls_of(&mut self, total_timeout: Duration) {
        self.longest_call = self.longest_call.max(total_timeout);
    }

    /// The longest that any call may have had.
    #[cfg(feature = "metrics")]
    pub(crate) fn longest_call(&self) -> Duration {
        self.longest_call
    }

    pub(crate) fn is_any_running(&self) -> bool {
        self.running > 0
    }

    /// Whether there is anything to tell, which is rare.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.all_ended || self.line.has_wake() || self.breaker.has_event()
    }

    /// What there is to tell, once.
    #[cold]
    pub(crate) fn news(&mut self) -> Untold {
        let mut untold = Untold { wakers: Vec::new(), transitions: Vec::new(), all_ended: self.all_ended };
        while let Some(ticket) = self.line.next_wake() {
            untold.wakers.extend(self.waiters.get(&ticket).cloned());
        }
        #[cfg(steadfast_planted)]
        untold.wakers.retain(|_| !crate::planted::is(crate::planted::Planted::SleepingWaiter));
        while let Some(transition) = self.breaker.poll_event() {
            untold.transitions.push(transition);
        }
        self.all_ended = false;
        untold
    }

    /// A fresh random number.
    #[inline]
    pub(crate) fn random(&mut self) -> u64 {
        self.random.u64(..)
    }

    /// Asks to start an attempt: the breaker's refusal first, so that a refused call spends no place, then the line,
    /// and the permit last.
    #[inline(always)]
    pub(crate) fn enter(&mut self, now: Time, who: Entrant<'_>) -> Result<Step, Refused> {
        #[cfg(feature = "testing")]
        self.line_setting.follow(now, &mut self.line);
        self.breaker.check(now).map_err(|refused| Refused::CircuitOpen { retry_after: refused.retry_after })?;
        let entry = self.line.enter(now, who.key, who.deadline);
        self.step(now, entry, who.first)
    }

    /// Other limits for the line.
    pub(crate) fn reconfigure_line(&mut self, now: Time, config: LineConfig) {
        #[cfg(feature = "testing")]
        self.line_setting.change(now, &mut self.line, config);
        #[cfg(not(feature = "testing"))]
        self.line.reconfigure(now, config);
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
    #[inline]
    pub(crate) fn settle(&mut self, now: Time, permit: Option<Permit>, verdict: Option<Verdict>) {
        #[cfg(steadfast_planted)]
        let permit = permit.map(|permit| crate::planted::renewed(&mut self.breaker, now, permit));
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

    #[inline(always)]
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
