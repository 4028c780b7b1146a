//! What a report is made of, in few words. Every call keeps it, and few read it: to write the report itself each time cost
//! as much as asking a policy.
//!
//! Invariant: the report that it makes is the one that the events told.

use std::time::Duration;

use steadfast_http::Sent;
use steadfast_policy::Time;

use crate::error::ErrorKind;
use crate::report::{AttemptRecord, Ended, Outcome, Report, WaitReason, WaitRecord};

/// One try, as the loop knows it.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    pub(super) number: u32,
    pub(super) started: Time,
    pub(super) ended: Time,
    pub(super) outcome: Outcome,
    pub(super) sent: Sent,
}

/// What has happened in a call.
#[derive(Clone)]
pub(super) struct Account {
    begun: Time,
    /// Attempts that have begun.
    attempts: u32,
    /// What happened before the last attempt.
    before: Option<Box<Report>>,
    last: Option<Tried>,
    ended: Ended,
    kind: ErrorKind,
}

impl Account {
    /// Of a call that begins now.
    #[inline]
    pub(super) fn new(begun: Time) -> Self {
        Self { begun, attempts: 0, before: None, last: None, ended: Ended::Response, kind: ErrorKind::Unreachable }
    }

    /// The next attempt begins: its number.
    #[inline]
    pub(super) fn attempt(&mut self) -> u32 {
        self.attempts += 1;
        self.attempts
    }

    /// An attempt as the report shows it.
    pub(super) fn record(&self, tried: Tried) -> AttemptRecord {
        let (start, duration) = (tried.started.since(self.begun), tried.ended.since(tried.started));
        AttemptRecord { number: tried.number, start, duration, outcome: tried.outcome, sent: tried.sent }
    }

    /// Another attempt follows this one.
    pub(super) fn go_on(&mut self, tried: Tried) {
        let attempt = self.record(tried);
        self.before().push_attempt(attempt);
    }

    /// The call waited from then on, so long.
    pub(super) fn wait(&mut self, from: Time, duration: Duration, reason: WaitReason) {
        let start = from.since(self.begun);
        self.before().push_wait(WaitRecord { start, duration, reason });
    }

    /// The call is over; its last attempt was this one, or none could go. `kind` is that of its error, if it brought no
    /// response.
    #[inline]
    pub(super) fn end(&mut self, last: Option<Tried>, ended: Ended, kind: ErrorKind) {
        (self.last, self.ended, self.kind) = (last, ended, kind);
    }

    /// The kind of error that the call has ended with, if it brought no response.
    #[inline]
    pub(super) fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// When it makes sense to call again, where that is known.
    pub(super) fn worth_trying_after(&mut self, wait: Option<Duration>) {
        if wait.is_some() {
            self.before().worth_trying_after(wait);
        }
    }

    /// Why the call has ended.
    pub(super) fn ended(&self) -> Ended {
        self.ended
    }

    /// How many attempts have begun.
    pub(super) fn attempt_count(&self) -> u32 {
        self.attempts
    }

    /// How long the call has taken by now.
    pub(super) fn lasted(&self, now: Time) -> Duration {
        now.since(self.begun)
    }

    /// The report itself, of a call that was over then. There is one to take.
    pub(super) fn take_report(&mut self, over: Time) -> Report {
        let mut report = self.before.take().map_or_else(Report::default, |before| *before);
        if let Some(last) = self.last.take() {
            report.push_attempt(self.record(last));
        }
        report.end(self.ended, self.lasted(over), None);
        report
    }

    fn before(&mut self) -> &mut Report {
        self.before.get_or_insert_default()
    }
}
