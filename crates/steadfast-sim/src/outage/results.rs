//! What a run showed. Plain data, and questions to it.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use steadfast::policy::Time;
use steadfast::policy::breaker::{State, Why};

use super::ledger::{Level, ServerTally, Tally};

/// Everything that was counted in one run. The same simulation, policy and seed give the same run, to the last figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The policy's name.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// How many clients.
    pub clients: usize,
    /// The time at the start that no phase counts.
    pub warm_up: Duration,
    /// The length of an interval.
    pub interval: Duration,
    /// Calls, by the interval in which they were made.
    pub calls: Vec<Tally>,
    /// How things stood at the end of each interval.
    pub levels: Vec<Level>,
    /// What each upstream of the chain did, by interval, and after the last one in `drained`.
    pub upstreams: Vec<Vec<ServerTally>>,
    /// What each upstream did after the last call was made.
    pub drained: Vec<ServerTally>,
    /// The figures of each phase.
    pub phases: Vec<PhaseFigures>,
    /// Every change of a breaker, in order.
    pub breakers: Vec<BreakerChange>,
    /// How many more changes there were than are kept.
    pub breakers_left_out: u64,
    /// When the triggers began and were over; `None` without any.
    pub trouble: Option<(Duration, Duration)>,
    /// When the last call had ended.
    pub ended: Duration,
}

/// The figures of one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFigures {
    /// Its name.
    pub name: String,
    /// From, inclusive.
    pub from: Duration,
    /// To, exclusive.
    pub to: Duration,
    /// The calls that were made in it.
    pub calls: Tally,
    /// How long those took that got a good answer.
    pub latency: Latency,
}

/// A breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    /// Of a client of which upstream; 0 is the first of a chain.
    pub hop: usize,
    /// Of which client.
    pub client: usize,
    /// When.
    pub at: Duration,
    /// From.
    pub from: State,
    /// To.
    pub to: State,
    /// Why.
    pub why: Why,
}

impl Run {
    /// The calls that were made from `from`, inclusive, to `to`, exclusive: of all intervals that begin there.
    pub fn between(&self, from: Duration, to: Duration) -> Tally {
        let mut sum = Tally::default();
        self.slice(&self.calls, from, to).iter().for_each(|tally| sum += tally);
        sum
    }

    /// All calls.
    pub fn total(&self) -> Tally {
        self.between(Duration::ZERO, Duration::MAX)
    }

    /// What an upstream of the chain did in all intervals that begin from `from`, inclusive, to `to`, exclusive.
    pub fn upstream_between(&self, hop: usize, from: Duration, to: Duration) -> ServerTally {
        let mut sum = ServerTally::default();
        let intervals = self.upstreams.get(hop).map_or(&[][..], Vec::as_slice);
        self.slice(intervals, from, to).iter().for_each(|tally| sum += tally);
        sum
    }

    /// What an upstream of the chain did in the whole run, to the end of the last call.
    pub fn upstream_total(&self, hop: usize) -> ServerTally {
        let mut sum = self.upstream_between(hop, Duration::ZERO, Duration::MAX);
        self.drained.get(hop).into_iter().for_each(|tally| sum += tally);
        sum
    }

    fn slice<'a, T>(&self, intervals: &'a [T], from: Duration, to: Duration) -> &'a [T] {
        let length = self.interval.as_nanos().max(1);
        let index = |at: Duration| usize::try_from(at.as_nanos().div_ceil(length)).unwrap_or(usize::MAX);
        let (from, to) = (index(from).min(intervals.len()), index(to).min(intervals.len()));
        intervals.get(from..to).unwrap_or(&[])
    }

    /// Of each client the first instant from `after` on at which its breaker opened; `None`: it did not.
    pub fn first_opened(&self, after: Duration) -> Vec<Option<Duration>> {
        let mut first = vec![None; self.clients];
        let opened = |change: &&BreakerChange| change.hop == 0 && change.to == State::Open && change.at >= after;
        for change in self.breakers.iter().filter(opened) {
            if let Some(place) = first.get_mut(change.client).filter(|place| place.is_none()) {
                *place = Some(change.at);
            }
        }
        first
    }

    /// Of each client the last instant at which its breaker closed; `None`: it never did, or is not closed.
    pub fn last_closed(&self) -> Vec<Option<Duration>> {
        let mut last = vec![None; self.clients];
        for change in self.breakers.iter().filter(|change| change.hop == 0) {
            if let Some(place) = last.get_mut(change.client) {
                *place = (change.to == State::Closed).then_some(change.at);
            }
        }
        last
    }

    /// How long after the triggers were over calls had recovered: from then on, for `hold`, at least `share` of what
    /// before the triggers was answered well and in time is so again, in each interval; one without calls says nothing.
    /// `None`: they did not, there was no trigger, or there were no calls to tell by, before or after. `before` begins at
    /// `warm_up`.
    pub fn recovery(&self, share: f64, hold: Duration) -> Option<Duration> {
        let (from, over) = self.trouble?;
        let before = self.between(self.warm_up.min(from), from);
        if before.offered == 0 {
            return None;
        }
        let wanted = share * before.in_time_share();
        let length = self.interval.as_nanos().max(1);
        let first = usize::try_from(over.as_nanos().div_ceil(length)).ok()?;
        let hold = usize::try_from(hold.as_nanos().div_ceil(length)).unwrap_or(usize::MAX).max(1);
        let (mut good, mut calls) = (0, 0);
        for (index, tally) in self.calls.iter().enumerate().skip(first) {
            (good, calls) = if tally.in_time_share() >= wanted { (good + 1, calls + tally.offered) } else { (0, 0) };
            if good >= hold && calls > 0 {
                let began = u32::try_from(index + 1 - hold).unwrap_or(u32::MAX);
                return Some(self.interval.saturating_mul(began).saturating_sub(over));
            }
        }
        None
    }

    /// The figures of the phase of this name.
    pub fn phase(&self, name: &str) -> Option<&PhaseFigures> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

/// How long calls took: three digits of any quantile.
#[derive(Clone, PartialEq)]
pub struct Latency(Histogram<u64>);

/// More than any call can take: 25 hours in nanoseconds.
const MOST: u64 = 25 * 3_600 * 1_000_000_000;

impl Latency {
    /// Of no call so far; `None` only if the figures above made no sense to the histogram.
    pub(super) fn new() -> Option<Self> {
        Histogram::new_with_bounds(1_000, MOST, 3).ok().map(Self)
    }

    pub(super) fn record(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Of how many calls.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that this share of the calls, 0 to 1, did not exceed; zero of none.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(if self.0.is_empty() { 0 } else { self.0.value_at_quantile(share) })
    }

    /// The mean; zero of none.
    pub fn mean(&self) -> Duration {
        Duration::try_from_secs_f64(self.0.mean() / 1e9).unwrap_or_default()
    }

    /// The longest; zero of none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latency")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

pub(super) fn since_start(at: Time) -> Duration {
    at.since(Time::ZERO)
}
