//! One call, from its deadline to its report. This is the only loop: HTTP calls and guards run through it.
//!
//! A call lies in the future of whoever makes it, [begun](Call::begin) there and [run](Call::run) by reference: its story
//! is never moved about, and is there to be told when it has ended.
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

mod account;
mod ending;
mod story;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_http::Fault;
use steadfast_policy::deadline::{self, Deadline};
use steadfast_policy::retry::{self, Decision, GiveUp};
use steadfast_policy::{Advice, Time, Verdict};

use self::account::Tried;
use self::ending::{Earlier, End};
use self::story::Story;
use crate::admission::{self, Hold};
use crate::context;
use crate::error::ErrorKind;
use crate::event::Event;
use crate::operation::{Attempt, Judged, Operation};
use crate::park::Bell;
#[cfg(steadfast_planted)]
use crate::planted;
use crate::policies::{Refused, Step};
use crate::report::{Ended, Outcome, Report, WaitReason};
#[cfg(feature = "otel")]
use crate::telemetry::otel::{CallTrace, Within};
use crate::telemetry::{Traced, Watched};
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
    /// What the response holds on to while its body is being read.
    pub(crate) held: Option<Box<Held>>,
}

/// A call under way. Dropping it gives back slot, place, permit and budget, and is no verdict (1.6).
pub(crate) struct Call<'a> {
    pub(crate) upstream: &'a Arc<Upstream>,
    rules: &'a Rules,
    options: &'a Options<'a>,
    deadline: Deadline,
    pub(crate) now: Time,
    pub(crate) hold: Hold<'a>,
    story: Story<'a>,
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.hold.is_empty() || self.story.is_open() {
            self.abandon();
        }
    }
}

/// What follows an attempt.
enum Next<Out> {
    Finish(Finished<Out>),
    /// A retry, paid for.
    Wait {
        at: Time,
        wait: Duration,
        reason: WaitReason,
    },
}

impl<'a> Call<'a> {
    /// A call whose time runs from now on.
    #[inline]
    pub(crate) fn begin(upstream: &'a Arc<Upstream>, rules: &'a Rules, options: &'a Options<'a>) -> Self {
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
        let (hold, story) = (Hold::new(upstream), Story::new(upstream, now));
        Self { upstream, rules, options, deadline, now, hold, story }
    }

    /// The kind of error that the call has ended with, if it brought no response.
    #[inline]
    pub(crate) fn kind(&self) -> ErrorKind {
        self.story.account.kind()
    }

    /// The story of the call, once it has ended.
    pub(crate) fn report(&mut self) -> Report {
        self.story.account.take_report(self.now)
    }

    /// Runs one operation under the protection of its upstream. To be called once.
    ///
    /// Cancel safe: dropping the future together with the call gives everything back.
    #[inline]
    pub(crate) fn run<'b, O: Operation>(
        &'b mut self,
        operation: &'b mut O,
    ) -> Traced<impl Future<Output = Finished<O::Out>>> {
        let watched = Watched::begin(self.upstream, self.now, self.options.of_task, || operation.shown());
        let span = watched.clone();
        self.story.open(watched);
        // What lives across an await is kept small, and what a first attempt that succeeds does not have is boxed, and made
        // in functions that are not inlined: to move such things about was most of what a call cost.
        let attempts = async move {
            if self.deadline.is_expired(self.now) {
                let refused = if self.upstream.is_closed() { Refused::Closed } else { Refused::Deadline };
                return self.refuse(Earlier::nothing(), refused);
            }
            let mut timer = pin!(Timer::with(self.options.bell));
            let mut earlier = Earlier::nothing();
            loop {
                let granted = match self.hold.ask(self.now, self.options.key, self.deadline.at()) {
                    Ok(Step::Granted(slot, permit)) => Ok((slot, permit)),
                    Ok(Step::Queued(ticket, poll_at, missing)) => {
                        let waiting = (ticket, poll_at, missing);
                        Box::pin(admission::wait_in_line(self, timer.as_mut(), waiting)).await
                    }
                    Err(refused) => Err(refused),
                };
                match granted {
                    Ok(granted) => self.hold.grant(granted),
                    Err(refused) => return self.refuse(earlier, refused),
                }
                let number = self.story.account.attempt();
                operation.granted(self.attempt(number), &mut self.hold);
                let out = {
                    // Dropped in here, before the slot is given back.
                    #[cfg(feature = "otel")]
                    let future = pin!(self.within_span(operation, self.attempt(number)));
                    #[cfg(not(feature = "otel"))]
                    let future = pin!(operation.attempt(self.attempt(number)));
                    timer::until(future, timer.as_mut(), &self.upstream.clock, self.limit(self.now)).await
                };
                // In one step between two awaits: of what it looks at, nothing has to be kept.
                let (at, wait, reason) = match self.conclude(operation, number, out, &mut earlier) {
                    Next::Finish(finished) => return finished,
                    Next::Wait { at, wait, reason } => (at, wait, reason),
                };
                Box::pin(self.wait_to_retry(number + 1, at, wait, reason, timer.as_mut())).await;
            }
        };
        Traced::new(attempts, span)
    }

    #[cfg(feature = "otel")]
    #[inline]
    fn trace(&self) -> Option<&CallTrace> {
        self.story.watched().and_then(|watched| watched.otel.as_ref())
    }

    /// One try, within a span of its own where there is somebody to tell.
    #[cfg(feature = "otel")]
    #[inline]
    fn within_span<O: Operation>(&self, operation: &mut O, attempt: Attempt) -> impl Future<Output = O::Out> {
        let trace = self.trace();
        if let Some(span) = trace.and_then(|trace| trace.begin_attempt(attempt)) {
            operation.in_trace(span);
        }
        // An operation may begin before its future is polled.
        let began = {
            let _inside = trace.and_then(CallTrace::enter);
            operation.attempt(attempt)
        };
        Within::new(began, trace)
    }

    /// The attempt that begins now.
    #[inline]
    fn attempt(&self, number: u32) -> Attempt {
        Attempt { number, started: self.now, deadline: self.deadline.at() }
    }

    /// When an attempt is cut: at its own timeout or at the deadline, whichever comes first.
    #[inline]
    fn limit(&self, started: Time) -> Time {
        let own = self.rules.attempt_timeout.map_or(Time::MAX, |timeout| started + timeout);
        own.min(self.deadline.at())
    }

    /// The call is dropped before its end. What it held is free when that is told, and whoever waits for the upstream's last
    /// call goes on when it has been told.
    #[cold]
    fn abandon(&mut self) {
        self.hold.let_go();
        self.story.cancel();
        self.hold.leave();
    }

    /// An attempt has ended, or was cut: gives back what it held, and says what follows.
    // Always inlined, with what it calls under the lock: as one piece of code it keeps in registers what it hands on.
    #[inline(always)]
    fn conclude<O: Operation>(
        &mut self,
        operation: &O,
        number: u32,
        out: Option<O::Out>,
        earlier: &mut Earlier<O::Out>,
    ) -> Next<O::Out> {
        let attempt = self.attempt(number);
        let judged = self.judge(operation, attempt, out.as_ref());
        let (started, outcome, sent) = (attempt.started, judged.outcome, judged.sent);
        let tried = Tried { number, started, ended: self.now, outcome, sent };
        #[cfg(feature = "otel")]
        if let Some(trace) = self.trace() {
            trace.end_attempt(&self.story.account.record(tried), out.as_ref().and_then(O::version));
        }
        if !judged.is_answer() {
            return *self.conclude_in_full(tried, judged, out, earlier);
        }
        // What nearly every call comes to: there is nothing to repair, and nothing to decide.
        let kept = self.hold.settle_last(self.now, &judged);
        let held = kept.map(|kept| self.held(kept, judged.judgement.verdict));
        self.story.tell_attempt(tried);
        self.story.end(self.now, Some(tried), Ended::Response, ErrorKind::Unreachable, true);
        self.hold.leave();
        let (_, failure) = earlier.take();
        Next::Finish(Finished { response: out, failure, held })
    }

    /// The same for whatever may have to be repaired. Boxed, so that the other way does not move it about.
    #[cold]
    fn conclude_in_full<Out>(
        &mut self,
        tried: Tried,
        judged: Judged,
        out: Option<Out>,
        earlier: &mut Earlier<Out>,
    ) -> Box<Next<Out>> {
        let (decision, kept) = self.settle(tried.number, &judged);
        self.story.tell_attempt(tried);
        let end = match (End::early(&judged), decision) {
            (Some(end), _) => end,
            (None, Decision::Return) => End::Result(Ended::Response, None),
            (None, Decision::GiveUp(reason)) => End::Result(reason.into(), self.worth_trying_after(reason, &judged)),
            (None, Decision::RetryAt { at, wait, reason, permit }) => {
                self.hold.pay(permit);
                self.story.account.go_on(tried);
                earlier.keep(out, judged.result);
                return Box::new(Next::Wait { at, wait, reason: reason.into() });
            }
        };
        let held = kept.map(|kept| self.held(kept, judged.judgement.verdict));
        let (response, failure) = earlier.and(out, judged.result);
        Box::new(Next::Finish(self.finish(end, Some(tried), response, failure, held)))
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
    fn settle(&mut self, number: u32, judged: &Judged) -> (Decision, Option<Kept>) {
        let (rules, now, deadline) = (&self.rules.retry, self.now, self.deadline);
        #[cfg(steadfast_planted)]
        let deadline = planted::deadline(deadline);
        #[cfg(steadfast_planted)]
        let rules = &planted::rules(rules);
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
        let evidence = self.options.timeout_is_evidence
            && deadline::is_timeout_evidence(ran, rules.timeout_evidence, rules.total_timeout);
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
        #[cfg(steadfast_planted)]
        let at = planted::early(self.now, at, reason == WaitReason::RetryAfter);
        let upstream = self.upstream;
        upstream.events.emit(|| Event::Retry { upstream: upstream.name.clone(), attempt: number, wait, reason });
        std::future::poll_fn(|cx| timer.as_mut().poll_sleep(cx, &upstream.clock, at)).await;
        upstream.clock.note_sleep(wait);
        // Reported as decided: a timer that fires a little late is not what was asked for.
        self.record_wait(self.now, at, reason);
        self.now = at.max(upstream.clock.now());
    }

    pub(crate) fn record_wait(&mut self, from: Time, to: Time, reason: WaitReason) {
        let duration = to.since(from);
        if !duration.is_zero() {
            if reason == WaitReason::RateLimit {
                self.upstream.clock.note_sleep(duration);
            }
            self.upstream.events.waited(reason, duration);
            self.story.account.wait(from, duration, reason);
        }
    }

    /// What the response holds on to when the call has ended.
    fn held(&self, kept: Kept, verdict: Option<Verdict>) -> Box<Held> {
        Box::new(Held::new(self.upstream, kept, verdict, self.deadline.at()))
    }

    /// Ends a call whose next attempt may not go.
    #[cold]
    fn refuse<Out>(&mut self, mut earlier: Earlier<Out>, refused: Refused) -> Finished<Out> {
        self.hold.refund(self.now);
        let (response, failure) = earlier.take();
        self.finish(End::Refused(refused), None, response, failure, None)
    }

    fn finish<Out>(
        &mut self,
        end: End,
        last: Option<Tried>,
        response: Option<Out>,
        failure: Option<Box<Out>>,
        held: Option<Box<Held>>,
    ) -> Finished<Out> {
        let (ended, kind, retry_after) = end.explain();
        self.story.account.worth_trying_after(retry_after);
        end.tell(self.upstream);
        self.story.end(self.now, last, ended, kind, response.is_some());
        // Before whatever is served instead: who makes that may wait for the upstream's last call.
        self.hold.leave();
        Finished { response, failure, held }
    }
}
