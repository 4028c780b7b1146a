//! Whether the upstream is called at all: the circuit breaker.
//!
//! Closed, every attempt may go, and its verdict is counted. Two rules open it. The streak rule asks for at least
//! [`failures`](BreakerConfig::failures) failures in a row, and for a streak that neither noise nor a blip explains:
//! its reasons are in `streak.rs`. The rate rule asks for a share of failures among enough attempts in a window; it is
//! asked after successes too, as a success can be the attempt that makes them enough.
//!
//! Open, every call is refused with what is left of the cool-down. At its end, which is inclusive, the next call that
//! asks becomes the one probe, and the state half-open. Its success closes, its failure opens again for a full
//! cool-down from that moment. A probe that was cancelled gives its place to the next call, and one that has taken
//! longer than its lease loses it: there is no way to stay half-open for good. (Once the lease is over, a success no
//! longer closes. A failure still opens, unless another call has the place by then: the probe of a hung upstream is cut
//! by its call's deadline, just when the lease is over.)
//!
//! Invariants:
//! - A change of state, or of settings, starts a new generation with empty counts. A permit of an older one decides
//!   nothing.
//! - At most one probe whose lease runs.
//! - Nothing changes by itself or by being read: the state is `Open` until a call takes the probe.
//! - The latest time ever seen is now. An earlier one means that no time has passed.
//!
//! Limits: state is that of one process. A fresh breaker opens at exactly `failures` in a row, so that heavy noise can
//! open it once just after a start. An upstream that fails between half and nine tenths of the time opens late.
//!
//! ```
//! use std::time::Duration;
//! use steadfast_policy::breaker::{Breaker, BreakerConfig, Rejection, State};
//! use steadfast_policy::{Time, Verdict};
//!
//! let mut breaker = Breaker::new(BreakerConfig { failures: 3, ..BreakerConfig::default() });
//! let now = Time::from_secs(100);
//! for _ in 0..3 {
//!     let permit = breaker.try_acquire(now)?;
//!     breaker.record(now, permit, Verdict::Failure);
//! }
//! assert_eq!(breaker.check(now), Err(Rejection { retry_after: Some(Duration::from_secs(15)) }));
//!
//! let later = now + Duration::from_secs(15);
//! let probe = breaker.try_acquire(later)?;
//! breaker.record(later, probe, Verdict::Success);
//! assert_eq!(breaker.state(later), State::Closed);
//! # Ok::<(), Rejection>(())
//! ```

mod config;
mod cool_down;
mod reconfigure;
mod report;
mod streak;
mod window;

use std::time::Duration;

pub use self::config::BreakerConfig;
pub use self::report::{BreakerSnapshot, Opened, Permit, Rejection, State, Transition, Why};

use self::config::Rules;
use self::cool_down::CoolDown;
use self::report::Events;
use self::streak::Streak;
use self::window::Window;
use crate::{Time, Verdict};

/// The shortest time that a caller who meets a probe in flight is told to wait, so that nobody is invited to spin.
const SHORTEST_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Where the machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    /// A probe may go at `until`.
    Open {
        until: Time,
    },
    /// `lease`: until when the probe in flight holds its place; `None` when there is none.
    HalfOpen {
        lease: Option<Time>,
    },
    ForcedOpen,
    ForcedClosed,
}

impl Phase {
    fn state(self) -> State {
        match self {
            Self::Closed | Self::ForcedClosed => State::Closed,
            Self::Open { .. } | Self::ForcedOpen => State::Open,
            Self::HalfOpen { .. } => State::HalfOpen,
        }
    }

    fn is_forced(self) -> bool {
        matches!(self, Self::ForcedOpen | Self::ForcedClosed)
    }
}

/// The circuit breaker of one upstream.
// In this order in memory: first what every attempt writes, then what it reads. Threads that share a breaker hand the
// memory that is written from one to the other, 64 bytes at a time.
#[derive(Debug)]
#[repr(C)]
pub struct Breaker {
    latest: Time,
    streak: Streak,
    window: Window,
    phase: Phase,
    generation: u64,
    rules: Rules,
    events: Events,
    probe_lease: Duration,
    cool_down: CoolDown,
    opened_with: Option<Opened>,
    late_verdicts: u64,
}

impl Breaker {
    /// A closed breaker that has seen nothing.
    pub fn new(config: BreakerConfig) -> Self {
        let rules = Rules::new(&config);
        Self {
            window: Window::new(rules.bucket_nanos()),
            rules,
            probe_lease: config.probe_lease,
            cool_down: CoolDown::new(&config),
            phase: Phase::Closed,
            generation: 0,
            streak: Streak::default(),
            opened_with: None,
            latest: Time::ZERO,
            late_verdicts: 0,
            events: Events::default(),
        }
    }

    /// Whether [`try_acquire`](Self::try_acquire) would let a call through now. Changes nothing.
    ///
    /// # Errors
    /// The [`Rejection`] that it would be refused with.
    #[inline]
    pub fn check(&self, now: Time) -> Result<(), Rejection> {
        if self.phase == Phase::Closed { Ok(()) } else { self.check_in_full(now) }
    }

    fn check_in_full(&self, now: Time) -> Result<(), Rejection> {
        let now = now.max(self.latest);
        let retry_after = match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::HalfOpen { lease: None } => return Ok(()),
            Phase::ForcedOpen => None,
            Phase::Open { until } if now < until => Some(now.until(until)),
            Phase::HalfOpen { lease: Some(until) } if now < until => {
                Some(now.until(until).min(self.cool_down.current()).max(SHORTEST_RETRY_AFTER))
            }
            Phase::Open { .. } | Phase::HalfOpen { .. } => return Ok(()),
        };
        Err(Rejection { retry_after })
    }

    /// Whether the breaker is open now and, should nothing happen, still will be at `at`. A retry that would start then
    /// is not worth its wait. Half-open is not open: the probe's verdict may come any moment.
    pub fn would_refuse_at(&self, now: Time, at: Time) -> bool {
        match self.phase {
            Phase::ForcedOpen => true,
            Phase::Open { until } => at.max(now).max(self.latest) < until,
            Phase::Closed | Phase::ForcedClosed | Phase::HalfOpen { .. } => false,
        }
    }

    /// Asks for leave to send one attempt. To be called last, at the moment of sending.
    ///
    /// # Errors
    /// A [`Rejection`] when the breaker is open, or half-open with its probe in flight.
    #[inline]
    pub fn try_acquire(&mut self, now: Time) -> Result<Permit, Rejection> {
        let now = self.tick(now);
        if self.phase == Phase::Closed {
            return Ok(Permit { generation: self.generation, probe: false });
        }
        self.try_acquire_in_full(now)
    }

    fn try_acquire_in_full(&mut self, now: Time) -> Result<Permit, Rejection> {
        self.check(now)?;
        let probe = match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::ForcedOpen => false,
            Phase::Open { .. } => {
                self.enter(now, Phase::HalfOpen { lease: None }, Why::CoolDownOver);
                true
            }
            Phase::HalfOpen { lease } => {
                // A probe that outlived its lease: whatever it brings home now is of an older generation.
                if lease.is_some() {
                    self.generation += 1;
                }
                true
            }
        };
        if probe {
            self.phase = Phase::HalfOpen { lease: Some(now + self.probe_lease) };
        }
        Ok(Permit { generation: self.generation, probe })
    }

    /// Gives a permit back with what its attempt told. A permit of an older generation is ignored.
    #[inline]
    pub fn record(&mut self, now: Time, permit: Permit, verdict: Verdict) {
        let now = self.tick(now);
        if self.phase == Phase::Closed && permit.generation == self.generation && verdict == Verdict::Success {
            self.count_successes(now, 1);
        } else {
            self.record_in_full(now, permit, verdict);
        }
    }

    fn record_in_full(&mut self, now: Time, permit: Permit, verdict: Verdict) {
        if permit.generation != self.generation {
            self.late_verdicts += 1;
            return;
        }
        match self.phase {
            Phase::Closed => match verdict {
                Verdict::Success => self.count_successes(now, 1),
                Verdict::Failure => self.count_failure(now, false),
                Verdict::Timeout => self.count_failure(now, true),
                Verdict::Paced => {}
            },
            Phase::HalfOpen { lease: Some(until) } => match verdict {
                Verdict::Success | Verdict::Paced => self.probe_succeeded(now, until),
                Verdict::Failure | Verdict::Timeout => {
                    let cool_down = self.cool_down.reopens();
                    self.open(now, cool_down, Why::ProbeFailed);
                }
            },
            // Forced closed ignores verdicts; in the other states no permit of this generation is out.
            Phase::ForcedClosed | Phase::ForcedOpen | Phase::Open { .. } | Phase::HalfOpen { lease: None } => {}
        }
    }

    /// Gives a permit back without a verdict: the attempt was never sent, or its caller went away. A probe's place is
    /// free again at once. A permit of an older generation is ignored.
    pub fn cancel(&mut self, now: Time, permit: Permit) {
        self.tick(now);
        if let Phase::HalfOpen { lease } = &mut self.phase
            && permit.generation == self.generation
        {
            *lease = None;
        }
    }

    /// Records `n` successes of attempts admitted in this generation: the same as `n` times
    /// [`record`](Self::record), in one step. Ignored unless closed.
    pub fn record_successes(&mut self, now: Time, n: u32) {
        let now = self.tick(now);
        if n > 0 && self.phase == Phase::Closed {
            self.count_successes(now, u64::from(n));
        }
    }

    /// Refuses every call, without a `retry_after`, until [`reset`](Self::reset) or [`force_close`](Self::force_close).
    pub fn force_open(&mut self, now: Time) {
        self.force(now, Phase::ForcedOpen);
    }

    /// Lets every call through and ignores what it tells, until [`reset`](Self::reset) or
    /// [`force_open`](Self::force_open).
    pub fn force_close(&mut self, now: Time) {
        self.force(now, Phase::ForcedClosed);
    }

    /// Back to closed, with nothing remembered but the time.
    pub fn reset(&mut self, now: Time) {
        let now = self.tick(now);
        self.cool_down.reset();
        self.opened_with = None;
        self.enter(now, Phase::Closed, Why::Reset);
    }

    /// The oldest transition that has not been asked for yet. At most 16 are kept.
    pub fn poll_event(&mut self) -> Option<Transition> {
        self.events.pop()
    }

    /// Whether [`poll_event`](Self::poll_event) would tell of one.
    #[inline]
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// The state: `Open` until a probe has been taken, even when the cool-down is over, so that it never changes by
    /// being looked at. [`snapshot`](Self::snapshot) tells the two apart.
    pub fn state(&self, _now: Time) -> State {
        self.phase.state()
    }

    /// Everything there is to know, as plain data. Changes nothing.
    pub fn snapshot(&self, now: Time) -> BreakerSnapshot {
        let now = now.max(self.latest);
        let sums = self.window.sums_at(now);
        let check = self.check(now);
        BreakerSnapshot {
            state: self.phase.state(),
            forced: self.phase.is_forced(),
            streak: self.streak.length(),
            calls: sums.calls,
            failures: sums.failures,
            opened_with: self.opened_with,
            retry_after: check.err().and_then(|rejection| rejection.retry_after),
            ready_to_probe: check.is_ok() && self.phase.state() != State::Closed,
            generation: self.generation,
            late_verdicts: self.late_verdicts,
        }
    }

    /// The time to go by: never earlier than before.
    #[inline]
    fn tick(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now);
        self.latest
    }

    #[inline]
    fn count_successes(&mut self, now: Time, n: u64) {
        self.window.advance(now);
        let before = self.window.sums();
        // More successes only lower the share, so the one that makes the calls enough is the only one that can open;
        // those after it would have been of an older generation.
        let due = self.rules.successes_until_asked(before.calls);
        let opens = due <= n && self.rules.rate_opens(before.calls + due, before.failures);
        let n = if opens { due } else { n };
        self.window.add_successes(n, self.streak.length());
        self.streak.succeeded(n);
        if opens {
            self.trip(now, Why::Rate);
        }
    }

    fn count_failure(&mut self, now: Time, timeout: bool) {
        self.window.advance(now);
        self.window.add_failure();
        self.streak.failed(timeout);
        let sums = self.window.sums();
        // The ring is read only when a streak is long enough to matter.
        if self.streak.is_due(&self.rules)
            && self.streak.is_outage(&self.rules, self.window.longest_recovered(), sums.calls - sums.failures)
        {
            self.trip(now, Why::Streak);
        } else if self.rules.rate_opens(sums.calls, sums.failures) {
            self.trip(now, Why::Rate);
        }
    }

    /// A rule opens the breaker.
    #[cold]
    fn trip(&mut self, now: Time, why: Why) {
        self.remember_opening(now, why);
        let cool_down = self.cool_down.opens(now);
        self.open(now, cool_down, why);
    }

    fn open(&mut self, now: Time, cool_down: Duration, why: Why) {
        self.enter(now, Phase::Open { until: now + cool_down }, why);
    }

    /// The probe got an answer. One older than its lease proves nothing, as no call would have waited for it: its place
    /// is free. (A failure that late still counts: it is what the probe of a hung upstream looks like, cut by its
    /// deadline.)
    fn probe_succeeded(&mut self, now: Time, lease: Time) {
        if now > lease {
            self.late_verdicts += 1;
            self.phase = Phase::HalfOpen { lease: None };
            return;
        }
        self.cool_down.closed(now);
        self.opened_with = None;
        self.enter(now, Phase::Closed, Why::ProbeSucceeded);
    }

    fn force(&mut self, now: Time, phase: Phase) {
        let now = self.tick(now);
        if self.phase == phase {
            return;
        }
        if phase == Phase::ForcedOpen {
            self.remember_opening(now, Why::Forced);
        } else {
            self.opened_with = None;
        }
        self.enter(now, phase, Why::Forced);
    }

    /// Keeps the counts with which the breaker leaves `Closed`; while it has not closed again, those stay.
    fn remember_opening(&mut self, now: Time, why: Why) {
        let sums = self.window.sums_at(now);
        let streak = self.streak.length();
        self.opened_with.get_or_insert(Opened { streak, calls: sums.calls, failures: sums.failures, why });
    }

    /// Every transition goes through here: a new generation, with empty counts.
    fn enter(&mut self, now: Time, phase: Phase, why: Why) {
        let (old, to) = (self.phase, phase.state());
        self.phase = phase;
        self.generation += 1;
        self.window.clear();
        self.streak = Streak::default();
        if old.state() != to || old.is_forced() != phase.is_forced() {
            self.events.push(Transition { from: old.state(), to, why, at: now });
        }
    }
}
