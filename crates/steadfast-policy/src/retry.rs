//! After an attempt: return, give up (and why), or try again (and when).
//!
//! The conditions are asked in one order, and the first that fails names the reason:
//!
//! 1. there is something to repair, another attempt can repair it, and the request may be sent again;
//! 2. attempts are left;
//! 3. the upstream did not ask for a longer wait than is allowed, or than the deadline leaves;
//! 4. the deadline leaves time for the wait and [`MIN_ATTEMPT`](crate::deadline::MIN_ATTEMPT) after it;
//! 5. the circuit breaker will let the retry through when the wait is over;
//! 6. the budget pays. It is asked last, so that nothing is paid for a retry that something else forbids.

use std::time::Duration;

use crate::backoff::{Backoff, uniform};
use crate::breaker::Breaker;
use crate::budget::{Budget, Denied, RetryPermit};
use crate::deadline::Deadline;
use crate::{Advice, Judgement, Time};

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

/// What follows from an attempt.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a retry that is not made must give its permit back"]
pub enum Decision {
    /// There is nothing to repair: this is the answer.
    Return,
    /// Try again.
    RetryAt {
        /// When: the end of the wait.
        at: Time,
        /// How long the wait is.
        wait: Duration,
        /// What it follows.
        reason: WaitReason,
        /// What the budget granted. To be given back to it with the retry's end, or unsent.
        permit: RetryPermit,
    },
    /// Leave it at this failure.
    GiveUp(GiveUp),
}

/// Decides what follows from attempt number `attempt` (from 1), which ended just now with `judgement`.
///
/// `random` is one draw, uniform over all of `u64`. Of the policies passed in only the budget can change, and only if a
/// retry is granted.
#[expect(clippy::too_many_arguments, reason = "each is asked; a struct around them would be made here and taken apart")]
#[inline]
pub fn decide(
    rules: &RetryRules,
    attempt: u32,
    judgement: &Judgement,
    now: Time,
    deadline: Deadline,
    breaker: &Breaker,
    budget: &mut Budget,
    random: u64,
) -> Decision {
    if judgement.advice == Advice::Done {
        return Decision::Return;
    }
    decide_after_failure(rules, attempt, judgement, now, deadline, breaker, budget, random)
}

#[expect(clippy::too_many_arguments, reason = "those of `decide`")]
fn decide_after_failure(
    rules: &RetryRules,
    attempt: u32,
    judgement: &Judgement,
    now: Time,
    deadline: Deadline,
    breaker: &Breaker,
    budget: &mut Budget,
    random: u64,
) -> Decision {
    match judgement.advice {
        Advice::Done => return Decision::Return,
        Advice::NotRetryable => return Decision::GiveUp(GiveUp::NotRetryable),
        Advice::NotRepeatable => return Decision::GiveUp(GiveUp::NotRepeatable),
        Advice::Retry => {}
    }
    if attempt >= rules.attempts {
        return Decision::GiveUp(GiveUp::AttemptsExhausted);
    }
    // A time that has passed asks for no wait at all; without the backoff everybody who was told so would come at once.
    let asked = judgement.retry_after.filter(|wait| !wait.is_zero());
    let (wait, reason) = match asked {
        Some(asked) if asked > rules.max_retry_after || deadline.is_expired(now + asked) => {
            return Decision::GiveUp(GiveUp::RetryAfterTooLong);
        }
        Some(asked) => (asked.saturating_add(uniform(rules.retry_after_jitter, random)), WaitReason::RetryAfter),
        None => (rules.backoff.wait(attempt, random), WaitReason::Backoff),
    };
    let at = now + wait;
    if !deadline.allows_start(at) {
        return Decision::GiveUp(GiveUp::Deadline);
    }
    if breaker.would_refuse_at(now, at) {
        return Decision::GiveUp(GiveUp::CircuitOpen);
    }
    match budget.ask(now, judgement.cause, second_draw(random)) {
        Ok(permit) => Decision::RetryAt { at, wait, reason, permit },
        Err(Denied::Ceiling) => Decision::GiveUp(GiveUp::BudgetCeiling),
        Err(Denied::Efficacy) => Decision::GiveUp(GiveUp::BudgetEfficacy),
    }
}

/// Another draw from the first (the finalizer of splitmix64), so that the length of the wait says nothing about the time
/// of the budget's next probe.
fn second_draw(random: u64) -> u64 {
    let mut z = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::second_draw;

    #[test]
    fn the_second_draw_is_that_of_splitmix64() {
        // The first output of the reference generator seeded with zero, and with 1234567.
        assert_eq!(second_draw(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(second_draw(1_234_567), 6_457_827_717_110_365_317);
    }
}
