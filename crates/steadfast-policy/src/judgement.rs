//! What one attempt tells the policies. The edge (HTTP, or a closure's classifier) fills it in; the loop hands it out.

use std::time::Duration;

/// What an attempt tells the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The upstream answered, whatever it answered.
    Success,
    /// The upstream is not there: refused, reset, cut short, 502, 503.
    Failure,
    /// It did not answer in time. A failure that counts as evidence of its own.
    Timeout,
    /// It answered, and asked us to slow down (429): nothing is recorded, but a probe that gets this far closes.
    Paced,
}

/// What an attempt tells the retry budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A good answer.
    Ok,
    /// A good answer, but later than half of its timeout.
    SlowOk,
    /// An answer that says the upstream has a bug (500, 501, 505): a failure for a retry, nothing for a first attempt.
    ServerError,
    /// No good answer.
    Failed,
}

/// What kind of failure a retry would repair, which sets what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It failed at once: refused, reset, 429, 502, 503.
    Fast,
    /// It took its whole timeout: read, write, attempt or connect timeout, 504.
    Timeout,
}

/// Whether another attempt makes sense, before any limit is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Nothing to repair: this is the answer.
    Done,
    /// A failure that another attempt cannot fix.
    NotRetryable,
    /// A failure that another attempt could fix, but this request may not be sent twice.
    NotRepeatable,
    /// A failure that another attempt can fix, and the request may be sent again.
    Retry,
}

/// Everything one attempt tells the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// For the circuit breaker; `None` is no verdict.
    pub verdict: Option<Verdict>,
    /// For the retry budget.
    pub answer: Answer,
    /// The price of repairing it.
    pub cause: Cause,
    /// Whether another attempt makes sense.
    pub advice: Advice,
    /// How long the upstream asked us to wait (`Retry-After`); zero means "it named a time that has passed".
    pub retry_after: Option<Duration>,
}
