//! After an attempt: return, give up (and why), or try again (and when).

use std::time::Duration;

use crate::backoff::Backoff;

/// What a call may do after a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryRules {
    /// Attempts in all, the first included. Default 3.
    pub attempts: u32,
    /// The wait before a retry, where the upstream named none.
    pub backoff: Backoff,
    /// The longest `Retry-After` that is waited for. Default 30 s.
    pub max_retry_after: Duration,
    /// Up to so much is added to a `Retry-After`, at random. Default zero: it is waited for exactly.
    pub retry_after_jitter: Duration,
}

impl Default for RetryRules {
    fn default() -> Self {
        Self {
            attempts: 3,
            backoff: Backoff::default(),
            max_retry_after: Duration::from_secs(30),
            retry_after_jitter: Duration::ZERO,
        }
    }
}

/// What a wait before a retry follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// Our own backoff.
    Backoff,
    /// The upstream's `Retry-After`.
    RetryAfter,
}

/// Why a failure is not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// Another attempt cannot fix this failure.
    NotRetryable,
    /// This request may not be sent twice, and nothing proves that the upstream did not process it.
    NotRepeatable,
    /// All attempts have been made.
    AttemptsExhausted,
    /// The upstream asked for a longer wait than is allowed, or than the deadline leaves.
    RetryAfterTooLong,
    /// The deadline leaves no time for the wait and an attempt after it.
    Deadline,
    /// The circuit breaker is open, and still will be when the wait is over.
    CircuitOpen,
    /// The retry budget's ceiling has been reached.
    BudgetCeiling,
    /// Retries have not been helping.
    BudgetEfficacy,
}
