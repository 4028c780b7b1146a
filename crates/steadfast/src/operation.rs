//! What the loop runs: an HTTP exchange, or any closure. The loop knows neither.

use std::time::Duration;

#[cfg(feature = "otel")]
use steadfast_http::TraceContext;
use steadfast_http::{Fault, Sent};
use steadfast_policy::{Advice, Judgement, Time};

use crate::admission::Hold;
use crate::report::Outcome;
use crate::telemetry::Shown;

/// What an attempt is told when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Its number; the first is 1.
    pub(crate) number: u32,
    /// When it began.
    pub(crate) started: Time,
    /// When the call must be over.
    pub(crate) deadline: Time,
}

impl Attempt {
    /// What is left of the deadline when the attempt begins.
    pub(crate) fn time_left(&self) -> Duration {
        self.started.until(self.deadline)
    }
}

/// How an attempt ended, and what that tells the policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub(crate) judgement: Judgement,
    pub(crate) outcome: Outcome,
    pub(crate) sent: Sent,
    /// The kind of a result that is worth returning.
    pub(crate) result: ResultKind,
}

impl Judged {
    /// Whether there is nothing to repair: it is what the call returns.
    #[inline]
    pub(crate) fn is_answer(&self) -> bool {
        self.judgement.advice == Advice::Done && matches!(self.result, ResultKind::Response | ResultKind::Open)
    }
}

/// Whether what an attempt brought is what the call returns when retrying stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// A response (or a value): the latest one is returned, whatever comes after it (7.1).
    Response,
    /// A response whose body is still to be read by the caller: it ends the call, and the attempt holds on to what it
    /// has until the body ends (7.6).
    Open,
    /// A 408 from a reused connection, which may answer an earlier request: returned, never repeated.
    StaleResponse,
    /// A failure without a response: an error of the call.
    Failure,
    /// Our own pool had no connection: the call ends as if the bulkhead had refused it (4.3).
    PoolFull,
}

impl ResultKind {
    /// Whether it is what the call returns, whatever comes after it.
    #[inline]
    pub(crate) fn is_response(self) -> bool {
        matches!(self, Self::Response | Self::Open | Self::StaleResponse)
    }
}

/// One thing to do, possibly several times.
pub(crate) trait Operation: Send {
    /// What an attempt brings: a response or an error, a value or an error.
    type Out: Send;

    /// The attempt may go. Whoever cannot be stopped at the deadline sees to it here that its slot is kept until it ends.
    fn granted(&mut self, _attempt: Attempt, _hold: &mut Hold<'_>) {}

    /// One try. It is dropped where it stands when its time is up, and everything it holds goes with it.
    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Self::Out> + Send;

    /// What the result of an attempt that ran so long tells the policies.
    fn judge(&self, ran: Duration, out: &Self::Out) -> Judged;

    /// When the dependency was first asked, in the attempt that was cut; `None` if it never was. What came before is
    /// our own time, and no evidence against it (1.5).
    fn asked_at(&self, attempt: Attempt) -> Option<Time> {
        Some(attempt.started)
    }

    /// What an attempt tells them that was cut by its own timeout or by the deadline.
    fn judge_cut(&self, fault: Fault) -> Judged;

    /// What spans may show of it; `None` for what is not HTTP.
    fn shown(&self) -> Option<Shown<'_>> {
        None
    }

    /// The span of the attempt that is about to begin, for the dependency to see.
    #[cfg(feature = "otel")]
    fn in_trace(&mut self, _span: TraceContext) {}

    /// The version of HTTP in which a response came.
    #[cfg(feature = "otel")]
    fn version(_out: &Self::Out) -> Option<http::Version> {
        None
    }
}
