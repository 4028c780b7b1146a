//! The bulkhead and the rate limit: how many are in flight, how many start, and who waits for what.

use std::collections::HashMap;
use std::time::Duration;

use steadfast::Fault;
use steadfast::policy::Time;
use steadfast::report::Ended;

use super::facts::{Facts, Moment, Outcome};
use super::{Complaints, Rule};
use crate::log::{Sample, What};
use crate::plan::{Act, Config, Limit};

pub(super) fn check(facts: &Facts<'_>, complaints: &mut Complaints) {
    let mut walk = Walk::new(facts);
    for (place, entry) in facts.log.iter().enumerate() {
        let moment = Moment { place, at: entry.at };
        match &entry.what {
            What::Start { exchange, call, .. } => walk.starts(moment, *exchange, *call, complaints),
            What::Operator(Act::Reload(number)) => walk.reloads(moment.at, &facts.plan.configs[*number]),
            What::Done { call, answer } if answer.report.ended() == Ended::BulkheadFull => {
                walk.refused(moment, *call, complaints);
            }
            What::Sampled(sample) | What::Over(sample) => walk.sampled(moment, sample, complaints),
            _ => {}
        }
        match entry.what {
            What::End { exchange, .. } => {
                walk.in_flight.retain(|known| *known != exchange);
                walk.released = entry.at;
            }
            What::Done { .. } | What::Cancelled { .. } | What::Operator(_) => walk.released = entry.at,
            _ => {}
        }
    }
}

/// The limits as they are at one place of the log.
struct Walk<'f, 'a> {
    facts: &'f Facts<'a>,
    config: &'a Config,
    /// Exchanges that have not ended.
    in_flight: Vec<usize>,
    /// When anything was last given back that somebody may have waited for.
    released: Time,
    /// Starts by key, in order.
    starts: HashMap<&'static str, Vec<Time>>,
    /// What started before this is forgotten: the limit was another, and needed to know no more.
    remembers: Time,
    has_limit: bool,
}

/// The window in which so many may start: an even limit is one start in a part of the period.
fn window(limit: Limit) -> (usize, Duration) {
    if limit.smooth { (1, limit.period / limit.starts) } else { (limit.starts as usize, limit.period) }
}

impl<'f, 'a> Walk<'f, 'a> {
    fn new(facts: &'f Facts<'a>) -> Self {
        Self {
            facts,
            config: &facts.plan.configs[0],
            in_flight: Vec::new(),
            released: Time::ZERO,
            starts: HashMap::new(),
            remembers: Time::ZERO,
            has_limit: facts.plan.configs.iter().any(|config| config.limit.is_some()),
        }
    }

    /// How many are in flight now.
    fn taken(&self, now: Time) -> usize {
        let is_held = |exchange: &&usize| self.facts.of(&self.facts.attempts[**exchange]).deadline > now;
        self.in_flight.iter().filter(is_held).count()
    }

    fn starts(&mut self, moment: Moment, exchange: usize, call: usize, complaints: &mut Complaints) {
        self.in_flight.push(exchange);
        let (taken, slots) = (self.taken(moment.at), self.config.slots as usize);
        complaints.unless(taken <= slots, Rule::Bulkhead, moment.at, call, || {
            format!("{taken} in flight, and there are {slots} slots")
        });
        self.start_counts(moment.at, call, complaints);
        self.was_told(moment, exchange, call, complaints);
    }

    /// 6.1: no window of the length of the period has more starts than the limit, wherever it begins.
    fn start_counts(&mut self, now: Time, call: usize, complaints: &mut Complaints) {
        let key = self.facts.plan.caller(call).key;
        let starts = self.starts.entry(key).or_default();
        starts.push(now);
        let Some(limit) = self.config.limit else { return };
        let (most, window) = window(limit);
        let counts = |start: &&Time| now.since(**start) < window && **start >= self.remembers;
        let inside = starts.iter().rev().take_while(counts).count();
        complaints.unless(inside <= most, Rule::RateLimit, now, call, || {
            format!("{inside} starts of '{key}' within {window:?}, and {most} are allowed")
        });
    }

    fn reloads(&mut self, now: Time, config: &'a Config) {
        if config.limit != self.config.limit {
            let known = self.config.limit.map_or(Duration::ZERO, |limit| window(limit).1);
            let horizon = Time::from_nanos(now.as_nanos().saturating_sub(known.as_nanos() as u64));
            self.remembers = self.remembers.max(horizon);
        }
        self.config = config;
    }

    /// Who waited for a slot goes at the instant at which one came free, and not when it next looks.
    fn was_told(&self, moment: Moment, exchange: usize, call: usize, complaints: &mut Complaints) {
        let facts = self.facts;
        let call = facts.call(call);
        let Some(began) = call.began.filter(|_| call.exchanges.first() == Some(&exchange) && !self.has_limit) else {
            return;
        };
        let is_free = |at: Time| self.released == at || facts.calls().any(|other| other.deadline == at);
        let has_unpolled = facts.calls().any(|call| call.stalled.is_some());
        complaints.unless(
            began.at == moment.at || has_unpolled || is_free(moment.at),
            Rule::Wake,
            moment.at,
            call.number,
            || format!("it waited from {} on, and nothing came free when it went", began.at),
        );
    }

    /// 5.1: refused only when every slot is taken.
    fn refused(&self, moment: Moment, call: usize, complaints: &mut Complaints) {
        let facts = self.facts;
        let last = facts.attempts_of(facts.call(call)).next_back();
        if last.is_some_and(|last| last.outcome == Outcome::Fault(Fault::PoolTimeout)) {
            return;
        }
        let taken = self.taken(moment.at);
        let about_to =
            facts.attempts.iter().filter(|other| other.start.at == moment.at && other.start.place > moment.place);
        let leaving = facts
            .calls()
            .filter(|other| other.stalled.is_some() || other.cancelled.is_some_and(|gone| gone.at == moment.at));
        let most = taken + about_to.count() + leaving.count();
        complaints.unless(most >= self.config.slots as usize || self.has_limit, Rule::Slots, moment.at, call, || {
            format!("refused as if {} were in flight, and {taken} were", self.config.slots)
        });
    }

    /// The slots that are taken are those of the attempts in flight; one that was handed over to a future that nobody polls
    /// counts, too.
    fn sampled(&self, moment: Moment, sample: &Sample, complaints: &mut Complaints) {
        let taken = self.taken(moment.at) as u32;
        let unpolled = self.facts.calls().filter(|call| {
            call.stalled.is_some_and(|stalled| stalled.place < moment.place)
                && call.cancelled.is_none_or(|gone| gone.place > moment.place)
                && call.deadline > moment.at
        });
        let most = taken + unpolled.count() as u32;
        complaints.unless((taken..=most).contains(&sample.slots), Rule::Slots, moment.at, None, || {
            format!("{} slots are taken, and {taken} attempts are in flight", sample.slots)
        });
    }
}
