//! The end of the world: nothing is held, and nobody is waited for.

use steadfast::policy::Time;

use super::facts::Facts;
use super::{Complaints, Rule};
use crate::log::{Sample, What};
use crate::plan::Act;

pub(super) fn check(facts: &Facts<'_>, complaints: &mut Complaints) {
    let mut over: Option<Time> = None;
    let mut ended: Option<Time> = None;
    for entry in facts.log {
        match &entry.what {
            What::Over(sample) => {
                over = Some(entry.at);
                let Sample { slots, queued, timers, .. } = *sample;
                complaints.unless((slots, queued, timers) == (0, 0, 0), Rule::Held, entry.at, None, || {
                    format!("everybody has gone: {slots} slots taken, {queued} in line, {timers} timers armed")
                });
            }
            What::AllEnded => {
                ended = Some(entry.at);
                if let Some(over) = over {
                    complaints.unless(entry.at == over, Rule::Held, entry.at, None, || {
                        format!("everybody has gone since {over}, and a call is still counted as running")
                    });
                }
            }
            _ => {}
        }
    }
    complaints.unless(over.is_none() || ended.is_some(), Rule::Held, over.unwrap_or(Time::ZERO), None, || {
        "the client never closed".to_owned()
    });
    for attempt in &facts.attempts {
        complaints.unless(attempt.end.is_some(), Rule::Held, attempt.start.at, attempt.call, || {
            "its exchange never ended".to_owned()
        });
    }
    closes_in_time(facts, complaints);
}

/// 7.7: running calls are waited for, and no longer than the latest deadline that one can have.
fn closes_in_time(facts: &Facts<'_>, complaints: &mut Complaints) {
    let closing = facts.log.iter().position(|entry| entry.what == What::Operator(Act::Close));
    let Some(closing) = closing else { return };
    let began = facts.log[closing].at;
    let longest = facts.plan.configs.iter().map(|config| config.total).max().unwrap_or_default();
    let ended = facts.log.iter().skip(closing).find(|entry| entry.what == What::AllEnded);
    complaints.unless(ended.is_some_and(|ended| ended.at <= began + longest), Rule::Held, began, None, || {
        format!("close had come back by {:?} only", ended.map(|ended| ended.at))
    });
}
