//! May this attempt start, and when? One order, for every operation (contract 6.4, 4.8):
//!
//! 1. the breaker's refusal: at once, with no queue, no slot and no place spent;
//! 2. the line: a waiter holds nothing until a place of its key and a slot are free at once;
//! 3. the breaker's permit, last of all, when the attempt is about to go.
//!
//! What a call holds is in one place ([`Hold`]); dropping the call anywhere gives everything back.

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
use crate::lent::Lent;
use crate::operation::{Attempt, Judged, ResultKind};
#[cfg(steadfast_planted)]
use crate::planted::{self, Planted};
use crate::policies::{Entrant, Policies, Refused, Step};
use crate::report::WaitReason;
use crate::timer::Timer;
use crate::upstream::{Kept, Upstream};

/// Stands in the line until the turn has come, and tells the report what was waited for.
///
/// Cancel safe: a waiter that is dropped gives its position up, and a grant that it had not seen goes to the next.
pub(crate) async fn wait_in_line(
    call: &mut Call<'_>,
    mut timer: Pin<&mut Timer<'_>>,
    (ticket, mut poll_at, mut missing): (Ticket, Time, Missing),
) -> Result<(Slot, Permit), Refused> {
    let (upstream, first) = (call.upstream, call.hold.is_first());
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
                    if wait_reason(lacks) != wait_reason(missing) {
                        call.record_wait(since, now, wait_reason(missing));
                        since = now;
                    }
                    missing = lacks;
                    // Time must go on between two questions, whatever the answer was.
                    poll_at = at.max(now + Duration::from_nanos(1));
                }
            }
            let timer = timer.as_mut();
            ready!(match missing {
                Missing::Place => timer.poll_sleep(cx, &upstream.clock, poll_at),
                Missing::Turn | Missing::Slot => timer.poll_until(cx, &upstream.clock, poll_at),
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
        Missing::Place | Missing::Turn => WaitReason::RateLimit,
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

/// What a call holds: its place among the running ones, an attempt that may go, a retry that the budget has paid for.
///
/// Settling an attempt records its verdict, then returns its slot (0.2). [Letting go](Self::let_go) is no verdict; a retry that
/// was not sent is paid back (2.9), one that was stays paid for. Its [`Call`] sees to it that all is given back.
pub(crate) struct Hold<'a> {
    upstream: &'a Arc<Upstream>,
    is_running: bool,
    /// The attempt that is under way.
    granted: Option<(Slot, Permit)>,
    /// The same, while work on another thread has a share of the slot.
    lent: Option<Box<(Arc<Lent>, Permit)>>,
    /// What the present attempt was paid from, or the next one is. The first is not paid for.
    retry: Option<RetryPermit>,
}

impl<'a> Hold<'a> {
    /// Of a call that has not begun.
    #[inline]
    pub(crate) fn new(upstream: &'a Arc<Upstream>) -> Self {
        Self { upstream, is_running: false, granted: None, lent: None, retry: None }
    }

    /// Asks whether the next attempt may start. The call's first question begins the call.
    #[inline(always)]
    pub(crate) fn ask(&mut self, now: Time, key: &str, deadline: Time) -> Result<Step, Refused> {
        let who = Entrant { key, deadline, first: self.is_first() };
        if self.is_running {
            return self.ask_again(now, who);
        }
        let step = self.upstream.with(|policies| policies.begin(now, who))?;
        self.is_running = true;
        Ok(step)
    }

    #[cold]
    fn ask_again(&self, now: Time, who: Entrant<'_>) -> Result<Step, Refused> {
        self.upstream.with(|policies| policies.enter(now, who))
    }

    /// Whether the attempt that is under way or to come is the call's first.
    #[inline]
    pub(crate) fn is_first(&self) -> bool {
        self.retry.is_none()
    }

    /// An attempt may go.
    #[inline]
    pub(crate) fn grant(&mut self, granted: (Slot, Permit)) {
        self.granted = Some(granted);
    }

    /// Keeps the attempt's slot until it ends, even beyond its deadline: it cannot be stopped there (11.7). False where the
    /// deadline has come already, and the slot went to others; then the attempt must not begin.
    pub(crate) fn keep(&self, attempt: Attempt) -> bool {
        let Some((slot, _)) = &self.granted else { return false };
        self.upstream.with(|policies| policies.line.lease_until(attempt.started, slot, Time::MAX))
    }

    /// The same for work on another thread, which has a share of the slot from now on: it is given back once the attempt
    /// has been settled and the work is over. `None` where `keep` says false.
    pub(crate) fn lend(&mut self, attempt: Attempt) -> Option<Arc<Lent>> {
        if !self.keep(attempt) {
            return None;
        }
        let (slot, permit) = self.granted.take()?;
        let lent = Arc::new(Lent::new(self.upstream, slot, attempt.deadline));
        self.lent = Some(Box::new((Arc::clone(&lent), permit)));
        Some(lent)
    }

    /// The next attempt is paid for.
    pub(crate) fn pay(&mut self, retry: RetryPermit) {
        self.retry = Some(retry);
    }

    /// The next attempt does not go after all.
    pub(crate) fn refund(&mut self, now: Time) {
        if let Some(retry) = self.retry.take() {
            self.upstream.with(|policies| policies.budget.retry_unsent(now, retry));
        }
    }

    /// Hands the attempt's result to the policies, and lets `decide` say in the same breath what follows. If that is not
    /// another attempt, the call is over. Of a response whose body is still to come, what it keeps is returned; it takes
    /// over the call's place among the running ones.
    pub(crate) fn settle(
        &mut self,
        now: Time,
        judged: &Judged,
        decide: impl FnOnce(&mut Policies) -> Decision,
    ) -> (Decision, Option<Kept>) {
        self.upstream.with(|policies| {
            let kept = self.give_back(policies, now, judged);
            let decision = decide(policies);
            if !matches!(decision, Decision::RetryAt { .. }) {
                self.end(policies, kept.is_some());
            }
            (decision, kept)
        })
    }

    /// The same where nothing can follow.
    #[inline(always)]
    pub(crate) fn settle_last(&mut self, now: Time, judged: &Judged) -> Option<Kept> {
        self.upstream.with(|policies| {
            let kept = self.give_back(policies, now, judged);
            self.end(policies, kept.is_some());
            kept
        })
    }

    /// The call is over, or lives on in its response.
    #[inline]
    fn end(&mut self, policies: &mut Policies, lives_on: bool) {
        if lives_on {
            self.is_running = false;
        } else if !policies.is_closed() {
            // Who waits for the last call of a closed upstream waits until it has told what there is to tell, too: `leave`.
            policies.end();
            self.is_running = false;
        }
    }

    /// Gives back what the attempt has no more use for.
    #[inline(always)]
    fn give_back(&mut self, policies: &mut Policies, now: Time, judged: &Judged) -> Option<Kept> {
        let Some((slot, permit)) = self.granted.take() else {
            self.give_back_lent(policies, now, judged.judgement.verdict, judged.judgement.answer, judged.sent);
            return None;
        };
        let (verdict, answer, sent) = (judged.judgement.verdict, judged.judgement.answer, judged.sent);
        if judged.result == ResultKind::Open {
            // The slot stays taken until the body ends. So does the permit, unless the head has decided: a failure is one,
            // and a probe that is answered has found out what it was sent for (7.6).
            let undecided = matches!(verdict, Some(Verdict::Success | Verdict::Paced)) && !permit.is_probe();
            let (kept, spent) = if undecided { (Some(permit), None) } else { (None, Some(permit)) };
            policies.settle(now, spent, verdict);
            self.settle_budget(policies, now, verdict, answer, sent);
            return Some((slot, kept));
        }
        policies.settle(now, Some(permit), verdict);
        self.settle_budget(policies, now, verdict, answer, sent);
        #[cfg(steadfast_planted)]
        if planted::is(Planted::PlaceGivenBack) {
            policies.line.undo_start(now, slot);
            return None;
        }
        policies.line.release(now, slot);
        None
    }

    /// The same where the slot was lent. Its share goes after the verdict is recorded: with it the slot itself may go.
    #[cold]
    fn give_back_lent(
        &mut self,
        policies: &mut Policies,
        now: Time,
        verdict: Option<Verdict>,
        answer: Answer,
        sent: Sent,
    ) {
        let Some(lent) = self.lent.take() else { return };
        let (lent, permit) = *lent;
        policies.settle(now, Some(permit), verdict);
        self.settle_budget(policies, now, verdict, answer, sent);
        Lent::let_go(lent, policies, now);
    }

    #[inline(always)]
    fn settle_budget(
        &mut self,
        policies: &mut Policies,
        now: Time,
        verdict: Option<Verdict>,
        answer: Answer,
        sent: Sent,
    ) {
        match self.retry.take() {
            #[cfg(steadfast_planted)]
            Some(permit) if planted::is(Planted::FreeRetry) => policies.budget.retry_unsent(now, permit),
            None => policies.budget.first_done(now, answer),
            // Ours alone, and nothing went out: no room in the pool, a hook that failed (2.9).
            Some(permit) if sent == Sent::No && verdict.is_none() => policies.budget.retry_unsent(now, permit),
            Some(permit) => policies.budget.retry_done(now, permit, answer),
        }
    }

    /// Whether there is anything to give back.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_running && self.granted.is_none() && self.lent.is_none() && self.retry.is_none()
    }

    /// The call is dropped: gives back all but its place among the running ones, which it has until that has been told.
    #[cold]
    pub(crate) fn let_go(&mut self) {
        let now = self.upstream.clock.now();
        let (granted, lent, retry) = (self.granted.take(), self.lent.take(), self.retry.take());
        self.upstream.with(|policies| {
            match retry {
                Some(retry) if granted.is_some() || lent.is_some() => {
                    policies.budget.retry_done(now, retry, Answer::Failed)
                }
                Some(retry) => policies.budget.retry_unsent(now, retry),
                None => {}
            }
            #[cfg(steadfast_planted)]
            let granted = planted::let_go(policies, now, granted);
            if let Some((slot, permit)) = granted {
                policies.breaker.cancel(now, permit);
                policies.line.release(now, slot);
            }
            if let Some((lent, permit)) = lent.map(|lent| *lent) {
                policies.breaker.cancel(now, permit);
                Lent::let_go(lent, policies, now);
            }
        });
    }

    /// The call is over and has been told of: it is no longer among the running ones.
    #[inline]
    pub(crate) fn leave(&mut self) {
        if self.is_running {
            self.leave_late();
        }
    }

    /// It was refused, or dropped, or is the last one of a closed upstream.
    #[cold]
    fn leave_late(&mut self) {
        #[cfg(steadfast_planted)]
        if planted::is(Planted::EndlessCall) {
            return;
        }
        self.is_running = false;
        self.upstream.with(Policies::end);
    }
}
