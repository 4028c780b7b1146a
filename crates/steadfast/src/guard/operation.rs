//! A closure as an operation of the loop.

use std::time::Duration;

use steadfast_http::{Fault, Sent};
use steadfast_policy::{Advice, Answer, Cause, Judgement, Verdict};

use super::classify::{Classify, ErrorClass};
use super::context::{Context, KeyNumber};
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::report::Outcome;

/// A closure, and who says what its errors mean.
pub(super) struct ClosureOperation<F, J> {
    pub(super) operation: F,
    pub(super) judge: J,
    pub(super) slow_after: Duration,
    pub(super) key: KeyNumber,
}

impl<T, E, F, Fut, J> Operation for ClosureOperation<F, J>
where
    F: FnMut(Context) -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
    J: Classify<E> + Send,
    T: Send,
    E: Send,
{
    type Out = Result<T, E>;

    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Self::Out> + Send {
        (self.operation)(Context { attempt: attempt.number, time_left: attempt.time_left(), key: self.key })
    }

    fn judge(&self, ran: Duration, out: &Self::Out) -> Judged {
        judged(ran > self.slow_after, out.as_ref().err().map(|error| self.judge.class(error)))
    }

    fn judge_cut(&self, fault: Fault) -> Judged {
        judged_cut(fault, J::RETRIES)
    }
}

/// What a value, or an error of this class, tells the policies.
pub(super) fn judged(slow: bool, error: Option<ErrorClass>) -> Judged {
    let (verdict, answer, advice, retry_after) = match error {
        None if slow => (Some(Verdict::Success), Answer::SlowOk, Advice::Done, None),
        None => (Some(Verdict::Success), Answer::Ok, Advice::Done, None),
        Some(ErrorClass::Failure) => (Some(Verdict::Failure), Answer::Failed, Advice::NotRepeatable, None),
        Some(ErrorClass::Transient { retry_after }) => {
            (Some(Verdict::Failure), Answer::Failed, Advice::Retry, retry_after)
        }
        Some(ErrorClass::Throttled { retry_after }) => {
            (Some(Verdict::Paced), Answer::Failed, Advice::Retry, retry_after)
        }
        Some(ErrorClass::Permanent) => (None, Answer::ServerError, Advice::NotRetryable, None),
        Some(ErrorClass::Refused) => (None, Answer::Failed, Advice::NotRetryable, None),
    };
    let (outcome, result) =
        if error.is_none() { (Outcome::Ok, ResultKind::Response) } else { (Outcome::Error, ResultKind::Failure) };
    let judgement = Judgement { verdict, answer, cause: Cause::Fast, advice, retry_after };
    let sent = if error == Some(ErrorClass::Refused) { Sent::No } else { Sent::Yes };
    Judged { judgement, outcome, sent, result }
}

/// What an attempt tells them that was cut.
pub(super) fn judged_cut(fault: Fault, retries: bool) -> Judged {
    let judgement = Judgement {
        verdict: Some(Verdict::Timeout),
        answer: Answer::Failed,
        cause: Cause::Timeout,
        advice: if retries { Advice::Retry } else { Advice::NotRetryable },
        retry_after: None,
    };
    Judged { judgement, outcome: Outcome::Fault(fault), sent: Sent::Unknown, result: ResultKind::Failure }
}
