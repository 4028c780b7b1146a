//! What each call promises for itself: its deadline, its attempts, the times between them, and what comes back.

use std::time::Duration;

use steadfast::policy::Time;
use steadfast::policy::backoff::Jitter;
use steadfast::report::{Ended, WaitReason};
use steadfast::{ErrorKind, Fault};

use super::facts::{Attempt, Call, Facts, Moment, Outcome};
use super::{Complaints, Rule};
use crate::log::{Answer, How, Read, What};
use crate::plan::{Act, Config, Edge};

pub(super) fn check(facts: &Facts<'_>, complaints: &mut Complaints) {
    let closing = facts.log.iter().position(|entry| entry.what == What::Operator(Act::Close));
    for call in facts.calls() {
        in_time(facts, call, complaints);
        attempts(facts, call, complaints);
        for (before, next) in facts.attempts_of(call).zip(facts.attempts_of(call).skip(1)) {
            retry(facts, call, before, next, complaints);
        }
        if let Some((done, answer)) = call.done {
            response(facts, call, done, answer, complaints);
            match answer.kind {
                Some(kind) => kind_of_error(facts, call, (done, answer, kind), closing, complaints),
                None => complaints.unless(
                    answer.response.is_some() || facts.plan.edge == Edge::Guard,
                    Rule::Kind,
                    done.at,
                    call.number,
                    || "neither a response nor an error".to_owned(),
                ),
            }
        }
        body(facts, call, complaints);
    }
}

/// 1.1, 1.6: over by the deadline, and then, or once dropped, nothing is sent.
fn in_time(facts: &Facts<'_>, call: &Call<'_>, complaints: &mut Complaints) {
    let (number, deadline) = (call.number, call.deadline);
    if let Some((done, _)) = call.done {
        // A call whose deadline is spent when it begins ends there and then.
        let latest = deadline.max(call.began.map_or(Time::MAX, |began| began.at));
        complaints.unless(done.at <= latest, Rule::Deadline, done.at, number, || {
            format!("the call ended after its deadline, which was {deadline}")
        });
    } else if call.cancelled.is_none() {
        complaints.about(Rule::Deadline, call.made.at, number, "the call never ended");
    }
    let gone = call.done.map(|(done, _)| done).or(call.cancelled);
    for attempt in facts.attempts_of(call) {
        let start = attempt.start;
        complaints.unless(start.at < deadline, Rule::Deadline, start.at, number, || {
            format!("an attempt started although the deadline, {deadline}, was spent")
        });
        complaints.unless(gone.is_none_or(|gone| start.place < gone.place), Rule::Dropped, start.at, number, || {
            "an attempt started after the call was over".to_owned()
        });
        if let Some(over) = facts.over(attempt).filter(|_| call.stalled.is_none()) {
            complaints.unless(over.at <= deadline, Rule::Deadline, over.at, number, || {
                format!("an attempt went on after the deadline, {deadline}")
            });
        }
    }
    complaints.unless(call.began.is_some() || call.exchanges.is_empty(), Rule::Dropped, call.made.at, number, || {
        "it sent something, and was never polled".to_owned()
    });
}

/// 2.1: no more than allowed; one at a time.
fn attempts(facts: &Facts<'_>, call: &Call<'_>, complaints: &mut Complaints) {
    let allowed = call.config.retries as usize + 1;
    let made = call.exchanges.len();
    if made > allowed {
        let at = facts.attempts[call.exchanges[allowed]].start.at;
        complaints.about(Rule::Attempts, at, call.number, format!("{made} attempts, and {allowed} are allowed"));
    }
    for (index, attempt) in facts.attempts_of(call).enumerate() {
        complaints.unless(attempt.number as usize == index + 1, Rule::Attempts, attempt.start.at, call.number, || {
            format!("the upstream was asked by attempt {}, and that is number {}", attempt.number, index + 1)
        });
    }
}

/// 2.2 to 2.7: whether the retry may be made, and not before when.
fn retry(facts: &Facts<'_>, call: &Call<'_>, before: &Attempt, next: &Attempt, complaints: &mut Complaints) {
    let (number, start) = (call.number, next.start.at);
    let Some(over) = facts.over(before).filter(|over| over.place < next.start.place) else {
        complaints.about(Rule::Attempts, start, number, "an attempt started before the one before it was over");
        return;
    };
    complaints.unless(facts.may_follow(before), Rule::Repeat, start, number, || {
        format!("after {:?} there may be no other attempt (written: {})", before.outcome, before.is_written)
    });
    let config = call.config;
    if let Some(asked) = facts.asked(before) {
        let wait = over.at.until(asked);
        complaints.unless(start >= asked, Rule::RetryAfter, start, number, || {
            format!("the upstream asked for {wait:?} from {} on, which is until {asked}", over.at)
        });
        complaints.unless(
            wait <= config.max_retry_after && asked < call.deadline,
            Rule::RetryAfter,
            start,
            number,
            || format!("it asked for {wait:?}, which is longer than is allowed or than the deadline leaves"),
        );
    } else {
        let (least, _) = backoff(config, before.number);
        complaints.unless(start >= over.at + least, Rule::Backoff, start, number, || {
            format!("{:?} after the attempt before it, and the backoff is {least:?} at least", over.at.until(start))
        });
    }
    // Where no line was waited in, the start is as the retry was decided.
    let in_line = call.done.is_none_or(|(_, answer)| {
        let waits = answer.report.waits().iter();
        waits.clone().any(|wait| matches!(wait.reason, WaitReason::Bulkhead | WaitReason::RateLimit))
    });
    complaints.unless(
        in_line || start + Duration::from_millis(10) <= call.deadline,
        Rule::RetryTime,
        start,
        number,
        || format!("the retry had only {:?}", start.until(call.deadline)),
    );
}

/// The least and the most that is waited before retry number `retry`, by the formulas of 2.5.
pub(super) fn backoff(config: &Config, retry: u32) -> (Duration, Duration) {
    let rule = &config.backoff;
    let grown = rule.base.as_secs_f64() * rule.factor.powi(retry as i32 - 1);
    let cap = Duration::from_secs_f64(grown.min(rule.max.as_secs_f64()));
    // A float and a count of nanoseconds are not the same number.
    let slack = Duration::from_nanos(2);
    let (least, most) = match rule.jitter {
        Jitter::Full => (Duration::ZERO, cap),
        Jitter::Equal => (cap / 2, cap),
        Jitter::Additive => (cap, cap + rule.jitter_max),
        Jitter::None => (cap, cap),
    };
    (least.saturating_sub(slack), most + slack)
}

/// 7.1: the latest response, if there was one; otherwise none.
fn response(facts: &Facts<'_>, call: &Call<'_>, done: Moment, answer: &Answer, complaints: &mut Complaints) {
    let latest = call.exchanges.iter().rev().find(|exchange| facts.is_response(&facts.attempts[**exchange]));
    let returned = answer.response.map(|(exchange, _)| exchange);
    complaints.unless(returned == latest.copied(), Rule::Response, done.at, call.number, || {
        format!("exchange {returned:?} was returned, and the latest response is that of {latest:?}")
    });
    let Some((exchange, Some(bytes))) = answer.response else { return };
    let attempt = &facts.attempts[exchange];
    let step = facts.plan.step(call.number, attempt.number, attempt.start.at);
    if let crate::plan::Reply::Answer { body, .. } = step.reply {
        let sent: usize = body.pieces.iter().map(|(_, bytes)| bytes).sum();
        complaints.unless(bytes == sent, Rule::Response, done.at, call.number, || {
            format!("a body of {sent} bytes came back as {bytes}")
        });
    }
}

/// 7.2: the last event names the kind.
fn kind_of_error(
    facts: &Facts<'_>,
    call: &Call<'_>,
    (done, answer, kind): (Moment, &Answer, ErrorKind),
    closing: Option<usize>,
    complaints: &mut Complaints,
) {
    let last = facts.attempts_of(call).next_back();
    let is_closed = |place: usize| closing.is_some_and(|closing| closing < place);
    let began = call.began.map_or(done.place, |began| began.place);
    let is_mistaken = call.caller.is_mistaken(facts.plan.edge);
    let holds = match kind {
        ErrorKind::Timeout => done.at >= call.deadline,
        ErrorKind::Unreachable => {
            last.is_some_and(|last| matches!(last.outcome, Outcome::Fault(_) | Outcome::CutByTimeout))
        }
        ErrorKind::Closed => last.is_none() && is_closed(began),
        ErrorKind::InvalidRequest => last.is_none() && is_mistaken,
        ErrorKind::RateLimited => facts.plan.configs.iter().any(|config| config.limit.is_some()),
        ErrorKind::CircuitOpen | ErrorKind::BulkheadFull => true,
        _ => false,
    };
    complaints.unless(holds, Rule::Kind, done.at, call.number, || {
        format!("{kind} is not what happened; its deadline was {}", call.deadline)
    });
    complaints.unless(!is_mistaken || kind == ErrorKind::InvalidRequest, Rule::Kind, done.at, call.number, || {
        format!("the request was a mistake, and ended with {kind}")
    });
    complaints.unless(
        is_mistaken || !is_closed(began) || kind == ErrorKind::Closed,
        Rule::Held,
        done.at,
        call.number,
        || format!("the client was closed before the call began, which ended with {kind}"),
    );
    let ended = answer.report.ended();
    let is_same = match kind {
        ErrorKind::Timeout => ended == Ended::Deadline,
        ErrorKind::CircuitOpen => ended == Ended::CircuitOpen,
        ErrorKind::BulkheadFull => ended == Ended::BulkheadFull,
        ErrorKind::RateLimited => ended == Ended::RateLimited,
        ErrorKind::Closed => ended == Ended::Closed,
        ErrorKind::InvalidRequest => ended == Ended::InvalidRequest,
        _ => true,
    };
    complaints.unless(is_same, Rule::Kind, done.at, call.number, || format!("{kind}, and the report says {ended}"));
}

/// 7.6: what the reader of a body gets is what came, and nothing after the deadline.
fn body(facts: &Facts<'_>, call: &Call<'_>, complaints: &mut Complaints) {
    // A response that was read whole first, as another attempt might have followed, is there at any time.
    let is_here = |attempt: &Attempt| matches!(attempt.outcome, Outcome::Answered(_));
    let was_whole = call
        .done
        .and_then(|(_, answer)| answer.response)
        .is_some_and(|(exchange, _)| is_here(&facts.attempts[exchange]));
    for piece in call.pieces.iter().filter(|_| !was_whole) {
        complaints.unless(piece.at <= call.deadline, Rule::Streaming, piece.at, call.number, || {
            format!("a piece was handed over after the deadline, {}", call.deadline)
        });
    }
    let (Some((read, how)), Some((_, answer))) = (call.read, call.done) else { return };
    let Some((exchange, _)) = answer.response else { return };
    let end = facts.attempts[exchange].end;
    let holds = match (how, end) {
        (Read::Whole(bytes), Some((_, How::Whole))) => {
            let attempt = &facts.attempts[exchange];
            match facts.plan.step(call.number, attempt.number, attempt.start.at).reply {
                crate::plan::Reply::Answer { body, .. } => {
                    bytes == body.pieces.iter().map(|(_, bytes)| bytes).sum::<usize>()
                }
                _ => false,
            }
        }
        (Read::Failed(ErrorKind::Unreachable), Some((_, How::Cut(Fault::Incomplete | Fault::Reset)))) => true,
        (Read::Failed(ErrorKind::Timeout), Some((_, How::Dropped))) => read.at >= call.deadline,
        _ => false,
    };
    complaints.unless(holds, Rule::Streaming, read.at, call.number, || format!("{how:?} was read, and {end:?} sent"));
}
