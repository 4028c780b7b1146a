//! The log in order: each call, each exchange, and what an exchange means by the contract's words.

use std::time::Duration;

use steadfast::Fault;
use steadfast::policy::Time;

use super::{Complaints, Rule};
use crate::log::{Answer, Entry, How, Read, What};
use crate::plan::{Act, Asked, Caller, Config, Edge, Plan};

/// A place in the log, and its instant. Of two things at one instant the place tells the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) place: usize,
    pub(super) at: Time,
}

/// One call, as its caller sees it.
pub(super) struct Call<'a> {
    pub(super) number: usize,
    pub(super) caller: &'a Caller,
    /// The settings that were in force when it was made.
    pub(super) config: &'a Config,
    pub(super) made: Moment,
    pub(super) began: Option<Moment>,
    pub(super) stalled: Option<Moment>,
    pub(super) cancelled: Option<Moment>,
    pub(super) done: Option<(Moment, &'a Answer)>,
    pub(super) read: Option<(Moment, Read)>,
    pub(super) pieces: Vec<Moment>,
    /// By their numbers, in order.
    pub(super) exchanges: Vec<usize>,
    /// When it has to be over. `Time::MAX` before it begins.
    pub(super) deadline: Time,
}

/// One attempt, as the transport sees it.
pub(super) struct Attempt {
    pub(super) call: usize,
    pub(super) number: u32,
    pub(super) start: Moment,
    pub(super) is_written: bool,
    pub(super) head: Option<(Moment, u16, Asked)>,
    pub(super) end: Option<(Moment, How)>,
    pub(super) outcome: Outcome,
}

/// How an attempt ended for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A response, read whole; an operation's value or error.
    Answered(u16),
    /// A response whose body the caller reads.
    Opened(u16),
    /// No whole response.
    Fault(Fault),
    /// Its own time was up.
    CutByTimeout,
    /// The call's time was up.
    CutByDeadline,
    /// The caller has gone.
    Cancelled,
}

/// What an attempt tells the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Success,
    Paced,
    Failure,
}

pub(super) struct Facts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) log: &'a [Entry],
    pub(super) calls: Vec<Option<Call<'a>>>,
    pub(super) attempts: Vec<Attempt>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(plan: &'a Plan, log: &'a [Entry], complaints: &mut Complaints) -> Self {
        let calls = plan.callers.iter().map(|_| None).collect();
        let mut facts = Self { plan, log, calls, attempts: Vec::new() };
        let mut config = &plan.configs[0];
        for (place, entry) in log.iter().enumerate() {
            if let What::Operator(Act::Reload(number)) = entry.what {
                config = &plan.configs[number];
            }
            facts.take(Moment { place, at: entry.at }, entry, config);
        }
        for number in 0..facts.attempts.len() {
            facts.attempts[number].outcome = facts.outcome(number, complaints);
        }
        facts
    }

    fn take(&mut self, moment: Moment, entry: &'a Entry, config: &'a Config) {
        match &entry.what {
            What::Made { call } => self.calls[*call] = Some(self.made(*call, moment, config)),
            What::Began { call } => {
                let call = self.call_mut(*call);
                let own = call.caller.timeout.map_or(call.config.total, |timeout| timeout.min(call.config.total));
                let inherited = call.caller.inherited.map_or(Time::MAX, |left| call.made.at + left);
                (call.began, call.deadline) = (Some(moment), (moment.at + own).min(inherited));
            }
            What::Stalled { call } => self.call_mut(*call).stalled = Some(moment),
            What::Cancelled { call } => self.call_mut(*call).cancelled = Some(moment),
            What::Done { call, answer } => self.call_mut(*call).done = Some((moment, answer)),
            What::Piece { call } => self.call_mut(*call).pieces.push(moment),
            What::Read { call, how } => self.call_mut(*call).read = Some((moment, *how)),
            What::Start { exchange, call, number } => {
                self.call_mut(*call).exchanges.push(*exchange);
                let (call, number, start) = (*call, *number, moment);
                let (is_written, head, end, outcome) = (false, None, None, Outcome::Cancelled);
                self.attempts.push(Attempt { call, number, start, is_written, head, end, outcome });
            }
            What::Written { exchange } => self.attempts[*exchange].is_written = true,
            What::Head { exchange, status, asked } => {
                self.attempts[*exchange].head = Some((moment, *status, *asked));
            }
            What::End { exchange, how } => self.attempts[*exchange].end = Some((moment, *how)),
            What::Told(_) | What::Operator(_) | What::AllEnded | What::Sampled(_) | What::Over(_) => {}
        }
    }

    fn made(&self, number: usize, made: Moment, config: &'a Config) -> Call<'a> {
        Call {
            number,
            caller: self.plan.caller(number),
            config,
            made,
            began: None,
            stalled: None,
            cancelled: None,
            done: None,
            read: None,
            pieces: Vec::new(),
            exchanges: Vec::new(),
            deadline: Time::MAX,
        }
    }

    pub(super) fn call(&self, number: usize) -> &Call<'a> {
        self.calls[number].as_ref().unwrap()
    }

    fn call_mut(&mut self, number: usize) -> &mut Call<'a> {
        self.calls[number].as_mut().unwrap()
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.calls.iter().flatten()
    }

    pub(super) fn of(&self, attempt: &Attempt) -> &Call<'a> {
        self.call(attempt.call)
    }

    /// The call's attempts, in order.
    pub(super) fn attempts_of<'f>(&'f self, call: &'f Call<'a>) -> impl DoubleEndedIterator<Item = &'f Attempt> {
        call.exchanges.iter().map(|exchange| &self.attempts[*exchange])
    }

    /// Whether the body of this answer is the caller's to read: unless another attempt may follow.
    fn is_opened(&self, call: &Call<'_>, status: u16) -> bool {
        let may_follow =
            call.config.retry_statuses.contains(&status) && call.caller.may_repeat(self.plan.edge) == Some(true);
        call.caller.reader.is_some() && !may_follow
    }

    fn outcome(&self, number: usize, complaints: &mut Complaints) -> Outcome {
        let attempt = &self.attempts[number];
        let call = self.of(attempt);
        if let Some((_, status, _)) = attempt.head.filter(|(_, status, _)| self.is_opened(call, *status)) {
            return Outcome::Opened(status);
        }
        let Some((end, how)) = attempt.end else { return Outcome::Cancelled };
        match (how, attempt.head) {
            (How::Whole, Some((_, status, _))) => Outcome::Answered(status),
            (How::Failed(fault) | How::Cut(fault), _) => Outcome::Fault(fault),
            (How::Whole, None) | (How::Dropped, _) => {
                let own = call.config.attempt.map_or(Time::MAX, |timeout| attempt.start.at + timeout);
                if call.cancelled.is_some_and(|cancelled| cancelled.place < end.place) {
                    Outcome::Cancelled
                } else if end.at == own.min(call.deadline) {
                    if own < call.deadline { Outcome::CutByTimeout } else { Outcome::CutByDeadline }
                } else {
                    complaints.about(Rule::Dropped, end.at, call.number, "its attempt was dropped for no reason");
                    Outcome::Cancelled
                }
            }
        }
    }

    /// Whether the attempt brought what the call returns, whatever comes after it.
    pub(super) fn is_response(&self, attempt: &Attempt) -> bool {
        match attempt.outcome {
            Outcome::Answered(status) => self.plan.edge == Edge::Http || status == 200,
            Outcome::Opened(_) => true,
            _ => false,
        }
    }

    /// When the attempt was over for the call: at the head, if its caller reads the body.
    pub(super) fn over(&self, attempt: &Attempt) -> Option<Moment> {
        match attempt.outcome {
            Outcome::Opened(_) => attempt.head.map(|(at, ..)| at),
            _ => attempt.end.map(|(at, _)| at),
        }
    }

    /// What the attempt told the breaker, and when; `None`: nothing.
    pub(super) fn verdict(&self, attempt: &Attempt, is_probe: bool) -> Option<(Moment, Verdict)> {
        let call = self.of(attempt);
        let over = self.over(attempt)?;
        match attempt.outcome {
            Outcome::Answered(status) => Some((over, self.verdict_of(call, status)?)),
            Outcome::Opened(status) => {
                let by_head = self.verdict_of(call, status)?;
                if by_head == Verdict::Failure || is_probe {
                    return Some((over, by_head));
                }
                let (end, how) = attempt.end?;
                match how {
                    How::Whole => Some((end, by_head)),
                    How::Cut(_) => Some((end, Verdict::Failure)),
                    How::Failed(_) | How::Dropped => None,
                }
            }
            Outcome::Fault(Fault::PoolTimeout) | Outcome::Cancelled => None,
            Outcome::Fault(_) | Outcome::CutByTimeout => Some((over, Verdict::Failure)),
            Outcome::CutByDeadline => {
                let ran = over.at.since(attempt.start.at);
                let is_evidence = ran >= call.config.evidence.min(call.config.total / 2);
                (call.caller.timeout_is_evidence && is_evidence).then_some((over, Verdict::Failure))
            }
        }
    }

    fn verdict_of(&self, call: &Call<'_>, status: u16) -> Option<Verdict> {
        match self.plan.edge {
            Edge::Http if call.config.breaker_statuses.contains(&status) => Some(Verdict::Failure),
            Edge::Http if status == 429 => Some(Verdict::Paced),
            Edge::Http => Some(Verdict::Success),
            Edge::Guard if status == 200 => Some(Verdict::Success),
            Edge::Guard if call.caller.retry == Some(false) => Some(Verdict::Failure),
            Edge::Guard => match status {
                429 => Some(Verdict::Paced),
                500 | 502..=504 => Some(Verdict::Failure),
                _ => None,
            },
        }
    }

    /// Whether another attempt can fix what this one ended with, and the request may be sent again (2.1 to 2.4).
    pub(super) fn may_follow(&self, attempt: &Attempt) -> bool {
        let call = self.of(attempt);
        let nothing_sent = !attempt.is_written && attempt.head.is_none();
        let repeatable = call.caller.may_repeat(self.plan.edge).unwrap_or(nothing_sent);
        let fixable = match (attempt.outcome, self.plan.edge) {
            (Outcome::Answered(status), Edge::Http) => call.config.retry_statuses.contains(&status),
            (Outcome::Answered(status), Edge::Guard) => matches!(status, 429 | 502..=504),
            (Outcome::Fault(fault), _) => !matches!(fault, Fault::PoolTimeout | Fault::Certificate),
            (Outcome::CutByTimeout, _) => true,
            (Outcome::Opened(_) | Outcome::CutByDeadline | Outcome::Cancelled, _) => false,
        };
        repeatable && fixable
    }

    /// Not before when the next attempt may go, as the answer to this one asks; `None`: it asks for nothing.
    pub(super) fn asked(&self, attempt: &Attempt) -> Option<Time> {
        let (Outcome::Answered(_), Some((head, _, asked))) = (attempt.outcome, attempt.head) else { return None };
        let over = self.over(attempt)?.at;
        // An operation says how long to wait when it ends; a response's date is read when its body is there.
        let seconds = |seconds| Some(over + Duration::from_secs(seconds)).filter(|_| seconds > 0);
        match asked {
            Asked::Nothing | Asked::Garbage(_) => None,
            Asked::Seconds(wait) => seconds(wait),
            Asked::TwoLines(one, two) => seconds(one.max(two)),
            Asked::Date(from_now) => {
                let said = if self.plan.edge == Edge::Http { head.at } else { over };
                let date = Time::from_secs(said.since(Time::ZERO).as_secs().saturating_add_signed(from_now));
                (date > over).then_some(date)
            }
        }
    }
}
