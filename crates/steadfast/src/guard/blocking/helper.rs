//! An operation that each attempt sends to a helper thread, and back.
//!
//! The attempt lends its slot to the work before that begins ([`Lent`]). While the work runs there is no operation to run,
//! so nothing can be tried again: what the limits cut is not retried, whatever the caller said of its errors.

use std::future::pending;
use std::io;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use steadfast_policy::{Advice, Answer, Cause, Judgement, Time};

use super::errand::{Awaited, Errand, Over, Task, Threads};
use super::{Outcome, not_in_a_hook};
use crate::admission::Hold;
use crate::call::{Call, Finished, Options};
use crate::error::Error;
use crate::guard::Guarded;
use crate::guard::classify::Classify;
use crate::guard::context::{Context, KeyNumber};
use crate::guard::error::GuardError;
use crate::guard::operation::{judged, judged_cut};
use crate::lent::Lent;
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::park::{self, Bell, Then};
use crate::report::Outcome as Ending;

/// What an attempt brought.
enum Brought<T, E> {
    Result(Result<T, E>),
    NotStarted(io::Error),
}

/// The operation as the loop sees it. Between attempts it is here; an attempt takes it to a thread and back.
struct ThreadOperation<'a, F, J, T, E> {
    operation: Option<F>,
    judge: J,
    slow_after: Duration,
    key: KeyNumber,
    threads: Threads,
    /// Whether another thread is at work for this call.
    is_out: &'a AtomicBool,
    /// Until the attempt takes it along.
    slot: Option<Arc<Lent>>,
    /// The present attempt's.
    errand: Option<Arc<Errand<F, Result<T, E>>>>,
}

impl<F, J, T, E> Operation for ThreadOperation<'_, F, J, T, E>
where
    F: FnMut(Context) -> Result<T, E> + Send + 'static,
    J: Classify<E> + Send,
    T: Send + 'static,
    E: Send + 'static,
{
    type Out = Brought<T, E>;

    fn granted(&mut self, attempt: Attempt, hold: &mut Hold<'_>) {
        self.slot = hold.lend(attempt);
    }

    async fn attempt(&mut self, attempt: Attempt) -> Brought<T, E> {
        self.errand = match (self.operation.take(), self.slot.take()) {
            (Some(operation), Some(slot)) => {
                let context = Context { attempt: attempt.number, time_left: attempt.time_left(), key: self.key };
                Some(Errand::send(Task::new(operation, context, slot), self.threads))
            }
            // Without a slot the deadline has come, and ends the attempt.
            _ => return pending().await,
        };
        let Some(errand) = &self.errand else { return pending().await };
        let _out = Out::new(self.is_out);
        match Awaited(errand).await {
            Over::Ran(operation, result) => {
                self.operation = Some(operation);
                Brought::Result(result)
            }
            Over::Panicked(panic) => resume_unwind(panic),
            Over::NotStarted(error) => Brought::NotStarted(error),
        }
    }

    fn judge(&self, ran: Duration, brought: &Brought<T, E>) -> Judged {
        match brought {
            Brought::Result(result) => {
                judged(ran > self.slow_after, result.as_ref().err().map(|error| self.judge.class(error)))
            }
            Brought::NotStarted(_) => not_started(),
        }
    }

    fn asked_at(&self, _: Attempt) -> Option<Time> {
        self.errand.as_ref().and_then(|errand| errand.began())
    }

    /// Nothing is tried again while the work still runs.
    fn judge_cut(&self, fault: Fault) -> Judged {
        let began = self.errand.as_ref().and_then(|errand| errand.began());
        let sent = if began.is_some() { Sent::Unknown } else { Sent::No };
        Judged { sent, ..judged_cut(fault, false) }
    }
}

/// No thread could be had: our own limit, as a full bulkhead is.
fn not_started() -> Judged {
    let judgement = Judgement {
        verdict: None,
        answer: Answer::Failed,
        cause: Cause::Fast,
        advice: Advice::NotRetryable,
        retry_after: None,
    };
    Judged { judgement, outcome: Ending::Fault(Fault::PoolTimeout), sent: Sent::No, result: ResultKind::PoolFull }
}

/// Marks, until it is dropped, that a thread is at work for the call.
struct Out<'a>(&'a AtomicBool);

impl<'a> Out<'a> {
    fn new(is_out: &'a AtomicBool) -> Self {
        is_out.store(true, Ordering::Relaxed);
        Self(is_out)
    }
}

impl Drop for Out<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Guarded {
    /// One call, on helper threads; `is_out` says whether one is at work. The judge comes back for the fallback.
    pub(super) async fn run_on_thread<T, E, J, F>(
        &self,
        options: Options<'_>,
        judge: J,
        operation: F,
        threads: Threads,
        is_out: &AtomicBool,
    ) -> (J, Outcome<T, E>)
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        J: Classify<E> + Send,
        T: Send + 'static,
        E: Send + 'static,
    {
        let mut operation = ThreadOperation {
            operation: Some(operation),
            judge,
            slow_after: self.slow_after,
            key: self.keys.next(),
            threads,
            is_out,
            slot: None,
            errand: None,
        };
        let mut call = Call::begin(&self.upstream, &self.rules, &options);
        let finished = call.run(&mut operation).await;
        (operation.judge, self.outcome(finished, call))
    }

    /// The same on a plain thread.
    pub(super) fn wait_for_thread<T, E, J, F>(&self, options: Options<'_>, judge: J, operation: F) -> (J, Outcome<T, E>)
    where
        F: FnMut(Context) -> Result<T, E> + Send + 'static,
        J: Classify<E> + Send,
        T: Send + 'static,
        E: Send + 'static,
    {
        if let Err(refused) = not_in_a_hook(self) {
            return (judge, Err(refused));
        }
        let (bell, is_out) = (Bell::new(), AtomicBool::new(false));
        let options = Options { bell: Some(&bell), ..options };
        let call = pin!(self.run_on_thread(options, judge, operation, Threads::Own, &is_out));
        park::drive(&self.upstream.clock, &bell, call, || {
            if is_out.load(Ordering::Relaxed) { Then::WaitForOthers } else { Then::Wait }
        })
    }

    fn outcome<T, E>(&self, finished: Finished<Brought<T, E>>, mut call: Call<'_>) -> Outcome<T, E> {
        let Finished { response, failure, .. } = finished;
        let (kind, report) = (call.kind(), call.report());
        if let Some(Brought::Result(Ok(value))) = response {
            return Ok((value, report));
        }
        match failure.map(|failure| *failure) {
            Some(Brought::NotStarted(error)) => {
                let limit = Error::new(kind, &self.upstream.name, report).with_source(Some(error.into()));
                Err(GuardError::Limit { error: limit, last: None })
            }
            Some(Brought::Result(result)) => Err(self.error_of(result.err(), kind, report)),
            None => Err(self.error_of(None, kind, report)),
        }
    }
}
