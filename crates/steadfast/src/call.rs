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

use steadfast_http::{CallContext, Fault};
use steadfast_policy::deadline::{self, Deadline};
use steadfast_policy::retry::{self, Decision, GiveUp};
use steadfast_policy::{Advice, Time, Verdict};

use crate::admission::{self, PaidRetry};
use crate::context;
use crate::error::ErrorKind;
use crate::event::Event;
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::report::{AttemptRecord, Ended, Outcome, Report, WaitReason, WaitRecord};
use crate::timer::{self, Timer};
use crate::upstream::{Held, Refused, Rules, Upstream};

/// What the caller of one call may choose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// Whose rate limit.
    pub(crate) key: &'a str,
    /// A deadline of the call's own; it can only shorten.
    pub(crate) timeout: Option<Duration>,
    /// What was left of the deadline of the request being served when the call began.
    pub(crate) inherited: Option<Duration>,
    /// Whether the request that the task serves (`context`) limits the call, too: it was given no other.
    pub(crate) of_task: bool,
    /// Whether an attempt that the deadline cuts may count against the upstream (1.5).
    pub(crate) timeout_is_evidence: bool,
}

/// What is left of the deadline of the request being served: as given for this call, or as its context has it.
pub(crate) fn inherited(deadline: Option<Instant>, context: Option<&CallContext>) -> Option<Duration> {
    let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
    left.into_iter().chain(context.and_then(CallContext::time_left)).min()
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
    pub(crate) options: Options<'a>,
    pub(crate) deadline: Deadline,
    pub(crate) now: Time,
    started: Time,
    report: Report,
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
pub(crate) async fn run<O: Operation>(
    upstream: &Arc<Upstream>,
    rules: &Rules,
    operation: &mut O,
    options: Options<'_>,
) -> Finished<O::Out> {
    let mut call = Call::begin(upstream, rules, options);
    let mut results = Results { response: None, failure: None, held: None };
    let Some(_running) = upstream.begin_call() else {
        return call.finish(results, End::Refused(Refused::Closed));
    };
    if call.deadline.is_expired(call.now) {
        return call.finish(results, End::Refused(Refused::Deadline));
    }
    let mut timer = pin!(Timer::new());
    let mut paid: Option<PaidRetry<'_>> = None;
    let mut number = 0;
    loop {
        let grant = match admission::admit(&mut call, timer.as_mut(), paid.take()).await {
            Ok(grant) => grant,
            Err(refused) => return call.finish(results, End::Refused(refused)),
        };
        number += 1;
        let attempt = Attempt { number, started: call.now, deadline: call.deadline.at() };
        let (out, judged) = call.attempt(operation, attempt, timer.as_mut()).await;
        let (decision, held) = grant.settle(call.now, &judged, |policies| {
            let random = policies.random();
            let (breaker, budget) = (&policies.breaker, &mut policies.budget);
            retry::decide(&rules.retry, number, &judged.judgement, call.now, call.deadline, breaker, budget, random)
        });
        call.record_attempt(attempt, &judged);
        results.keep(out, judged.result);
        results.held = held.map(|held| Box::new(held.until(call.deadline.at())));
        if let Some(end) = End::early(&judged) {
            return call.finish(results, end);
        }
        match decision {
            Decision::Return => return call.finish(results, End::Result(Ended::Response, None)),
            Decision::GiveUp(reason) => {
                let retry_after = call.worth_trying_after(reason, &judged);
                return call.finish(results, End::Result(reason.into(), retry_after));
            }
            Decision::RetryAt { at, wait, reason, permit } => {
                paid = Some(PaidRetry::new(upstream, permit));
                call.wait_to_retry(number + 1, at, wait, reason.into(), timer.as_mut()).await;
            }
        }
    }
}

impl<'a> Call<'a> {
    fn begin(upstream: &'a Arc<Upstream>, rules: &'a Rules, options: Options<'a>) -> Self {
        let now = upstream.clock.now();
        let of_task = options.of_task.then(context::time_left).flatten();
        let inherited = options.inherited.into_iter().chain(of_task).min().map(|left| now + left);
        let deadline = Deadline::earliest(now, rules.total_timeout, options.timeout, inherited);
        Self { upstream, rules, options, deadline, now, started: now, report: Report::default() }
    }

    /// One try, cut at its own timeout or at the deadline, whichever comes first. Its future is dropped in here, before
    /// the slot is given back.
    async fn attempt<O: Operation>(
        &mut self,
        operation: &mut O,
        attempt: Attempt,
        timer: Pin<&mut Timer>,
    ) -> (Option<O::Out>, Judged) {
        let clock = &self.upstream.clock;
        let own = self.rules.attempt_timeout.map_or(Time::MAX, |timeout| attempt.started + timeout);
        let limit = own.min(attempt.deadline);
        let out = {
            let future = pin!(operation.attempt(attempt));
            timer::until(future, timer, clock, limit).await
        };
        self.now = self.now.max(clock.now());
        let mut judged = match &out {
            Some(out) => operation.judge(self.now.since(attempt.started), out),
            None => {
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
        (out, judged)
    }

    /// 1.5: an attempt that the deadline cut is evidence only if it had time enough to be answered.
    fn deadline_verdict(&self, asked_at: Time) -> Option<Verdict> {
        let rules = self.rules;
        let ran = self.now.since(asked_at);
        let evidence = self.options.timeout_is_evidence
            && deadline::is_timeout_evidence(ran, rules.timeout_evidence, rules.total_timeout);
        evidence.then_some(Verdict::Timeout)
    }

    /// When it makes sense to call again, although this call does not wait for it.
    fn worth_trying_after(&self, reason: GiveUp, judged: &Judged) -> Option<Duration> {
        match reason {
            GiveUp::RetryAfterTooLong => judged.judgement.retry_after,
            GiveUp::CircuitOpen => {
                let refused = self.upstream.with(|policies| policies.breaker.check(self.now));
                refused.err().and_then(|refused| refused.retry_after)
            }
            _ => None,
        }
    }

    async fn wait_to_retry(
        &mut self,
        number: u32,
        at: Time,
        wait: Duration,
        reason: WaitReason,
        mut timer: Pin<&mut Timer>,
    ) {
        let upstream = self.upstream;
        upstream.events.emit(|| Event::Retry { upstream: upstream.name.clone(), attempt: number, wait, reason });
        std::future::poll_fn(|cx| timer.as_mut().poll_sleep(cx, &upstream.clock, at)).await;
        // Reported as decided: a timer that fires a little late is not what was asked for.
        self.record_wait(self.now, at, reason);
        self.now = at.max(upstream.clock.now());
    }

    pub(crate) fn record_wait(&mut self, from: Time, to: Time, reason: WaitReason) {
        let duration = to.since(from);
        if !duration.is_zero() {
            self.report.push_wait(WaitRecord { start: from.since(self.started), duration, reason });
        }
    }

    fn record_attempt(&mut self, attempt: Attempt, judged: &Judged) {
        let record = AttemptRecord {
            number: attempt.number,
            start: attempt.started.since(self.started),
            duration: self.now.since(attempt.started),
            outcome: judged.outcome,
            sent: judged.sent,
        };
        self.report.push_attempt(record);
        let upstream = self.upstream;
        upstream.events.emit_fine(|| Event::Attempt { upstream: upstream.name.clone(), attempt: record });
    }

    fn finish<Out>(mut self, results: Results<Out>, end: End) -> Finished<Out> {
        let (ended, kind, retry_after) = end.explain();
        self.report.end(ended, self.now.since(self.started), retry_after);
        let upstream = self.upstream;
        match end {
            End::Refused(Refused::Deadline | Refused::Closed) | End::Cut => {}
            End::Refused(_) | End::PoolFull => {
                upstream.events.emit(|| Event::Rejected { upstream: upstream.name.clone(), kind, retry_after });
            }
            End::Result(reason @ (Ended::BudgetCeiling | Ended::BudgetEfficacy), _) => {
                upstream.events.emit(|| Event::BudgetDenied { upstream: upstream.name.clone(), reason });
            }
            End::Result(..) => {}
        }
        let answered = results.response.is_some();
        let (attempts, duration) = (self.report.attempt_count(), self.report.duration());
        upstream.events.emit_fine(|| Event::Ended {
            upstream: upstream.name.clone(),
            ended,
            answered,
            attempts,
            duration,
        });
        let Results { response, failure, held } = results;
        Finished { response, failure, kind, report: self.report, held }
    }
}

impl End {
    /// What ends the call whatever the retry rules say.
    fn early(judged: &Judged) -> Option<Self> {
        match (judged.result, judged.outcome) {
            (ResultKind::PoolFull, _) => Some(Self::PoolFull),
            (ResultKind::StaleResponse, _) => Some(Self::Result(Ended::Stale408, None)),
            (_, Outcome::Fault(Fault::Deadline)) => Some(Self::Cut),
            _ => None,
        }
    }

    /// The reason, the kind of error if no attempt got a response (7.2), and when to come back.
    fn explain(&self) -> (Ended, ErrorKind, Option<Duration>) {
        match *self {
            Self::Result(ended, retry_after) => (ended, ErrorKind::Unreachable, retry_after),
            Self::Cut => (Ended::Deadline, ErrorKind::Timeout, None),
            Self::PoolFull => (Ended::BulkheadFull, ErrorKind::BulkheadFull, None),
            Self::Refused(refused) => (refused.ended(), refused.kind(), refused.retry_after()),
        }
    }
}

/// What the attempts have brought so far.
struct Results<Out> {
    response: Option<Out>,
    failure: Option<Box<Out>>,
    held: Option<Box<Held>>,
}

impl<Out> Results<Out> {
    fn keep(&mut self, out: Option<Out>, kind: ResultKind) {
        match kind {
            ResultKind::Response | ResultKind::Open | ResultKind::StaleResponse => self.response = out,
            // An attempt that was cut brings none; the one before it is still the latest.
            ResultKind::Failure | ResultKind::PoolFull => self.failure = out.map(Box::new).or(self.failure.take()),
        }
    }
}
