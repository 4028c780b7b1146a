//! Retries against calls: the ceiling of the last ten whole seconds, and a bound on what does not help.

use std::collections::HashMap;

use steadfast::Fault;
use steadfast::policy::Time;

use super::facts::{Attempt, Facts, Moment, Outcome};
use super::{Complaints, Rule};
use crate::log::{Sample, What};
use crate::plan::{Act, Config, Edge};

/// Counts by whole second.
#[derive(Default)]
struct Buckets(HashMap<u64, u64>);

fn second(at: Time) -> u64 {
    at.since(Time::ZERO).as_secs()
}

impl Buckets {
    fn add(&mut self, second: u64) {
        *self.0.entry(second).or_default() += 1;
    }

    /// Of the ten whole seconds that end with the one that `now` lies in.
    fn sum(&self, now: Time) -> u64 {
        let last = second(now);
        (last.saturating_sub(9)..=last).filter_map(|second| self.0.get(&second)).sum()
    }
}

/// Something that the budget counts, by the place of the log where it does.
enum Counted<'f> {
    Call,
    /// A retry that was sent, counted when it was decided.
    Retry(&'f Attempt),
}

pub(super) fn check(facts: &Facts<'_>, complaints: &mut Complaints) {
    let mut counted: HashMap<usize, Vec<Counted<'_>>> = HashMap::new();
    for call in facts.calls() {
        let mut before: Option<&Attempt> = None;
        for attempt in facts.attempts_of(call) {
            let (place, what) = match before.and_then(|before| facts.over(before)) {
                None => (attempt.start.place, Counted::Call),
                Some(over) => (over.place, Counted::Retry(attempt)),
            };
            counted.entry(place).or_default().push(what);
            before = Some(attempt);
        }
    }
    let (mut calls, mut retries, mut uncertain) = (Buckets::default(), Buckets::default(), Buckets::default());
    let mut config = &facts.plan.configs[0];
    for (place, entry) in facts.log.iter().enumerate() {
        for what in counted.get(&place).into_iter().flatten() {
            match what {
                Counted::Call => calls.add(second(entry.at)),
                Counted::Retry(attempt) if may_be_unsent(facts, attempt) => uncertain.add(second(entry.at)),
                Counted::Retry(attempt) => {
                    let (known, started) = (retries.sum(entry.at), calls.sum(entry.at));
                    let allowed = ceiling(config, started);
                    complaints.unless((known as f64) < allowed, Rule::Ceiling, attempt.start.at, attempt.call, || {
                        format!(
                            "a retry after {known}, where {started} calls allow less than {allowed} at {}",
                            entry.at
                        )
                    });
                    retries.add(second(entry.at));
                }
            }
        }
        match &entry.what {
            What::Operator(Act::Reload(number)) => config = &facts.plan.configs[*number],
            What::Sampled(sample) | What::Over(sample) => {
                let moment = Moment { place, at: entry.at };
                sampled(facts, moment, sample, (&calls, &retries, &uncertain), complaints);
            }
            _ => {}
        }
    }
    gate(facts, complaints);
}

/// 2.9: whether it may have been given back, as nothing of it left the house, and that was nobody's doing but ours: no room in
/// the pool, or the deadline came too soon to mean anything.
fn may_be_unsent(facts: &Facts<'_>, attempt: &Attempt) -> bool {
    let is_ours = matches!(attempt.outcome, Outcome::Fault(Fault::PoolTimeout) | Outcome::CutByDeadline);
    is_ours && !attempt.is_written && facts.verdict(attempt, false).is_none()
}

/// 3.1, with room for the rounding of floats.
fn ceiling(config: &Config, calls: u64) -> f64 {
    let budget = &config.budget;
    budget.min_per_second * 10.0 + budget.ratio * calls as f64 + 1e-4
}

/// The counts that are shown are those of what was sent; a retry that is still to come may be among them.
fn sampled(
    facts: &Facts<'_>,
    moment: Moment,
    sample: &Sample,
    (calls, retries, uncertain): (&Buckets, &Buckets, &Buckets),
    complaints: &mut Complaints,
) {
    let started = calls.sum(moment.at);
    complaints.unless(sample.requests == started, Rule::Ceiling, moment.at, None, || {
        format!("{} calls are counted, and {started} were started", sample.requests)
    });
    // Those that were decided and wait count already; of those that will be sent the sum knows.
    let waiting = facts.calls().filter(|call| {
        let gone = call.done.map(|(done, _)| done).or(call.cancelled);
        let is_over = |attempt: &Attempt| facts.over(attempt).is_some_and(|over| over.place < moment.place);
        gone.is_some_and(|gone| gone.place > moment.place)
            && call.began.is_some_and(|began| began.place < moment.place)
            && facts.attempts_of(call).filter(|attempt| attempt.start.place < moment.place).any(is_over)
    });
    let (least, most) = (retries.sum(moment.at), retries.sum(moment.at) + uncertain.sum(moment.at));
    let most = most + waiting.count() as u64;
    complaints.unless((least..=most).contains(&sample.retries), Rule::Ceiling, moment.at, None, || {
        format!("{} retries are counted, and {least} to {most} were decided", sample.retries)
    });
}

/// 3.2: with the gate, credit is what a new client has and one for each good answer; a retry that fails costs eight, and an
/// empty bank lets one through a minute at most.
fn gate(facts: &Facts<'_>, complaints: &mut Complaints) {
    if facts.plan.configs.iter().any(|config| !config.budget.gate) {
        return;
    }
    let (mut good, mut failed) = (0_u64, 0_u64);
    let mut by_end: Vec<&Attempt> = facts.attempts.iter().filter(|attempt| facts.over(attempt).is_some()).collect();
    by_end.sort_by_key(|attempt| facts.over(attempt).map(|over| over.place));
    for attempt in by_end {
        let Some(over) = facts.over(attempt) else { continue };
        let is_good = match attempt.outcome {
            Outcome::Answered(status) | Outcome::Opened(status) => match facts.plan.edge {
                Edge::Http => status < 500 && !facts.of(attempt).config.retry_statuses.contains(&status),
                Edge::Guard => status == 200,
            },
            _ => false,
        };
        if is_good {
            good += 1;
        } else if attempt.number > 1 {
            failed += 1;
            let minutes = over.at.since(Time::ZERO).as_secs() / 60;
            // Those under way when this one ended were paid for, too, and may still get it back.
            let paid = 8 * failed.saturating_sub(1);
            complaints.unless(paid <= 40 + good + 20 * (minutes + 2), Rule::Gate, over.at, attempt.call, || {
                format!("{failed} retries have failed, after {good} good answers")
            });
        }
    }
}
