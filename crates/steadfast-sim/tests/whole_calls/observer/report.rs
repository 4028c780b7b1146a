//! 7.4: what the report tells is what was seen.

use std::time::Duration;

use steadfast::report::{AttemptRecord, Outcome as Reported, WaitReason};
use steadfast::{Fault, Report, Sent};

use super::call::backoff;
use super::facts::{Attempt, Call, Facts, Moment, Outcome};
use super::{Complaints, Rule};
use crate::plan::Edge;

pub(super) fn check(facts: &Facts<'_>, complaints: &mut Complaints) {
    for call in facts.calls() {
        if let (Some(began), Some((done, answer))) = (call.began, call.done) {
            whole(facts, call, began, done, &answer.report, complaints);
        }
    }
}

fn whole(
    facts: &Facts<'_>,
    call: &Call<'_>,
    began: Moment,
    done: Moment,
    report: &Report,
    complaints: &mut Complaints,
) {
    let mut wrong = |text: String| complaints.about(Rule::Report, done.at, call.number, text);
    let seen = call.exchanges.len();
    if report.attempt_count() as usize != seen {
        return wrong(format!("it tells of {} attempts, and {seen} were seen", report.attempt_count()));
    }
    for (attempt, told) in facts.attempts_of(call).zip(report.attempts()) {
        if let Some(difference) = difference(facts, began, attempt, told) {
            wrong(format!("of attempt {}: {difference}", attempt.number));
        }
    }
    let waits: Duration = report.waits().iter().map(|wait| wait.duration).sum();
    let attempts: Duration = report.attempts().map(|attempt| attempt.duration).sum();
    let lasted = began.at.until(done.at);
    if report.duration() != lasted || waits + attempts != lasted {
        wrong(format!("{lasted:?} have passed; it tells of {:?}, {waits:?} of waits", report.duration()));
    }
    for wait in report.waits() {
        if let Some(difference) = wait_difference(facts, call, began, wait) {
            wrong(difference);
        }
    }
}

/// What the record of an attempt says otherwise than it was seen.
fn difference(facts: &Facts<'_>, began: Moment, attempt: &Attempt, told: &AttemptRecord) -> Option<String> {
    let (start, over) = (attempt.start.at.since(began.at), facts.over(attempt)?.at);
    if told.number != attempt.number || told.start != start {
        return Some(format!("it started at {start:?}, and {told:?} is told"));
    }
    if told.duration != over.since(attempt.start.at) {
        return Some(format!("it lasted {:?}, and {told:?} is told", over.since(attempt.start.at)));
    }
    let is_http = facts.plan.edge == Edge::Http;
    let outcome = match attempt.outcome {
        Outcome::Answered(status) | Outcome::Opened(status) if is_http => Reported::Status(status),
        Outcome::Answered(200) => Reported::Ok,
        Outcome::Answered(_) | Outcome::Opened(_) => Reported::Error,
        Outcome::Fault(fault) if is_http => Reported::Fault(fault),
        Outcome::Fault(_) => Reported::Error,
        Outcome::CutByTimeout => Reported::Fault(Fault::AttemptTimeout),
        Outcome::CutByDeadline => Reported::Fault(Fault::Deadline),
        Outcome::Cancelled => return None,
    };
    if told.outcome != outcome {
        return Some(format!("{outcome:?} was seen, and {:?} is told", told.outcome));
    }
    let nothing_sent = !attempt.is_written && attempt.head.is_none();
    if is_http && (told.sent == Sent::No) != nothing_sent {
        return Some(format!("written: {}, and {:?} is told", attempt.is_written, told.sent));
    }
    None
}

/// 2.5, 2.6: what a wait says otherwise than the attempt before it asks for.
fn wait_difference(
    facts: &Facts<'_>,
    call: &Call<'_>,
    began: Moment,
    wait: &steadfast::report::WaitRecord,
) -> Option<String> {
    if !matches!(wait.reason, WaitReason::Backoff | WaitReason::RetryAfter) {
        return None;
    }
    let from = began.at + wait.start;
    // Of two attempts that ended at one instant, the later.
    let before = facts
        .attempts_of(call)
        .rev()
        .find(|attempt| facts.over(attempt).is_some_and(|over| over.at == from) && facts.may_follow(attempt))?;
    let (least, most, reason) = match facts.asked(before) {
        Some(asked) => {
            let exact = from.until(asked);
            (exact, exact + call.config.retry_after_jitter, WaitReason::RetryAfter)
        }
        None => {
            let (least, most) = backoff(call.config, before.number);
            (least, most, WaitReason::Backoff)
        }
    };
    let holds = wait.reason == reason && (least..=most).contains(&wait.duration);
    (!holds).then(|| format!("{wait:?}, where {least:?} to {most:?} of {reason:?} were due"))
}
