//! Random settings, in plain numbers that the observer reads, too.

use std::time::Duration;

use fastrand::Rng;
use steadfast::Guard;
use steadfast::config::{Settings, SettingsBuilder};
use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::BreakerConfig;
use steadfast::policy::budget::BudgetConfig;
use steadfast::policy::line::{RateConfig, RateStyle};

use super::{Edge, MS, pick};

const SECOND: Duration = Duration::from_secs(1);

/// A limit on starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) starts: u32,
    pub(crate) period: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) smooth: bool,
}

/// Everything that can be set and that a call can notice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) total: Duration,
    pub(crate) attempt: Option<Duration>,
    pub(crate) retries: u32,
    pub(crate) backoff: Backoff,
    pub(crate) max_retry_after: Duration,
    pub(crate) retry_after_jitter: Duration,
    pub(crate) retry_statuses: Vec<u16>,
    pub(crate) breaker_statuses: Vec<u16>,
    pub(crate) budget: BudgetConfig,
    pub(crate) failures: u32,
    pub(crate) failure_rate: f64,
    pub(crate) minimum_calls: u32,
    pub(crate) window: Duration,
    pub(crate) cool_down: Duration,
    pub(crate) cool_down_start: Option<Duration>,
    pub(crate) evidence: Duration,
    pub(crate) slots: u32,
    pub(crate) slot_wait: Duration,
    pub(crate) limit: Option<Limit>,
}

impl Config {
    pub(crate) fn draw(rng: &mut Rng, edge: Edge) -> Self {
        let total = pick(rng, &[MS * 80, MS * 300, SECOND, SECOND * 3, SECOND * 10, SECOND * 30]);
        let mut config = Self {
            total,
            attempt: pick(rng, &[None, None, Some(MS * 50), Some(MS * 200), Some(SECOND)]),
            retries: pick(rng, &[0, 1, 2, 3, 3, 6]),
            backoff: draw_backoff(rng),
            max_retry_after: pick(rng, &[MS * 1500, SECOND * 5, SECOND * 30]),
            retry_after_jitter: pick(rng, &[Duration::ZERO, Duration::ZERO, MS * 300]),
            retry_statuses: pick(rng, &[&[429, 502, 503, 504][..], &[429, 502, 503, 504], &[503], &[404, 500, 503]])
                .to_vec(),
            breaker_statuses: pick(rng, &[&[502, 503, 504][..], &[502, 503, 504], &[429, 503], &[500, 503]]).to_vec(),
            budget: BudgetConfig {
                ratio: pick(rng, &[0.0, 0.1, 0.2, 0.5, 5.0, 5.0]),
                min_per_second: pick(rng, &[0.0, 0.1, 1.0, 1.0, 3.5, 100.0]),
                gate: rng.u8(0..4) == 0,
            },
            failures: pick(rng, &[1, 2, 3, 5, 5, 8, 1_000, 1_000, 1_000]),
            failure_rate: pick(rng, &[0.3, 0.5, 0.9, 1.0]),
            minimum_calls: pick(rng, &[3, 10, 20, 1_000, 1_000, 1_000]),
            window: pick(rng, &[MS * 300, SECOND * 3, SECOND * 30]),
            cool_down: pick(rng, &[MS * 10, MS * 40, MS * 200, SECOND, SECOND * 5]),
            cool_down_start: pick(rng, &[None, None, Some(MS * 30)]),
            evidence: pick(rng, &[Duration::ZERO, MS * 100, SECOND]),
            slots: pick(rng, &[1, 2, 4, 10, 50, 200]),
            slot_wait: pick(rng, &[Duration::ZERO, MS * 20, MS * 500, SECOND * 5]),
            limit: draw_limit(rng),
        };
        if edge == Edge::Guard {
            // What a guard has no setter for.
            (config.retry_after_jitter, config.evidence) = (Duration::ZERO, SECOND);
        }
        config
    }

    /// The same but for a few keys.
    pub(crate) fn vary(&self, rng: &mut Rng) -> Self {
        let (mut config, other) = (self.clone(), Self::draw(rng, Edge::Http));
        for _ in 0..rng.usize(1..4) {
            match rng.u8(0..7) {
                0 => (config.total, config.attempt) = (other.total, other.attempt),
                1 => (config.retries, config.backoff) = (other.retries, other.backoff),
                2 => (config.failures, config.cool_down) = (other.failures, other.cool_down),
                3 => (config.slots, config.slot_wait) = (other.slots, other.slot_wait),
                4 => config.limit = other.limit,
                5 => config.budget = other.budget,
                _ => config.breaker_statuses.clone_from(&other.breaker_statuses),
            }
        }
        config
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut builder = SettingsBuilder::new("http://upstream")
            .name("upstream")
            .total_timeout(self.total)
            .retries(self.retries)
            .backoff_base(self.backoff.base)
            .backoff_factor(self.backoff.factor)
            .backoff_max(self.backoff.max)
            .jitter(self.backoff.jitter)
            .jitter_max(self.backoff.jitter_max)
            .max_retry_after(self.max_retry_after)
            .retry_after_jitter(self.retry_after_jitter)
            .retry_statuses(&self.retry_statuses)
            .breaker_statuses(&self.breaker_statuses)
            .retry_budget_ratio(self.budget.ratio)
            .retry_budget_min_per_second(self.budget.min_per_second)
            .retry_budget_gate(self.budget.gate)
            .breaker_failures(self.failures)
            .breaker_failure_rate(self.failure_rate)
            .breaker_minimum_calls(self.minimum_calls)
            .breaker_window(self.window)
            .breaker_cool_down(self.cool_down)
            .breaker_timeout_evidence(self.evidence)
            .max_concurrent(self.slots)
            .bulkhead_wait(self.slot_wait);
        if let Some(attempt) = self.attempt {
            builder = builder.attempt_timeout(attempt);
        }
        if let Some(start) = self.cool_down_start {
            builder = builder.breaker_cool_down_start(start);
        }
        if let Some(limit) = self.limit {
            builder = builder.rate_limit(limit.starts).rate_limit_period(limit.period).rate_limit_style(limit.style());
            if let Some(wait) = limit.wait {
                builder = builder.rate_limit_wait(wait);
            }
        }
        builder.build().unwrap()
    }

    pub(crate) fn guard(&self) -> steadfast::GuardBuilder {
        let mut builder = Guard::builder("upstream")
            .total_timeout(self.total)
            .attempts(self.retries + 1)
            .backoff(self.backoff)
            .max_retry_after(self.max_retry_after)
            .breaker(BreakerConfig {
                failures: self.failures,
                failure_rate: self.failure_rate,
                minimum_calls: self.minimum_calls,
                window: self.window,
                cool_down: self.cool_down,
                cool_down_start: self.cool_down_start,
                probe_lease: self.total,
            })
            .retry_budget(self.budget)
            .max_concurrent(self.slots, self.slot_wait);
        if let Some(attempt) = self.attempt {
            builder = builder.attempt_timeout(attempt);
        }
        if let Some(limit) = self.limit {
            let Limit { starts, period, wait, .. } = limit;
            builder = builder.rate_limit(RateConfig { limit: starts, period, wait, style: limit.style(), max_keys: 4 });
        }
        builder
    }

    /// Whether the breaker starts anew where these settings take the place of `before`.
    pub(crate) fn judges_otherwise(&self, before: &Self) -> bool {
        let judged = |config: &Self| {
            let (statuses, evidence) = (config.breaker_statuses.clone(), config.evidence);
            let times = (config.window, config.cool_down, config.cool_down_start);
            (config.failures, config.failure_rate.to_bits(), config.minimum_calls, times, statuses, evidence)
        };
        judged(self) != judged(before)
    }
}

impl Limit {
    fn style(self) -> RateStyle {
        if self.smooth { RateStyle::Smooth } else { RateStyle::Window }
    }
}

fn draw_backoff(rng: &mut Rng) -> Backoff {
    Backoff {
        base: pick(rng, &[Duration::ZERO, MS, MS * 20, MS * 100, MS * 400]),
        factor: pick(rng, &[1.0, 2.0, 3.5]),
        max: pick(rng, &[MS * 10, MS * 500, SECOND * 2]),
        jitter: pick(rng, &[Jitter::Full, Jitter::Full, Jitter::Equal, Jitter::Additive, Jitter::None]),
        jitter_max: pick(rng, &[Duration::ZERO, MS * 100]),
    }
}

fn draw_limit(rng: &mut Rng) -> Option<Limit> {
    (rng.u8(0..3) == 0).then(|| Limit {
        starts: pick(rng, &[1, 3, 10, 40, 100]),
        period: pick(rng, &[MS * 10, MS * 50, MS * 333, SECOND]),
        wait: pick(rng, &[None, Some(Duration::ZERO), Some(MS * 100), Some(SECOND * 2)]),
        smooth: rng.u8(0..3) == 0,
    })
}
