//! Whether what was seen at the two edges keeps the contract. It knows the contract's text, and shares no code with the
//! policies: not a window, not a ceiling, not a verdict.
//!
//! First the log is put in order by call and exchange (`facts`); then each part asks its own questions.

mod breaker;
mod budget;
mod call;
mod facts;
mod limits;
mod report;
mod rest;

use std::fmt;

use steadfast::policy::Time;

use crate::log::Entry;
use crate::plan::Plan;
use facts::Facts;

/// What can be complained of. The number is the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// 1.1: a call is over at its deadline.
    Deadline,
    /// 1.6: a dropped call sends nothing further.
    Dropped,
    /// 2.1: no more attempts than allowed.
    Attempts,
    /// 2.2, 2.3: what may not be repeated is sent once.
    Repeat,
    /// 2.5: the backoff.
    Backoff,
    /// 2.6: never before `Retry-After`.
    RetryAfter,
    /// 2.7: a retry has time.
    RetryTime,
    /// 3.1: retries stay below the ceiling, and are counted.
    Ceiling,
    /// 3.2: what does not help is not paid for.
    Gate,
    /// 4.2 to 4.4, 4.7: what opens the breaker.
    Opening,
    /// 4.5: an open breaker sends nothing for as long as it is to.
    Open,
    /// 4.6: one probe, and a place that is given back.
    Probe,
    /// 5.1: no more in flight than slots.
    Bulkhead,
    /// 5.1, 5.2, 1.6: slots are held by attempts and by nobody else.
    Slots,
    /// 5.1, 6.2: who waits is told when it can go.
    Wake,
    /// 6.1: no more starts than the limit in any window.
    RateLimit,
    /// 7.1: a response, if there was one.
    Response,
    /// 7.2: the kind of the error.
    Kind,
    /// 7.4: the report.
    Report,
    /// 7.6: a body that is read as it comes.
    Streaming,
    /// 7.7 and the end of the world: nothing is held.
    Held,
}

#[derive(Clone, Debug)]
pub(crate) struct Complaint {
    pub(crate) rule: Rule,
    pub(crate) at: Time,
    pub(crate) call: Option<usize>,
    pub(crate) text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.rule, self.at)?;
        if let Some(call) = self.call {
            write!(f, ", call {call}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Where complaints go.
#[derive(Default)]
pub(crate) struct Complaints(Vec<Complaint>);

impl Complaints {
    fn about(&mut self, rule: Rule, at: Time, call: impl Into<Option<usize>>, text: impl fmt::Display) {
        self.0.push(Complaint { rule, at, call: call.into(), text: text.to_string() });
    }

    fn unless(
        &mut self,
        holds: bool,
        rule: Rule,
        at: Time,
        call: impl Into<Option<usize>>,
        text: impl FnOnce() -> String,
    ) {
        if !holds {
            self.about(rule, at, call, text());
        }
    }
}

/// Everything in the log that is against the contract, in the order of time.
pub(crate) fn complaints(plan: &Plan, log: &[Entry]) -> Vec<Complaint> {
    let mut complaints = Complaints::default();
    let facts = Facts::new(plan, log, &mut complaints);
    call::check(&facts, &mut complaints);
    limits::check(&facts, &mut complaints);
    budget::check(&facts, &mut complaints);
    breaker::check(&facts, &mut complaints);
    report::check(&facts, &mut complaints);
    rest::check(&facts, &mut complaints);
    let mut complaints = complaints.0;
    complaints.sort_by_key(|complaint| complaint.at);
    complaints
}
