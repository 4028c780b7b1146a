//! What the end of an attempt means to the policies.
//!
//! Decides, for a response or a fault: whether another attempt makes sense, what the circuit breaker and the retry
//! budget learn, and how long the upstream asked us to wait. It is a pure table. What only the loop knows stays with
//! the loop: whether the call's deadline that cut an attempt is evidence against the upstream (contract 1.5), and
//! whether an attempt that ended before it was sent counts at all.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use steadfast_policy::{Advice, Answer, Cause, Judgement, Verdict};

use crate::fault::{Fault, Sent};
use crate::repeat::Repeat;
use crate::retry_after::retry_after;
use crate::status::StatusSet;

#[cfg(test)]
mod tests;

/// Which statuses count as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What another attempt can fix. Default: 429, 502, 503, 504.
    pub retry: StatusSet,
    /// What says that the upstream is not there. Default: 502, 503, 504.
    pub breaker: StatusSet,
}

impl Default for Rules {
    fn default() -> Self {
        Self { retry: StatusSet::RETRY, breaker: StatusSet::BREAKER }
    }
}

/// What a whole response means.
///
/// `slow` says that its head came later than half of the smallest configured timeout; `now` is the wall clock, against
/// which a `Retry-After` date is read. `Retry-After` is looked at only where the status is one that another attempt
/// can fix.
pub fn judge_response(
    rules: &Rules,
    repeat: Repeat,
    status: StatusCode,
    headers: &HeaderMap,
    slow: bool,
    now: SystemTime,
) -> Judgement {
    let code = status.as_u16();
    let fixable = rules.retry.contains(code);
    let advice = if fixable {
        advice(repeat, Sent::Yes)
    } else if code >= 400 {
        Advice::NotRetryable
    } else {
        Advice::Done
    };
    let verdict = if rules.breaker.contains(code) {
        Verdict::Failure
    } else if status == StatusCode::TOO_MANY_REQUESTS {
        Verdict::Paced
    } else {
        Verdict::Success
    };
    let answer = if fixable {
        Answer::Failed
    } else if code >= 500 {
        Answer::ServerError
    } else if slow {
        Answer::SlowOk
    } else {
        Answer::Ok
    };
    let cause = if status == StatusCode::GATEWAY_TIMEOUT { Cause::Timeout } else { Cause::Fast };
    let retry_after = if fixable { retry_after(headers, now) } else { None };
    Judgement { verdict: Some(verdict), answer, cause, advice, retry_after }
}

/// What an attempt without a whole response means.
///
/// `sent` is what the transport can prove. It is believed rather than derived from the fault, because only the
/// transport knows which bytes it wrote.
pub fn judge_fault(repeat: Repeat, fault: Fault, sent: Sent) -> Judgement {
    let advice = if is_permanent(fault) { Advice::NotRetryable } else { advice(repeat, sent) };
    let cause = if fault.is_timeout() { Cause::Timeout } else { Cause::Fast };
    Judgement { verdict: verdict(fault), answer: Answer::Failed, cause, advice, retry_after: None }
}

const fn advice(repeat: Repeat, sent: Sent) -> Advice {
    if repeat.permits(sent) { Advice::Retry } else { Advice::NotRepeatable }
}

/// Whether the next attempt would end in the same way.
const fn is_permanent(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Certificate
            | Fault::ProxyRefused
            | Fault::LocalProtocol
            | Fault::RequestBody
            | Fault::TooLarge
            | Fault::PoolTimeout
    )
}

const fn verdict(fault: Fault) -> Option<Verdict> {
    match fault {
        // Our own doing: it says nothing about the upstream.
        Fault::ProxyRefused | Fault::LocalProtocol | Fault::RequestBody | Fault::PoolTimeout => None,
        // It answered, with more than we take.
        Fault::TooLarge => Some(Verdict::Success),
        _ if fault.is_timeout() => Some(Verdict::Timeout),
        _ => Some(Verdict::Failure),
    }
}
