//! What happened during one call: every attempt, every wait, and the one reason why it ended.
//!
//! A call that succeeds at its first attempt without waiting fills a report without allocating.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use steadfast_policy::retry::GiveUp;

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// A response with this status.
    Status(u16),
    /// No (whole) response.
    Fault(Fault),
    /// An operation that is not HTTP returned a value.
    Ok,
    /// An operation that is not HTTP returned an error.
    Error,
}

impl Outcome {
    /// The word for it: the status in digits, or the fault's name.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Status(status) => Cow::Owned(status.to_string()),
            Self::Fault(fault) => Cow::Borrowed(fault.name()),
            Self::Ok => Cow::Borrowed("ok"),
            Self::Error => Cow::Borrowed("error"),
        }
    }
}

/// One try on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Its number; the first is 1.
    pub number: u32,
    /// When it began, from the start of the call.
    pub start: Duration,
    /// How long it took, its body included; to the head, where the body is read as it comes.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether anything can have reached the upstream.
    pub sent: Sent,
}

/// What a call waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// Our own backoff before a retry.
    Backoff,
    /// The time that the upstream asked for.
    RetryAfter,
    /// A slot of the bulkhead.
    Bulkhead,
    /// A place of the rate limit.
    RateLimit,
}

impl WaitReason {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::RetryAfter => "retry_after",
            Self::Bulkhead => "bulkhead",
            Self::RateLimit => "rate_limit",
        }
    }
}

impl From<steadfast_policy::retry::WaitReason> for WaitReason {
    fn from(reason: steadfast_policy::retry::WaitReason) -> Self {
        match reason {
            steadfast_policy::retry::WaitReason::Backoff => Self::Backoff,
            steadfast_policy::retry::WaitReason::RetryAfter => Self::RetryAfter,
        }
    }
}

/// One wait between or before attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitRecord {
    /// When it began, from the start of the call.
    pub start: Duration,
    /// How long it lasted.
    pub duration: Duration,
    /// What it waited for.
    pub reason: WaitReason,
}

/// Why a call ended. A closed list: every ending has exactly one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ended {
    /// The last attempt's answer needs no repair.
    #[default]
    Response,
    /// The failure could be repaired, but the request may not be sent twice.
    NotRepeatable,
    /// Another attempt would not repair the failure.
    NotRetryable,
    /// A 408 from a reused connection, which may answer an earlier request.
    Stale408,
    /// All attempts are used.
    AttemptsExhausted,
    /// The budget's ceiling is reached.
    BudgetCeiling,
    /// Retries did not help lately.
    BudgetEfficacy,
    /// The deadline passed, or leaves no time for another attempt.
    Deadline,
    /// The upstream asked for a longer wait than is allowed.
    RetryAfterTooLong,
    /// The circuit breaker is open.
    CircuitOpen,
    /// The head of the response was handed over, and its body ended early.
    BodyFailed,
    /// No slot came free in time.
    BulkheadFull,
    /// No place of the rate limit in time.
    RateLimited,
    /// The request cannot be sent as it is.
    InvalidRequest,
    /// The client was closed.
    Closed,
}

impl Ended {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::NotRepeatable => "not_repeatable",
            Self::NotRetryable => "not_retryable",
            Self::Stale408 => "stale_408",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::BudgetCeiling => "budget_ceiling",
            Self::BudgetEfficacy => "budget_efficacy",
            Self::Deadline => "deadline",
            Self::RetryAfterTooLong => "retry_after_too_long",
            Self::CircuitOpen => "circuit_open",
            Self::BodyFailed => "body_failed",
            Self::BulkheadFull => "bulkhead_full",
            Self::RateLimited => "rate_limited",
            Self::InvalidRequest => "invalid_request",
            Self::Closed => "closed",
        }
    }
}

impl From<GiveUp> for Ended {
    fn from(reason: GiveUp) -> Self {
        match reason {
            GiveUp::NotRetryable => Self::NotRetryable,
            GiveUp::NotRepeatable => Self::NotRepeatable,
            GiveUp::AttemptsExhausted => Self::AttemptsExhausted,
            GiveUp::RetryAfterTooLong => Self::RetryAfterTooLong,
            GiveUp::Deadline => Self::Deadline,
            GiveUp::CircuitOpen => Self::CircuitOpen,
            GiveUp::BudgetCeiling => Self::BudgetCeiling,
            GiveUp::BudgetEfficacy => Self::BudgetEfficacy,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The whole story of one call.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Report {
    first: Option<AttemptRecord>,
    /// What a call that succeeds at its first attempt does not have: a report is moved more often than it is read.
    rest: Option<Box<Rest>>,
    ended: Ended,
    duration: Duration,
}

/// Everything but the first attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest {
    attempts: Vec<AttemptRecord>,
    waits: Vec<WaitRecord>,
    retry_after: Option<Duration>,
}

impl Report {
    /// Every attempt, in order.
    pub fn attempts(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| &rest.attempts))
    }

    /// How many attempts were made.
    pub fn attempt_count(&self) -> u32 {
        let more = self.rest.as_ref().map_or(0, |rest| rest.attempts.len());
        u32::from(self.first.is_some()) + u32::try_from(more).unwrap_or(u32::MAX - 1)
    }

    /// Every wait, in order.
    pub fn waits(&self) -> &[WaitRecord] {
        self.rest.as_ref().map_or(&[], |rest| &rest.waits)
    }

    /// Why the call ended.
    pub fn ended(&self) -> Ended {
        self.ended
    }

    /// How long the call took as a whole.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// When it makes sense to call again, where that is known: the last answer asked for a wait that this call did not
    /// wait for, or one of our own limits refused the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        self.rest.as_ref().and_then(|rest| rest.retry_after)
    }

    pub(crate) fn push_attempt(&mut self, attempt: AttemptRecord) {
        match self.first {
            None => self.first = Some(attempt),
            Some(_) => self.rest().attempts.push(attempt),
        }
    }

    pub(crate) fn push_wait(&mut self, wait: WaitRecord) {
        self.rest().waits.push(wait);
    }

    /// The body of the last attempt's response ended early, so long after its head.
    pub(crate) fn body_failed(&mut self, fault: Fault, ended: Ended, lasted: Duration) {
        let later = self.rest.as_mut().and_then(|rest| rest.attempts.last_mut());
        if let Some(last) = later.or(self.first.as_mut()) {
            last.outcome = Outcome::Fault(fault);
            last.duration += lasted;
        }
        self.ended = ended;
        self.duration += lasted;
    }

    pub(crate) fn end(&mut self, ended: Ended, duration: Duration, retry_after: Option<Duration>) {
        self.ended = ended;
        self.duration = duration;
        if retry_after.is_some() {
            self.worth_trying_after(retry_after);
        }
    }

    /// When it makes sense to call again.
    pub(crate) fn worth_trying_after(&mut self, retry_after: Option<Duration>) {
        self.rest().retry_after = retry_after;
    }

    fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("attempts", &self.attempts().collect::<Vec<_>>())
            .field("waits", &self.waits())
            .field("ended", &self.ended)
            .field("duration", &self.duration)
            .field("retry_after", &self.retry_after())
            .finish()
    }
}

impl fmt::Display for Report {
    /// One line for people: `attempt 1: 503 after 12.3ms; waited 87.2ms (backoff); … ; ended: response`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut waits = self.waits().iter().peekable();
        for attempt in self.attempts() {
            // By its end: an attempt that took no time begins with the wait that follows it.
            while let Some(wait) = waits.next_if(|wait| wait.start + wait.duration <= attempt.start) {
                write!(f, "waited {:.1?} ({}); ", wait.duration, wait.reason.name())?;
            }
            write!(f, "attempt {}: {} after {:.1?}; ", attempt.number, attempt.outcome.name(), attempt.duration)?;
        }
        for wait in waits {
            write!(f, "waited {:.1?} ({}); ", wait.duration, wait.reason.name())?;
        }
        write!(f, "ended: {}", self.ended)
    }
}
