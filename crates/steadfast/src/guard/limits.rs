//! What a guard holds its calls to, put together from the kind, a profile, the code, and a configuration.
//!
//! Each layer names only what it sets; a later one wins. The builder decides their order.

use std::time::Duration;

use steadfast_policy::backoff::Backoff;
use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::budget::BudgetConfig;
use steadfast_policy::line::{LineConfig, RateConfig, RateStyle};

use crate::config::GuardSettings;

/// Keys of a rate limit that a configuration made, and the code says nothing of.
const MAX_KEYS: usize = 1_000;

/// Every limit.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) total_timeout: Duration,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) attempts: u32,
    pub(super) backoff: Backoff,
    /// `None`: as long as the deadline allows.
    pub(super) max_retry_after: Option<Duration>,
    pub(super) retry_after_jitter: Duration,
    pub(super) timeout_evidence: Duration,
    pub(super) breaker: BreakerConfig,
    pub(super) budget: BudgetConfig,
    pub(super) line: LineConfig,
}

impl Limits {
    /// The defaults, with the deadline of a kind of guard.
    pub(super) fn new(total_timeout: Duration) -> Self {
        Self {
            total_timeout,
            attempt_timeout: None,
            attempts: 3,
            backoff: Backoff::default(),
            max_retry_after: None,
            retry_after_jitter: Duration::ZERO,
            timeout_evidence: Duration::from_secs(1),
            breaker: BreakerConfig::default(),
            budget: BudgetConfig::default(),
            line: LineConfig::default(),
        }
    }

    /// Puts what `settings` name in the place of what was there.
    pub(super) fn overlay(&mut self, settings: &GuardSettings) {
        put(&mut self.total_timeout, settings.total_timeout);
        self.attempt_timeout = settings.attempt_timeout.or(self.attempt_timeout);
        put(&mut self.attempts, settings.retries.map(|retries| retries.saturating_add(1)));
        put(&mut self.backoff.base, settings.backoff_base);
        put(&mut self.backoff.factor, settings.backoff_factor);
        put(&mut self.backoff.max, settings.backoff_max);
        put(&mut self.backoff.jitter, settings.jitter);
        put(&mut self.backoff.jitter_max, settings.jitter_max);
        self.max_retry_after = settings.max_retry_after.or(self.max_retry_after);
        put(&mut self.retry_after_jitter, settings.retry_after_jitter);
        put(&mut self.timeout_evidence, settings.breaker_timeout_evidence);
        put(&mut self.breaker.failures, settings.breaker_failures);
        put(&mut self.breaker.failure_rate, settings.breaker_failure_rate);
        put(&mut self.breaker.minimum_calls, settings.breaker_minimum_calls);
        put(&mut self.breaker.window, settings.breaker_window);
        put(&mut self.breaker.cool_down, settings.breaker_cool_down);
        self.breaker.cool_down_start = settings.breaker_cool_down_start.or(self.breaker.cool_down_start);
        put(&mut self.budget.ratio, settings.retry_budget_ratio);
        put(&mut self.budget.min_per_second, settings.retry_budget_min_per_second);
        put(&mut self.budget.gate, settings.retry_budget_gate);
        put(&mut self.line.slots, settings.max_concurrent);
        put(&mut self.line.slot_wait, settings.bulkhead_wait);
        self.overlay_rate(settings);
    }

    /// A limit is there once somebody said how many; what else is said of it tunes that one.
    fn overlay_rate(&mut self, settings: &GuardSettings) {
        let rate = match (&mut self.line.rate, settings.rate_limit) {
            (Some(rate), limit) => {
                put(&mut rate.limit, limit);
                rate
            }
            (none, Some(limit)) => none.insert(RateConfig {
                limit,
                period: Duration::from_secs(1),
                wait: None,
                style: RateStyle::Window,
                max_keys: MAX_KEYS,
            }),
            (None, None) => return,
        };
        put(&mut rate.period, settings.rate_limit_period);
        rate.wait = settings.rate_limit_wait.or(rate.wait);
        put(&mut rate.style, settings.rate_limit_style);
    }
}

/// Puts `value`, where there is one, in the place of what was there.
pub(super) fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
