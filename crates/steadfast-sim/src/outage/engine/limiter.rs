//! An upstream's own rate limit, in fixed windows.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast::policy::Time;

use super::jobs::{Answer, Quota};
use crate::outage::upstream::{RateLimiter, Tells};

pub(super) struct Limiter {
    rules: RateLimiter,
    window: u64,
    /// How many came in this window, by client; all under one key where they share the limit.
    counts: BTreeMap<usize, u32>,
}

impl Limiter {
    pub(super) fn new(rules: RateLimiter) -> Self {
        Self { rules, window: 0, counts: BTreeMap::new() }
    }

    /// Counts a request: its answer says so much of what is left, and is a 429 if that was nothing.
    pub(super) fn admit(&mut self, now: Time, client: usize) -> Result<Option<Quota>, Answer> {
        let period = u64::try_from(self.rules.period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let window = now.as_nanos() / period;
        if window != self.window {
            self.window = window;
            self.counts.clear();
        }
        let count = self.counts.entry(if self.rules.per_client { client } else { 0 }).or_default();
        *count = count.saturating_add(1);
        let resets_in = Duration::from_nanos(period - now.as_nanos() % period);
        let (limit, left) = (self.rules.limit, self.rules.limit.saturating_sub(*count));
        let quota = Quota { limit, left, period: self.rules.period, resets_in };
        let quota = (self.rules.tells == Tells::RateLimit).then_some(quota);
        if *count <= limit {
            return Ok(quota);
        }
        let retry_after = (self.rules.tells == Tells::RetryAfter).then_some(resets_in);
        Err(Answer { status: 429, retry_after, quota })
    }
}
