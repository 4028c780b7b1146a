//! What a report is made of, in few words. The loop hands it up for every call, and few read it: to write the report itself
//! each time, and to move it from hand to hand, cost as much as asking a policy.
//!
//! Invariant: the report that it makes is the one that the events told.

use steadfast_http::Sent;
use steadfast_policy::Time;

use crate::report::{AttemptRecord, Ended, Outcome, Report};

/// One try, as the loop knows it.
#[derive(Clone, Copy)]
pub(crate) struct Tried {
    pub(crate) number: u32,
    pub(crate) started: Time,
    pub(crate) ended: Time,
    pub(crate) outcome: Outcome,
    pub(crate) sent: Sent,
}

impl Tried {
    /// The same for the report of a call that began at `begun`.
    pub(crate) fn record(self, begun: Time) -> AttemptRecord {
        let (start, duration) = (self.started.since(begun), self.ended.since(self.started));
        AttemptRecord { number: self.number, start, duration, outcome: self.outcome, sent: self.sent }
    }
}

/// What a report is made of.
#[must_use = "it is the story of a call"]
#[derive(Clone)]
pub(crate) struct Account {
    /// What happened before the last attempt.
    before: Option<Box<Report>>,
    last: Option<Tried>,
    begun: Time,
    over: Time,
    ended: Ended,
}

impl Account {
    #[inline]
    pub(crate) fn new(before: Option<Box<Report>>, last: Option<Tried>, begun: Time, over: Time, ended: Ended) -> Self {
        Self { before, last, begun, over, ended }
    }

    /// How many attempts were made.
    #[inline]
    pub(crate) fn attempt_count(&self) -> u32 {
        match (&self.last, &self.before) {
            (Some(last), _) => last.number,
            (None, Some(before)) => before.attempt_count(),
            (None, None) => 0,
        }
    }

    /// The report itself.
    pub(crate) fn report(self) -> Report {
        let mut report = self.before.map_or_else(Report::default, |before| *before);
        if let Some(last) = self.last {
            report.push_attempt(last.record(self.begun));
        }
        report.end(self.ended, self.over.since(self.begun), None);
        report
    }
}
