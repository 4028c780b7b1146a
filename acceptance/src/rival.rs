//! The circuit breaker for comparison: five failures in a row, whatever they look like. No shipped code has this rule; it
//! is here because a check that it passes would be too kind.
//!
//! It opens at [`FAILURES`] failures in a row, or where of at least [`MINIMUM_CALLS`] attempts in 30 whole-second buckets
//! half failed, asked after successes too. Open for [`COOL_DOWN`], then one probe, whose success closes it and whose
//! failure opens it anew. A verdict from before a change of state counts for nothing.
//!
//! It stands between a shipped client whose own breaker is off and its transport, so that budget, backoff and timeouts are
//! the shipped ones. A refusal is a fault of our own side with nothing sent: the client does not repeat it, and takes back
//! what a retry cost, as it does where its own breaker refuses. An attempt that is dropped was cut by its timeout, and has
//! failed: the scenarios cancel no call, and no call comes near its deadline.
//!
//! Limits: a call that was refused counts for the budget's ceiling, as the client believes that it was sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::client::BuildError;
use steadfast::policy::Time;
use steadfast::policy::breaker::{State, Transition, Why};
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, TransportError};
use steadfast::{Clock, Event, Fault, Sent, ServiceClient};
use steadfast_sim::outage::{Link, Member};

const FAILURES: u32 = 5;
const MINIMUM_CALLS: u64 = 20;
const COOL_DOWN: Duration = Duration::from_secs(15);
const BUCKETS: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Open { until: Time },
    HalfOpen { probing: bool },
}

/// Leave for one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Permit {
    generation: u64,
}

/// The rule.
#[derive(Debug)]
struct PlainStreak {
    phase: Phase,
    generation: u64,
    streak: u32,
    /// Attempts and failures of each of the last 30 seconds; the newest is that of `second`.
    buckets: [(u64, u64); BUCKETS],
    second: u64,
}

impl PlainStreak {
    fn new() -> Self {
        Self { phase: Phase::Closed, generation: 0, streak: 0, buckets: [(0, 0); BUCKETS], second: 0 }
    }

    /// Leave for an attempt, and the change that it made.
    fn try_acquire(&mut self, now: Time) -> (Option<Permit>, Option<Transition>) {
        let change = match self.phase {
            Phase::Open { until } if now >= until => {
                Some(self.go(now, Phase::HalfOpen { probing: false }, Why::CoolDownOver))
            }
            _ => None,
        };
        let permit = match self.phase {
            Phase::Closed => Some(Permit { generation: self.generation }),
            Phase::HalfOpen { probing: false } => {
                self.phase = Phase::HalfOpen { probing: true };
                Some(Permit { generation: self.generation })
            }
            Phase::Open { .. } | Phase::HalfOpen { probing: true } => None,
        };
        (permit, change)
    }

    /// What became of an attempt, and the change that it made.
    fn record(&mut self, now: Time, permit: Permit, failed: bool) -> Option<Transition> {
        if permit.generation != self.generation {
            return None;
        }
        let open = Phase::Open { until: now + COOL_DOWN };
        match (self.phase, failed) {
            (Phase::Open { .. }, _) => return None,
            (Phase::HalfOpen { .. }, true) => return Some(self.go(now, open, Why::ProbeFailed)),
            (Phase::HalfOpen { .. }, false) => return Some(self.go(now, Phase::Closed, Why::ProbeSucceeded)),
            (Phase::Closed, _) => {}
        }
        let (calls, failures) = self.count(now, failed);
        self.streak = if failed { self.streak + 1 } else { 0 };
        if self.streak >= FAILURES {
            Some(self.go(now, open, Why::Streak))
        } else if calls >= MINIMUM_CALLS && 2 * failures >= calls {
            Some(self.go(now, open, Why::Rate))
        } else {
            None
        }
    }

    /// Counts an attempt; the sums over the window.
    fn count(&mut self, now: Time, failed: bool) -> (u64, u64) {
        let second = now.since(Time::ZERO).as_secs().max(self.second);
        let place = |second: u64| (second % BUCKETS as u64) as usize;
        for step in 1..=(second - self.second).min(BUCKETS as u64) {
            self.buckets[place(self.second + step)] = (0, 0);
        }
        self.second = second;
        let bucket = &mut self.buckets[place(second)];
        *bucket = (bucket.0 + 1, bucket.1 + u64::from(failed));
        self.buckets.iter().fold((0, 0), |sum, bucket| (sum.0 + bucket.0, sum.1 + bucket.1))
    }

    fn go(&mut self, now: Time, phase: Phase, why: Why) -> Transition {
        let state = |phase| match phase {
            Phase::Closed => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
        };
        let transition = Transition { from: state(self.phase), to: state(phase), why, at: now };
        (self.phase, self.generation, self.streak) = (phase, self.generation + 1, 0);
        self.buckets = [(0, 0); BUCKETS];
        transition
    }
}

/// A client behind the rule.
pub(crate) fn client(member: Member<'_>) -> Result<ServiceClient, BuildError> {
    let guarded = Guarded {
        link: member.link(member.settings),
        clock: member.clock(),
        rule: Mutex::new(PlainStreak::new()),
        hook: member.hook(),
        upstream: Arc::from("upstream"),
    };
    member.builder().transport(guarded).build()
}

/// The way to the upstream, with the rule in front of it.
struct Guarded {
    link: Link,
    clock: Clock,
    rule: Mutex<PlainStreak>,
    hook: Arc<dyn Fn(&Event) + Send + Sync>,
    upstream: Arc<str>,
}

impl Guarded {
    fn rule(&self) -> MutexGuard<'_, PlainStreak> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_acquire(&self) -> Option<Permit> {
        let (permit, change) = self.rule().try_acquire(self.clock.now());
        self.tell(change);
        permit
    }

    fn record(&self, permit: Permit, failed: bool) {
        let change = self.rule().record(self.clock.now(), permit, failed);
        self.tell(change);
    }

    fn tell(&self, change: Option<Transition>) {
        if let Some(transition) = change {
            (self.hook)(&Event::Transition { upstream: Arc::clone(&self.upstream), transition });
        }
    }
}

impl Exchange for Guarded {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async move {
            let Some(permit) = self.try_acquire() else {
                return Err(TransportError::new(Fault::LocalProtocol, Sent::No));
            };
            let mut attempt = Attempt { guarded: self, permit, failed: true };
            let result = self.link.exchange(outgoing, progress).await;
            attempt.failed = match &result {
                Ok(response) => matches!(response.status().as_u16(), 502..=504),
                Err(_) => true,
            };
            result
        })
    }
}

/// An attempt under way. Its verdict is given when it goes, whether it ended or was cut.
struct Attempt<'a> {
    guarded: &'a Guarded,
    permit: Permit,
    failed: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.guarded.record(self.permit, self.failed);
    }
}

#[cfg(test)]
mod tests;
