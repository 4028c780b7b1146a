//! One policy alone, for code that wants no more than that.
//!
//! There is one loop, and these are it: a [`Guard`] in which every other policy is switched off, so that a rule means here
//! what it means there. What is switched off never says anything; a piece has no deadline unless it is one.
//!
//! | to | use | it ends with |
//! |---|---|---|
//! | try again what may pass | [`retry`] | the operation's last error |
//! | stop waiting | [`timeout`](fn@timeout) | [`TimedOut`] |
//! | start so often, and no more | [`RateLimit`] | [`RateLimited`](crate::ErrorKind::RateLimited) |
//! | stop calling what is down | [`CircuitBreaker`] | [`CircuitOpen`](crate::ErrorKind::CircuitOpen) |
//! | run so many at once | [`Bulkhead`] | [`BulkheadFull`](crate::ErrorKind::BulkheadFull) |
//!
//! Each but the timeout has a form for plain threads, which ends in `_blocking`; a deadline that interrupts blocking work
//! is [`Guard::call_on_thread`].
//!
//! A limit, a breaker, and a bulkhead are values that are built once and shared: their state is theirs, not that of the
//! code that calls through them, and a clone is the same one. One that is built for each call limits nothing.
//!
//! Two pieces around one operation are a stack, with the order in which they were written, and neither knows what the other
//! decided. From two on, a [`Guard`] is shorter, and right: see the page on pieces in `docs/`.

mod blocking;
mod bulkhead;
mod circuit_breaker;
mod enter;
mod rate_limit;
mod retry;
mod timeout;

use std::time::Duration;

pub use bulkhead::{Bulkhead, BulkheadBuilder, BulkheadPermit};
pub use circuit_breaker::{CircuitBreaker, CircuitBreakerBuilder};
pub use rate_limit::{RateLimit, RateLimitBuilder};
pub use retry::{Retry, Unsaid, retry, retry_blocking, retry_with};
pub use timeout::{TimedOut, Timeout, timeout};

use crate::config::Problems;
use crate::guard::{Guard, GuardBuilder};
use crate::upstream::Setup;

/// A guard in which nothing is left but the deadline.
fn nothing_but(name: &str) -> GuardBuilder {
    Guard::builder(name).attempts(1).without_breaker().without_retry_budget().without_bulkhead().one_of_a_stack()
}

/// The guard, once its values have been checked, without its deadline.
fn without_deadline(builder: GuardBuilder, adjust: impl FnOnce(&mut Setup)) -> Result<Guard, Problems> {
    let problems = builder.problems();
    if !problems.is_empty() {
        return Err(problems.into_iter().collect());
    }
    Ok(builder.total_timeout(Duration::MAX).assemble_with(adjust))
}
