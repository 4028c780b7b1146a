//! One call, from its deadline to its report. This is the only loop: HTTP calls and guards run through it.
//!
//! ```text
//! deadline = the earliest of the upstream's total, the call's own, and the inherited one
//! loop
//!     admission   breaker's refusal, the line, the permit          -> refused: end
//!     attempt     one try, cut at its own timeout or the deadline
//!     settle      verdict to the breaker, answer to the budget, slot back, and in the same breath:
//!     decide      return, give up (one reason), or retry at an instant that the deadline can hold
//!     wait        the slot is free meanwhile
//! ```
//!
//! Every await may be dropped: the guards of `admission` give back what was held.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_http::Fault;
use steadfast_policy::deadline::{self, Deadline};
use steadfast_policy::retry::{self, Decision, GiveUp};
use steadfast_policy::{Advice, Time, Verdict};

use crate::admission::{self, Hold};
use crate::context;
use crate::error::ErrorKind;
use crate::event::Event;
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::park::Bell;
use crate::policies::{Refused, Step};
use crate::report::{AttemptRecord, Ended, Outcome, Report, WaitReason, WaitRecord};
use crate::timer::{self, Timer};
use crate::upstream::{Held, Kept, Rules, Upstream};

/// What the caller of one call may choose.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    /// Whose rate limit.
    pub(crate) key: &'a str,
    /// A deadline of the call's own; it can only shorten.
    pub(crate) timeout: Option<Duration>,
    /// The deadline of the request being served: however early it was said, what is left is what is left when the call
    /// begins.
    pub(crate) deadline: Option<Instant>,
    /// What was left of it when the call was made, where no more than that is known.
    pub(crate) inherited: Option<Time>,
    /// Whether the request that the task serves (`context`) limits the call, too: it was given no other.
    pub(crate) of_task: bool,
    /// Whether an attempt that the deadline cuts may count against the upstream (1.5).
    pub(crate) timeout_is_evidence: bool,
    /// Of the thread that drives the call, where that is no task of a runtime.
    pub(crate) bell: Option<&'a Bell>,
}

/// How a call ended.
pub(crate) struct Finished<Out> {
    /// The latest response, if any attempt got one.
    pub(crate) response: Option<Out>,
    /// The latest failure that an attempt brought; the last attempt may have been cut, and brought none. Boxed, as what
    /// a call that succeeds does not have should not be moved about with what it has.
    pub(crate) failure: Option<Box<Out>>,
    /// The kind of error, if there is no response.
    pub(crate) kind: ErrorKind,
    /// Everything that happened.
    pub(crate) report: Report,
    /// What the response holds on to while its body is being read.
    pub(crate) held: Option<Box<Held>>,
}

/// A call under way.
pub(crate) struct Call<'a> {
    pub(crate) upstream: &'a Arc<Upstream>,
    rules: &'a Rules,
    pub(crate) key: &'a str,
    timeout_is_evidence: bool,
    pub(crate) deadline: Deadline,
    pub(crate) now: Time,
    started: Time,
    pub(crate) hold: Hold<'a>,
    /// What happened before the last attempt.
    before: Option<Box<Report>>,
}

/// Why the loop stopped.
enum End {
    /// The last attempt's result is what comes back; and when it makes sense to call again, where that is known.
    Result(Ended, Option<Duration>),
    /// Our own limits refused the next attempt.
    Refused(Refused),
    /// The deadline cut the last attempt.
    Cut,
    /// Our own pool had no connection for the last attempt.
    PoolFull,
}

/// Runs one operation under the protection of its upstream.
///
/// Cancel safe: dropping the future gives back slot, place, permit and budget, and is no verdict (1.6).
#[inline]
pub(crate) fn run<'a, O: Operation>(
    upstream: &'a Arc<Upstream>,
    rules: &'a Rules,
    operation: &'a mut O,
    options: Options<'a>,
) -> impl Future<Output = Finished<O::Out>> {
    // What lives across an await is kept small, and what a first attempt that succeeds does not have is boxed: to move such
    // things about was most of what a call cost. For the same reason the call is made out here, and only once.
    let mut call = Call::begin(upstream, rules, options);
    async move {
        if call.deadline.is_expired(call.now) {
            let refused = if call.upstream.is_closed() { Refused::Closed } else { Refused::Deadline };
            return call.refuse(Earlier::default(), refused);
        }
        let mut timer = pin!(Timer::with(options.bell));
        let mut earlier = Earlier::default();
        let mut number = 0;
        loop {
            let granted = match call.hold.ask(call.now, call.key, call.deadline.at()) {
                Ok(Step::Granted(slot, permit)) => Ok((slot, permit)),
                Ok(Step::Queued(ticket, poll_at, missing)) => {
                    let waiting = (ticket, poll_at, missing);
                    Box::pin(admission::wait_in_line(&mut call, timer.as_mut(), waiting)).await
                }
                Err(refused) => Err(refused),
            };
            match granted {
                Ok(granted) => call.hold.grant(granted),
                Err(refused) => return call.refuse(earlier, refused),
            }
            number += 1;
            let started = call.now;
            operation.granted(call.attempt(number, started), &mut call.hold);
            let out = {
                // Dropped in here, before the slot is given back.
                let future = pin!(operation.attempt(call.attempt(number, started)));
                timer::until(future, timer.as_mut(), &call.upstream.clock, call.limit(started)).await
            };
            let attempt = call.attempt(number, started);
            let judged = call.judge(operation, attempt, out.as_ref());
            let (decision, kept) = call.settle(number, &judged);
            let record = call.record(attempt, &judged);
            let end = match (End::early(&judged), decision) {
                (Some(end), _) => end,
                (None, Decision::Return) => End::Result(Ended::Response, None),
                (None, Decision::GiveUp(reason)) => {
                    End::Result(reason.into(), call.worth_trying_after(reason, &judged))
                }
                (None, Decision::RetryAt { at, wait, reason, permit }) => {
                    call.hold.pay(permit);
                    call.before().push_attempt(record);
                    earlier.keep(out, judged.result);
                    Box::pin(call.wait_to_retry(number + 1, at, wait, reason.into(), timer.as_mut())).await;
                    continue;
                }
            };
            let held = kept.map(|kept| call.held(kept, &judged));
            let (response, failure) = earlier.and(out, judged.result);
            return call.finish(end, Some(record), response, failure, held);
        }
    }
}

impl<'a> Call<'a> {
    #[inline]
    fn begin(upstream: &'a Arc<Upstream>, rules: &'a Rules, options: Options<'a>) -> Self {
        let now = upstream.clock.now();
        let mut left = options.inherited.map(|at| now.until(at));
        if let Some(deadline) = options.deadline {
            let until = deadline.saturating_duration_since(Instant::now());
            left = Some(left.map_or(until, |known| known.min(until)));
        }
        if options.of_task
            && let Some(until) = context::time_left()
        {
            left = Some(left.map_or(until, |known| known.min(until)));
        }
        let inherited = left.map(|left| now + left);
        let deadline = Deadline::earliest(now, rules.total_timeout, options.timeout, inherited);
        let (key, timeout_is_evidence) = (options.key, options.timeout_is_evidence);
        let (hold, before) = (Hold::new(upstream), None);
        Self { upstream, rules, key, timeout_is_evidence, deadline, now, started: now, hold, before }
    }

    #[inline]
    fn attempt(&self, number: u32, started: Time) -> Attempt {
        Attempt { number, started, deadline: self.deadline.at() }
    }

    /// When an attempt is cut: at its own timeout or at the deadline, whichever comes first.
    #[inline]
    fn limit(&self, started: Time) -> Time {
        let own = self.rules.attempt_timeout.map_or(Time::MAX, |timeout| started + timeout);
        own.min(self.deadline.at())
    }

    /// What an attempt that has ended, or was cut, tells the policies.
    #[inline]
    fn judge<O: Operation>(&mut self, operation: &O, attempt: Attempt, out: Option<&O::Out>) -> Judged {
        self.now = self.now.max(self.upstream.clock.now());
        let mut judged = match out {
            Some(out) => operation.judge(self.now.since(attempt.started), out),
            None => {
                let limit = self.limit(attempt.started);
                self.now = self.now.max(limit);
                operation.judge_cut(if limit == attempt.deadline { Fault::Deadline } else { Fault::AttemptTimeout })
            }
        };
        // A transport may have seen the deadline pass before this timer did.
        let asked_at = operation.asked_at(attempt);
        if judged.outcome == Outcome::Fault(Fault::Deadline) {
            judged.judgement.verdict = asked_at.and_then(|asked_at| self.deadline_verdict(asked_at));
            judged.judgement.advice = Advice::NotRetryable;
        } else if asked_at.is_none() {
            judged.judgement.verdict = None;
        }
        judged
    }

    /// Gives back what the attempt held, and decides what follows.
    #[inline]
    fn settle(&mut self, number: u32, judged: &Judged) -> (Decision, Option<Kept>) {
        let (rules, now, deadline) = (&self.rules.retry, self.now, self.deadline);
        self.hold.settle(now, judged, |policies| {
            let random = policies.random();
            let (breaker, budget) = (&policies.breaker, &mut policies.budget);
            retry::decide(rules, number, &judged.judgement, now, deadline, breaker, budget, random)
        })
    }

    /// 1.5: an attempt that the deadline cut is evidence only if it had time enough to be answered.
    fn deadline_verdict(&self, asked_at: Time) -> Option<Verdict> {
        let rules = self.rules;
        let ran = self.now.since(asked_at);
        let evidence =
            self.timeout_is_evidence && deadline::is_timeout_evidence(ran, rules.timeout_evidence, rules.total_timeout);
        evidence.then_some(Verdict::Timeout)
    }

    /// When it makes sense to call again, although this call does not wait for it.
    fn worth_trying_after(&self, reason: GiveUp, judged: &Judged) -> Option<Duration> {
        let asked = judged.judgement.retry_after;
        match reason {
            GiveUp::CircuitOpen => {
                let refused = self.upstream.with(|policies| policies.breaker.check(self.now));
                refused.err().and_then(|refused| refused.retry_after).max(asked)
            }
            _ => asked,
        }
    }

    async fn wait_to_retry(
        &mut self,
        number: u32,
        at: Time,
        wait: Duration,
        reason: WaitReason,
        mut timer: Pin<&mut Timer<'_>>,
    ) {
        let upstream = self.upstream;
        upstream.events.emit(|| Event::Retry { upstream: upstream.name.clone(), attempt: number, wait, reason });
        std::future::poll_fn(|cx| timer.as_mut().poll_sleep(cx, &upstream.clock, at)).await;
        upstream.clock.note_sleep(wait);
        // Reported as decided: a timer that fires a little late is not what was asked for.
        self.record_wait(self.now, at, reason);
        self.now = at.max(upstream.clock.now());
    }

    pub(crate) fn record_wait(&mut self, from: Time, to: Time, reason: WaitReason) {
        let (start, duration) = (from.since(self.started), to.since(from));
        if !duration.is_zero() {
            if reason == WaitReason::RateLimit {
                self.upstream.clock.note_sleep(duration);
            }
            self.upstream.events.waited(reason, duration);
            self.before().push_wait(WaitRecord { start, duration, reason });
        }
    }

    fn before(&mut self) -> &mut Report {
        self.before.get_or_insert_default()
    }

    /// An attempt that has ended, for the report; whoever listens is told.
    #[inline]
    fn record(&self, attempt: Attempt, judged: &Judged) -> AttemptRecord {
        let record = AttemptRecord {
            number: attempt.number,
            start: attempt.started.since(self.started),
            duration: self.now.since(attempt.started),
            outcome: judged.outcome,
            sent: judged.sent,
        };
        let upstream = self.upstream;
        upstream.events.emit_fine(|| Event::Attempt { upstream: upstream.name.clone(), attempt: record });
        record
    }

    /// What the response holds on to when the call has ended.
    fn held(&self, kept: Kept, judged: &Judged) -> Box<Held> {
        Box::new(Held::new(self.upstream, kept, judged.judgement.verdict, self.deadline.at()))
    }

    /// Ends a call whose next attempt may not go.
    #[cold]
    fn refuse<Out>(mut self, earlier: Earlier<Out>, refused: Refused) -> Finished<Out> {
        self.hold.refund(self.now);
        let response = earlier.response.map(|response| *response);
        self.finish(End::Refused(refused), None, response, earlier.failure, None)
    }

    #[inline]
    fn finish<Out>(
        self,
        end: End,
        last: Option<AttemptRecord>,
        response: Option<Out>,
        failure: Option<Box<Out>>,
        held: Option<Box<Held>>,
    ) -> Finished<Out> {
        let (ended, kind, retry_after) = end.explain();
        let mut report = self.before.map_or_else(Report::default, |before| *before);
        if let Some(last) = last {
            report.push_attempt(last);
        }
        report.end(ended, self.now.since(self.started), retry_after);
        let upstream = self.upstream;
        if ended != Ended::Response {
            tell_limit(upstream, &end, kind, retry_after);
        }
        upstream.events.emit_fine(|| Event::Ended {
            upstream: upstream.name.clone(),
            ended,
            answered: response.is_some(),
            attempts: report.attempt_count(),
            duration: report.duration(),
        });
        Finished { response, failure, kind, report, held }
    }
}

/// Tells if it was a limit of ours that ended the call.
#[cold]
fn tell_limit(upstream: &Upstream, end: &End, kind: ErrorKind, retry_after: Option<Duration>) {
    match *end {
        End::Refused(Refused::Deadline | Refused::Closed) | End::Cut => {}
        End::Refused(_) | End::PoolFull => {
            upstream.events.emit(|| Event::Rejected { upstream: upstream.name.clone(), kind, retry_after });
        }
        End::Result(reason @ (Ended::BudgetCeiling | Ended::BudgetEfficacy), _) => {
            upstream.events.emit(|| Event::BudgetDenied { upstream: upstream.name.clone(), reason });
        }
        End::Result(..) => {}
    }
}

impl End {
    /// What ends the call whatever the retry rules say.
    #[inline]
    fn early(judged: &Judged) -> Option<Self> {
        match (judged.result, judged.outcome) {
            (ResultKind::PoolFull, _) => Some(Self::PoolFull),
            (ResultKind::StaleResponse, _) => Some(Self::Result(Ended::Stale408, None)),
            (_, Outcome::Fault(Fault::Deadline)) => Some(Self::Cut),
            _ => None,
        }
    }

    /// The reason, the kind of error if no attempt got a response (7.2), and when to come back.
    #[inline]
    fn explain(&self) -> (Ended, ErrorKind, Option<Duration>) {
        match *self {
            Self::Result(ended, retry_after) => (ended, ErrorKind::Unreachable, retry_after),
            Self::Cut => (Ended::Deadline, ErrorKind::Timeout, None),
            Self::PoolFull => (Ended::BulkheadFull, ErrorKind::BulkheadFull, None),
            Self::Refused(refused) => (refused.ended(), refused.kind(), refused.retry_after()),
        }
    }
}

/// What the attempts before the last one have brought.
struct Earlier<Out> {
    response: Option<Box<Out>>,
    failure: Option<Box<Out>>,
}

impl<Out> Default for Earlier<Out> {
    fn default() -> Self {
        Self { response: None, failure: None }
    }
}

impl<Out> Earlier<Out> {
    fn keep(&mut self, out: Option<Out>, kind: ResultKind) {
        // An attempt that was cut brings none; the one before it is still the latest.
        let Some(out) = out.map(Box::new) else { return };
        let place = if kind.is_response() { &mut self.response } else { &mut self.failure };
        *place = Some(out);
    }

    /// The latest response and the latest failure, after an attempt that brought `out`.
    #[inline]
    fn and(self, out: Option<Out>, kind: ResultKind) -> (Option<Out>, Option<Box<Out>>) {
        if kind.is_response() {
            return (out, self.failure);
        }
        (self.response.map(|response| *response), out.map(Box::new).or(self.failure))
    }
}
