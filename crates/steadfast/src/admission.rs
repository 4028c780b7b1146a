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
use steadfast_policy::retry::Decision;
use steadfast_policy::{Answer, Time, Verdict};

use crate::call::Call;
use crate::operation::{Judged, ResultKind};
use crate::policies::{Entrant, Policies, Refused, Step};
use crate::report::WaitReason;
use crate::timer::Timer;
use crate::upstream::{Running, Upstream};

/// Asks whether the next attempt may start. The call's first question begins the call.
#[inline]
pub(crate) fn ask<'a>(call: &mut Call<'a>, first: bool) -> Result<Step, Refused> {
    let who = Entrant { key: call.key, deadline: call.deadline.at(), first };
    if !first {
        return call.upstream.with(|policies| policies.enter(call.now, who));
    }
    let step = call.upstream.with(|policies| policies.begin(call.now, who))?;
    call.running.has_begun(call.upstream);
    Ok(step)
}

/// Stands in the line until the turn has come, and tells the report what was waited for.
///
/// Cancel safe: a waiter that is dropped gives its position up, and a grant that it had not seen goes to the next.
pub(crate) async fn wait_in_line(
    call: &mut Call<'_>,
    mut timer: Pin<&mut Timer>,
    first: bool,
    (ticket, mut poll_at, mut missing): (Ticket, Time, Missing),
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

    /// The attempt goes.
    pub(crate) fn send(mut self) -> Option<RetryPermit> {
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
    /// Taken when it is settled.
    granted: Option<(Slot, Permit)>,
    retry: Option<RetryPermit>,
}

impl<'a> Grant<'a> {
    /// Of the call's first attempt if there is no `retry`.
    #[inline]
    pub(crate) fn new(upstream: &'a Arc<Upstream>, granted: (Slot, Permit), retry: Option<PaidRetry<'_>>) -> Self {
        Self { upstream, granted: Some(granted), retry: retry.and_then(PaidRetry::send) }
    }

    /// Hands the attempt's result to the policies, and lets `decide` say in the same breath what follows. If that is not
    /// another attempt, the call is over; what a response whose body is still to come keeps of it is returned.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        now: Time,
        judged: &Judged,
        running: &mut Running<'_>,
        decide: impl FnOnce(&mut Policies) -> Decision,
    ) -> (Decision, Option<(Slot, Option<Permit>)>) {
        let upstream = self.upstream;
        upstream.with(|policies| {
            let kept = self.give_back(policies, now, judged);
            let decision = decide(policies);
            // Who waits for the last call of a closed upstream waits until that has also told what there was to tell.
            let is_over = kept.is_none() && !matches!(decision, Decision::RetryAt { .. });
            if is_over && !policies.is_closed() {
                policies.end();
                running.is_over();
            }
            (decision, kept)
        })
    }

    /// Gives back what the attempt has no more use for.
    #[inline]
    fn give_back(&mut self, policies: &mut Policies, now: Time, judged: &Judged) -> Option<(Slot, Option<Permit>)> {
        let (slot, permit) = self.granted.take()?;
        let verdict = judged.judgement.verdict;
        if judged.result == ResultKind::Open {
            // The slot stays taken until the body ends. So does the permit, unless the head has decided: a failure is one,
            // and a probe that is answered has found out what it was sent for (7.6).
            let undecided = matches!(verdict, Some(Verdict::Success | Verdict::Paced)) && !permit.is_probe();
            let (kept, spent) = if undecided { (Some(permit), None) } else { (None, Some(permit)) };
            policies.settle(now, spent, verdict);
            self.settle_budget(policies, now, judged);
            return Some((slot, kept));
        }
        policies.settle(now, Some(permit), verdict);
        self.settle_budget(policies, now, judged);
        policies.line.release(now, slot);
        None
    }

    #[inline]
    fn settle_budget(&mut self, policies: &mut Policies, now: Time, judged: &Judged) {
        let answer = judged.judgement.answer;
        match self.retry.take() {
            // Ours alone, and nothing went out: no room in the pool, a hook that failed (2.9).
            Some(permit) if judged.sent == Sent::No && judged.judgement.verdict.is_none() => {
                policies.budget.retry_unsent(now, permit);
            }
            Some(permit) => policies.budget.retry_done(now, permit, answer),
            None => policies.budget.first_done(now, answer),
        }
    }
}

impl Drop for Grant<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some((slot, permit)) = self.granted.take() else { return };
        self.cancel(slot, permit);
    }
}

impl Grant<'_> {
    #[cold]
    fn cancel(&mut self, slot: Slot, permit: Permit) {
        let now = self.upstream.clock.now();
        let retry = self.retry.take();
        self.upstream.with(|policies| {
            policies.breaker.cancel(now, permit);
            if let Some(retry) = retry {
                policies.budget.retry_done(now, retry, Answer::Failed);
            }
            policies.line.release(now, slot);
        });
    }
}
