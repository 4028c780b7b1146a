//! May this attempt start, and when? One order, for every operation (contract 6.4, 4.8):
//!
//! 1. the breaker's refusal: at once, with no queue, no slot and no place spent;
//! 2. the line: a waiter holds nothing until a place of its key and a slot are free at once;
//! 3. the breaker's permit, last of all, when the attempt is about to go.
//!
//! What is granted here is a guard. Dropping it anywhere gives everything back.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use steadfast_http::Sent;
use steadfast_policy::breaker::Permit;
use steadfast_policy::budget::RetryPermit;
use steadfast_policy::line::{Missing, Slot, Ticket};
use steadfast_policy::{Answer, Time, Verdict};

use crate::call::Call;
use crate::lent::Lent;
use crate::operation::{Attempt, Judged, ResultKind};
use crate::report::WaitReason;
use crate::timer::Timer;
use crate::upstream::{Entrant, Held, Policies, Refused, Step, Upstream};

/// Waits until the next attempt may start, or says why it may not.
///
/// Cancel safe: a waiter that is dropped gives its position up, and a grant that it had not seen goes to the next.
pub(crate) async fn admit<'a>(
    call: &mut Call<'a>,
    timer: Pin<&mut Timer<'_>>,
    retry: Option<PaidRetry<'a>>,
) -> Result<Grant<'a>, Refused> {
    let upstream = call.upstream;
    let first = retry.is_none();
    let who = Entrant { key: call.options.key, deadline: call.deadline.at(), first };
    let (slot, permit) = match upstream.with(|policies| policies.enter(call.now, who))? {
        Step::Granted(slot, permit) => (slot, permit),
        Step::Queued(ticket, poll_at, missing) => wait_in_line(call, timer, first, ticket, poll_at, missing).await?,
    };
    Ok(Grant {
        upstream,
        slot: Some(slot),
        permit: Some(permit),
        retry: retry.and_then(PaidRetry::send),
        first,
        lent: None,
    })
}

/// Stands in the line until the turn has come, and tells the report what was waited for.
async fn wait_in_line(
    call: &mut Call<'_>,
    mut timer: Pin<&mut Timer<'_>>,
    first: bool,
    ticket: Ticket,
    mut poll_at: Time,
    mut missing: Missing,
) -> Result<(Slot, Permit), Refused> {
    let upstream = call.upstream;
    let mut place = InLine { upstream, ticket: Some(ticket) };
    let mut since = call.now;
    let result = poll_fn(|cx| {
        loop {
            call.now = call.now.max(upstream.clock.now());
            let now = call.now;
            match upstream.with(|policies| policies.poll(now, ticket, first, cx.waker())) {
                Ok(Step::Granted(slot, permit)) => return Poll::Ready(Ok((slot, permit))),
                Err(refused) => return Poll::Ready(Err(refused)),
                Ok(Step::Queued(_, at, lacks)) => {
                    if lacks != missing {
                        call.record_wait(since, now, wait_reason(missing));
                        (since, missing) = (now, lacks);
                    }
                    // Time must go on between two questions, whatever the answer was.
                    poll_at = at.max(now + Duration::from_nanos(1));
                }
            }
            let timer = timer.as_mut();
            ready!(match missing {
                Missing::Place => timer.poll_sleep(cx, &upstream.clock, poll_at),
                Missing::Slot => timer.poll_until(cx, &upstream.clock, poll_at),
            });
            call.now = call.now.max(poll_at);
        }
    })
    .await;
    place.ticket = None;
    call.record_wait(since, call.now, wait_reason(missing));
    result
}

fn wait_reason(missing: Missing) -> WaitReason {
    match missing {
        Missing::Slot => WaitReason::Bulkhead,
        Missing::Place => WaitReason::RateLimit,
    }
}

/// A position in the line; dropping it gives it up.
struct InLine<'a> {
    upstream: &'a Upstream,
    ticket: Option<Ticket>,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let now = self.upstream.clock.now();
            self.upstream.with(|policies| policies.leave(now, ticket));
        }
    }
}

/// A retry that the budget has paid for and that was not sent yet; dropping it gives the money back (2.9).
pub(crate) struct PaidRetry<'a> {
    upstream: &'a Upstream,
    permit: Option<RetryPermit>,
}

impl<'a> PaidRetry<'a> {
    pub(crate) fn new(upstream: &'a Upstream, permit: RetryPermit) -> Self {
        Self { upstream, permit: Some(permit) }
    }

    fn send(mut self) -> Option<RetryPermit> {
        self.permit.take()
    }
}

impl Drop for PaidRetry<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            let now = self.upstream.clock.now();
            self.upstream.with(|policies| policies.budget.retry_unsent(now, permit));
        }
    }
}

/// An attempt that may go: its slot, its permit, and the retry it was paid from.
///
/// Settling it records the verdict, then returns the slot (0.2). Dropping it is no verdict; a retry that was dropped
/// after it was sent stays paid for.
pub(crate) struct Grant<'a> {
    upstream: &'a Arc<Upstream>,
    slot: Option<Slot>,
    permit: Option<Permit>,
    retry: Option<RetryPermit>,
    first: bool,
    /// The slot, while work on another thread shares it.
    lent: Option<Arc<Lent>>,
}

impl Grant<'_> {
    /// Keeps the slot until the attempt ends, even beyond its deadline: it cannot be stopped there (11.7). False where
    /// the deadline has come already, and the slot went to others; then the attempt must not begin.
    pub(crate) fn keep(&mut self, attempt: Attempt) -> bool {
        let Some(slot) = &self.slot else { return false };
        self.upstream.with(|policies| policies.line.lease_until(attempt.started, slot, Time::MAX))
    }

    /// The same for work on another thread, which shares the slot from now on: it is given back once the attempt has been
    /// settled and the work is over. `None` as where `keep` says false.
    pub(crate) fn lend(&mut self, attempt: Attempt) -> Option<Arc<Lent>> {
        if !self.keep(attempt) {
            return None;
        }
        let lent = Arc::new(Lent::new(self.upstream, self.slot.take()?, attempt.deadline));
        self.lent = Some(Arc::clone(&lent));
        Some(lent)
    }

    /// Hands the attempt's result to the policies, and lets `then` decide in the same breath. What a response whose body
    /// is still to come keeps is returned.
    pub(crate) fn settle<R>(
        mut self,
        now: Time,
        judged: &Judged,
        then: impl FnOnce(&mut Policies) -> R,
    ) -> (R, Option<Held>) {
        let upstream = self.upstream;
        let held = if judged.result == ResultKind::Open { Some(self.hold(judged)) } else { None };
        // Dropped outside of the lock.
        let mut last = None;
        let decision = upstream.with(|policies| {
            policies.settle(now, self.permit.take(), judged.judgement.verdict);
            self.settle_budget(policies, now, judged);
            // Not before the verdict is recorded: with that share the slot itself may go.
            last = self.lent.take().and_then(Arc::into_inner);
            if let Some(slot) = self.slot.take().or_else(|| last.as_mut().and_then(Lent::take_slot)) {
                policies.line.release(now, slot);
            }
            then(policies)
        });
        (decision, held)
    }

    /// The slot stays taken until the body ends. So does the permit, unless the head has decided: a failure is one, and a
    /// probe that is answered has found out what it was sent for (7.6).
    fn hold(&mut self, judged: &Judged) -> Held {
        let verdict = judged.judgement.verdict;
        let undecided = matches!(verdict, Some(Verdict::Success | Verdict::Paced));
        let permit = self.permit.take_if(|permit| undecided && !permit.is_probe());
        Held::new(self.upstream, self.slot.take(), permit, verdict)
    }

    fn settle_budget(&mut self, policies: &mut Policies, now: Time, judged: &Judged) {
        let answer = judged.judgement.answer;
        match self.retry.take() {
            // Ours alone, and nothing went out: no room in the pool, a hook that failed (2.9).
            Some(permit) if judged.sent == Sent::No && judged.judgement.verdict.is_none() => {
                policies.budget.retry_unsent(now, permit);
            }
            Some(permit) => policies.budget.retry_done(now, permit, answer),
            None if self.first => policies.budget.first_done(now, answer),
            None => {}
        }
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        let (permit, retry, slot) = (self.permit.take(), self.retry.take(), self.slot.take());
        if permit.is_none() && retry.is_none() && slot.is_none() {
            return;
        }
        let now = self.upstream.clock.now();
        self.upstream.with(|policies| {
            if let Some(permit) = permit {
                policies.breaker.cancel(now, permit);
            }
            if let Some(retry) = retry {
                policies.budget.retry_done(now, retry, Answer::Failed);
            }
            if let Some(slot) = slot {
                policies.line.release(now, slot);
            }
        });
    }
}
