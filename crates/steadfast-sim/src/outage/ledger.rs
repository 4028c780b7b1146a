//! What is counted, in intervals of equal length from the start of a run. Plain data that can be added up.
//!
//! Calls are counted in the interval in which they arrived, whenever they ended: what a call that came during an outage
//! became is said of the outage. What an upstream does is counted when it does it.

use std::ops::AddAssign;
use std::time::Duration;

use steadfast::policy::Time;
use steadfast::report::Ended;
use steadfast::{Error, ErrorKind, Response};

/// Calls, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls made.
    pub offered: u64,
    /// Attempts of these calls.
    pub sent: u64,
    /// Calls that got an answer below 400.
    pub ok: u64,
    /// Those of them that got it within [`in_time`](super::Simulation::in_time).
    pub in_time: u64,
    /// Calls that ended with another answer.
    pub bad_answer: u64,
    /// Calls that ended without an answer after a failed attempt.
    pub unreachable: u64,
    /// Calls that the deadline ended, without an answer.
    pub timeout: u64,
    /// Calls that the circuit breaker refused.
    pub circuit_open: u64,
    /// Calls that found no slot.
    pub bulkhead_full: u64,
    /// Calls that found no place in the rate limit.
    pub rate_limited: u64,
    /// Calls that ended in another way.
    pub other: u64,
    /// Calls whose retry the budget's ceiling denied, whatever they ended with.
    pub budget_ceiling: u64,
    /// Calls whose retry the budget's gate denied.
    pub budget_efficacy: u64,
}

impl Tally {
    /// The share of calls that got a good answer, 0 to 1; 1 of none.
    pub fn goodput(&self) -> f64 {
        share(self.ok, self.offered, 1.0)
    }

    /// The share of calls that got a good answer in time, 0 to 1; 1 of none.
    pub fn in_time_share(&self) -> f64 {
        share(self.in_time, self.offered, 1.0)
    }

    /// Attempts sent for each call made; 0 of none. Below 1 where calls were refused.
    pub fn amplification(&self) -> f64 {
        share(self.sent, self.offered, 0.0)
    }

    /// Calls that our own limits refused.
    pub fn refused(&self) -> u64 {
        self.circuit_open + self.bulkhead_full + self.rate_limited
    }

    /// Counts a call that has ended.
    pub(super) fn end(&mut self, result: &Result<Response, Error>, in_time: Duration) {
        let report = result.as_ref().map_or_else(Error::report, Response::report);
        self.sent += u64::from(report.attempt_count());
        match report.ended() {
            Ended::BudgetCeiling => self.budget_ceiling += 1,
            Ended::BudgetEfficacy => self.budget_efficacy += 1,
            _ => {}
        }
        let place = match result {
            Ok(response) if is_good(response) => {
                self.in_time += u64::from(report.duration() <= in_time);
                &mut self.ok
            }
            Ok(_) => &mut self.bad_answer,
            Err(error) => match error.kind() {
                ErrorKind::Unreachable => &mut self.unreachable,
                ErrorKind::Timeout => &mut self.timeout,
                ErrorKind::CircuitOpen => &mut self.circuit_open,
                ErrorKind::BulkheadFull => &mut self.bulkhead_full,
                ErrorKind::RateLimited => &mut self.rate_limited,
                _ => &mut self.other,
            },
        };
        *place += 1;
    }
}

pub(super) fn is_good(response: &Response) -> bool {
    response.status().as_u16() < 400
}

fn share(of: u64, all: u64, none: f64) -> f64 {
    if all == 0 { none } else { of as f64 / all as f64 }
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        self.offered += other.offered;
        self.sent += other.sent;
        self.ok += other.ok;
        self.in_time += other.in_time;
        self.bad_answer += other.bad_answer;
        self.unreachable += other.unreachable;
        self.timeout += other.timeout;
        self.circuit_open += other.circuit_open;
        self.bulkhead_full += other.bulkhead_full;
        self.rate_limited += other.rate_limited;
        self.other += other.other;
        self.budget_ceiling += other.budget_ceiling;
        self.budget_efficacy += other.budget_efficacy;
    }
}

/// What one upstream did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTally {
    /// Attempts that were sent to it, also those that found nobody.
    pub requests: u64,
    /// Requests that it served to the end.
    pub served: u64,
    /// Those of them whose caller had gone.
    pub wasted: u64,
    /// Requests that were dropped without being served, as their caller had gone.
    pub skipped: u64,
    /// Requests that found the queue full.
    pub shed: u64,
    /// Requests over its rate limit.
    pub limited: u64,
    /// Requests that met a trigger: failed, refused, hung, or failed after being served.
    pub struck: u64,
    /// Requests that were reset in flight.
    pub reset: u64,
    /// Time of workers, spent on what they ended in this interval.
    pub busy: Duration,
    /// How much of it was spent on requests whose caller had gone, or that were reset.
    pub wasted_work: Duration,
}

impl AddAssign<&Self> for ServerTally {
    fn add_assign(&mut self, other: &Self) {
        self.requests += other.requests;
        self.served += other.served;
        self.wasted += other.wasted;
        self.skipped += other.skipped;
        self.shed += other.shed;
        self.limited += other.limited;
        self.struck += other.struck;
        self.reset += other.reset;
        self.busy = self.busy.saturating_add(other.busy);
        self.wasted_work = self.wasted_work.saturating_add(other.wasted_work);
    }
}

/// How things stood at the end of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Requests that waited at each upstream of the chain, all replicas together.
    pub queue: Vec<u64>,
    /// Calls that had not ended.
    pub calls: u64,
    /// Clients whose breaker was open.
    pub open: u64,
    /// Clients whose breaker was half-open.
    pub half_open: u64,
}

/// Figures of one sort by interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series<T> {
    length: Duration,
    intervals: Vec<T>,
    beyond: T,
}

/// What an upstream counts.
pub(super) type ServerLedger = Series<ServerTally>;

impl<T: Clone + Default> Series<T> {
    /// `count` intervals of this length. What comes later is counted apart.
    pub(super) fn new(length: Duration, count: usize) -> Self {
        Self { length, intervals: vec![T::default(); count], beyond: T::default() }
    }

    /// The figures of the interval of this instant.
    pub(super) fn at(&mut self, now: Time) -> &mut T {
        let index = now.as_nanos() / u64::try_from(self.length.as_nanos()).unwrap_or(u64::MAX).max(1);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.intervals.get_mut(index).unwrap_or(&mut self.beyond)
    }

    /// By interval, and what came after the last.
    pub(super) fn into_parts(self) -> (Vec<T>, T) {
        (self.intervals, self.beyond)
    }
}
