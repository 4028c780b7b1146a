//! The retry budget: whether a retry may be paid for.
//!
//! Retries repair single failures and turn an overload into an outage, so two limits stand before each one:
//!
//! * **The ceiling.** Over the last ten whole-second buckets, retries stay below
//!   `10 * min_per_second + ratio * calls`. It bounds the extra load that we can cause, whatever happens.
//! * **The efficacy gate.** Credit is counted in good answers. A good answer earns 1. A retry takes 8 (20 if it repairs
//!   a timeout) and gets it back if it works, so only retries that do not help cost anything. A slow answer takes 5. The
//!   bank holds 20 and a fifth of the window's calls. An empty bank means no retry, except a probe: one a minute after
//!   the last grant where a good answer has been seen since, else after about 4, 8, then 16 minutes.
//!
//! The ceiling alone lets a busy client keep a fifth more load on an upstream that is drowning, which is enough to hold
//! it under water. The gate closes where retries stop helping: above 30 % of independent fast failures, above 20 % of
//! timeouts, above one slow answer in six. Timeouts cost more, because each leaves work behind in the upstream's queue.
//!
//! The loop calls [`Budget::call_started`] when a call's first attempt is sent, [`Budget::first_done`] when that attempt
//! has ended, [`Budget::ask`] before the wait of a retry, and then exactly one of [`Budget::retry_done`] and
//! [`Budget::retry_unsent`] with the permit. A permit that is lost counts as a retry that failed.
//!
//! Invariants: credit is never negative, and never above the larger of 40 and the largest bank so far. A refusal and a
//! failed first attempt change no credit. A retry that is never sent is refunded, in the bank and under the ceiling.
//! All arithmetic is on integers and saturates; the cost of a call does not depend on how long the client was idle.
//!
//! Limits: the state is one client's, in one process. A fleet of clients with less than a call a second each still
//! pays one retry per client at the onset of an outage, as one failure does not tell a blip from an outage. A timeout
//! set so tight that one answer in six needs more than half of it closes the gate.

mod window;

use std::time::Duration;

use self::window::{BUCKETS, Window};
use crate::{Answer, Cause, Time};

/// What a good answer earns.
const EARN: i64 = 1;
/// What a slow answer takes.
const SLOW: i64 = 5;
/// The price of a retry after a fast failure.
const COST_FAST: i64 = 8;
/// The price of a retry after a timeout.
const COST_TIMEOUT: i64 = 20;
/// The credit of a new client: both default retries of its first call, even after timeouts. Lapses at the first answer.
const START: i64 = 40;
/// The bank of a silent client: one retry after a timeout, or two after fast failures.
const BASE: i64 = 20;
/// Calls in the window that enlarge the bank by one.
const PER: u64 = 5;
/// The longest wait for a probe once a good answer has been seen.
const REARM: Duration = Duration::from_secs(60);
/// The mean wait for the first probe, which doubles with each probe up to [`PROBE_MAX`].
const PROBE: Duration = Duration::from_secs(240);
const PROBE_MAX: Duration = Duration::from_secs(960);

/// The ceiling counts in millionths of a retry, so that no rounding can let through one more.
const MICROS: u64 = 1_000_000;

/// What the budget is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetConfig {
    /// Retries granted per call of the last ten seconds. Default 0.2. Resolution a millionth; may exceed 1, infinity is
    /// no limit; what is negative or not a number counts as 0.
    pub ratio: f64,
    /// Retries per second granted whatever the traffic, as a lump over ten seconds. Default 1. Bounds as for `ratio`.
    pub min_per_second: f64,
    /// Whether retries that do not help stop being paid for. Default true; false leaves the ceiling alone.
    pub gate: bool,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self { ratio: 0.2, min_per_second: 1.0, gate: true }
    }
}

/// Why a retry was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denied {
    /// There have been as many retries in the last ten seconds as the calls of that time allow.
    Ceiling,
    /// Retries have not been helping.
    Efficacy,
}

/// A retry that has been paid for: to be given back to the budget that granted it.
///
/// Losing it costs what a failed retry costs.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not given back counts as a retry that failed"]
pub struct RetryPermit {
    cost: i64,
    /// The second whose bucket counted the retry.
    second: u64,
}

/// The budget's state as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSnapshot {
    /// Calls started in the last ten seconds.
    pub requests: u64,
    /// Retries granted in the last ten seconds, less those that were never sent.
    pub retries: u64,
    /// Credit in the bank, in good answers. It decides nothing while the gate is off.
    pub credit: i64,
    /// What the bank holds at most once the next answer is in.
    pub capacity: i64,
    /// Retries that the ceiling would still grant now; `u64::MAX` where there is no ceiling.
    pub ceiling_left: u64,
}

/// The settings, in integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    ratio_micros: u64,
    floor_micros: u64,
    gate: bool,
}

impl Rule {
    fn new(config: BudgetConfig) -> Self {
        Self {
            ratio_micros: micros(config.ratio),
            floor_micros: micros(config.min_per_second * BUCKETS as f64),
            gate: config.gate,
        }
    }

    /// Millionths of retries that the ceiling grants for so many calls; `u64::MAX` is no limit.
    fn allowance(&self, calls: u64) -> u64 {
        self.floor_micros.saturating_add(self.ratio_micros.saturating_mul(calls))
    }
}

/// The retry budget of one upstream.
// In this order in memory, so that what every call writes lies in one stretch of 64 bytes; the window's own is first in it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Budget {
    /// The latest time that it was told; an earlier one counts as this.
    seen: Time,
    credit: i64,
    /// When an empty bank may grant one retry all the same.
    probe_at: Time,
    window: Window,
    last_grant: Time,
    probe_wait: Duration,
    rule: Rule,
}

impl Budget {
    /// A fresh budget with 40 credits and an empty window.
    pub fn new(config: BudgetConfig) -> Self {
        Self {
            rule: Rule::new(config),
            window: Window::default(),
            seen: Time::ZERO,
            credit: START,
            last_grant: Time::ZERO,
            probe_at: Time::ZERO,
            probe_wait: PROBE,
        }
    }

    /// Applies other settings from `now` on, and keeps the window, the credit, and when the next probe is due.
    ///
    /// A retry that is out is refunded what it cost, whatever a retry costs by then. While the gate is off answers are
    /// booked and retries are free, so what the bank holds then says little; turned on, the gate starts with that, but
    /// with no more than the bank holds at the present traffic, or a new client has. Turning it off and on gives nobody
    /// credit. If nothing differs, nothing happens.
    pub fn reconfigure(&mut self, now: Time, config: BudgetConfig) {
        let old = std::mem::replace(&mut self.rule, Rule::new(config));
        if old == self.rule {
            return;
        }
        self.observe(now);
        if self.rule.gate && !old.gate {
            self.credit = self.credit.min(self.most());
        }
    }

    /// The first attempt of a call is being sent. A call that was refused before that does not count.
    #[inline]
    pub fn call_started(&mut self, now: Time) {
        self.observe(now);
        self.window.add_call();
    }

    /// Asks for one retry, when it is decided and before its wait. `random` spreads the probes of a fleet of clients.
    ///
    /// # Errors
    ///
    /// [`Denied::Ceiling`] before [`Denied::Efficacy`]. A refusal changes nothing.
    pub fn ask(&mut self, now: Time, cause: Cause, random: u64) -> Result<RetryPermit, Denied> {
        let now = self.observe(now);
        if self.window.retries().saturating_mul(MICROS) >= self.rule.allowance(self.window.calls()) {
            return Err(Denied::Ceiling);
        }
        let cost = if self.rule.gate { self.pay(now, cause, random)? } else { 0 };
        self.window.add_retry();
        Ok(RetryPermit { cost, second: self.window.second() })
    }

    /// The first attempt of a call has ended.
    #[inline]
    pub fn first_done(&mut self, now: Time, answer: Answer) {
        self.settle(now, 0, answer);
    }

    /// A retry has ended. One that was dropped after it was sent ended as [`Answer::Failed`].
    pub fn retry_done(&mut self, now: Time, permit: RetryPermit, answer: Answer) {
        self.settle(now, permit.cost, answer);
    }

    /// A retry was never sent: it was cancelled, or another policy refused it. Its price is given back.
    pub fn retry_unsent(&mut self, now: Time, permit: RetryPermit) {
        self.observe(now);
        self.credit = self.credit.saturating_add(permit.cost).min(self.most());
        self.window.undo_retry(permit.second);
    }

    /// The state at `now`, without effect.
    pub fn snapshot(&self, now: Time) -> BudgetSnapshot {
        let (requests, retries) = self.window.sums_at(second(self.seen.max(now)));
        let ceiling_left = match self.rule.allowance(requests) {
            u64::MAX => u64::MAX,
            allowance => allowance.div_ceil(MICROS).saturating_sub(retries),
        };
        BudgetSnapshot { requests, retries, credit: self.credit, capacity: capacity(requests), ceiling_left }
    }

    /// Takes the price of one retry, out of turn if a probe is due.
    fn pay(&mut self, now: Time, cause: Cause, random: u64) -> Result<i64, Denied> {
        let cost = match cause {
            Cause::Fast => COST_FAST,
            Cause::Timeout => COST_TIMEOUT,
        };
        if self.credit < cost {
            if now < self.probe_at {
                return Err(Denied::Efficacy);
            }
            self.credit = cost;
            self.probe_wait = self.probe_wait.saturating_mul(2).min(PROBE_MAX);
        }
        self.credit -= cost;
        self.last_grant = now;
        self.probe_at = now + self.probe_wait / 2 + part_of(self.probe_wait, random);
        Ok(cost)
    }

    /// Books the end of an attempt; `refund` is what it gets back if it was answered.
    #[inline]
    fn settle(&mut self, now: Time, refund: i64, answer: Answer) {
        self.observe(now);
        let change = match answer {
            Answer::Ok => EARN,
            Answer::SlowOk => -SLOW,
            // Before anything is clamped: a failure leaves the bank as it is.
            Answer::ServerError | Answer::Failed => return,
        };
        let credit = self.credit.saturating_add(refund).saturating_add(change);
        self.credit = credit.max(0).min(capacity(self.window.calls()));
        if self.probe_wait != PROBE {
            self.probe_wait = PROBE;
        }
        self.probe_at = self.probe_at.min(self.last_grant + REARM);
    }

    /// What the credit may be at most without an answer to back it.
    fn most(&self) -> i64 {
        capacity(self.window.calls()).max(START)
    }

    /// Moves the window to `now`, or to the latest time seen if the clock stepped back, and returns that.
    #[inline]
    fn observe(&mut self, now: Time) -> Time {
        self.seen = self.seen.max(now);
        self.window.advance(second(self.seen));
        self.seen
    }
}

/// What the bank holds, given the calls in the window.
#[inline]
fn capacity(calls: u64) -> i64 {
    BASE.saturating_add(i64::try_from(calls / PER).unwrap_or(i64::MAX))
}

/// The whole second that `time` lies in.
#[inline]
fn second(time: Time) -> u64 {
    time.since(Time::ZERO).as_secs()
}

/// Millionths of `value`: the only use of a float. The cast saturates, and makes 0 of what is not a number.
fn micros(value: f64) -> u64 {
    (value * MICROS as f64).round() as u64
}

/// A part of `whole`, uniform in `[0, whole)` for a uniform `random`.
fn part_of(whole: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(((u128::from(nanos) * u128::from(random)) >> 64) as u64)
}
