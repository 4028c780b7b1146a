//! Setting a guard up: every limit is optional but the deadline.

use std::sync::Arc;
use std::time::Duration;

use steadfast_policy::backoff::Backoff;
use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::budget::BudgetConfig;
use steadfast_policy::line::{LineConfig, RateConfig};
use steadfast_policy::retry::RetryRules;

use super::{Guard, Guarded};
use crate::clock::Clock;
use crate::config::{Problem, Problems, check};
use crate::event::{Event, EventHook};
use crate::upstream::{Rules, Setup, Upstream};

/// Sets a [`Guard`] up. What is not said keeps its default.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct GuardBuilder {
    name: Arc<str>,
    total_timeout: Duration,
    attempt_timeout: Option<Duration>,
    attempts: u32,
    backoff: Backoff,
    max_retry_after: Option<Duration>,
    breaker: Option<BreakerConfig>,
    budget: Option<BudgetConfig>,
    has_bulkhead: bool,
    line: LineConfig,
    seed: Option<u64>,
    clock: Clock,
    events: EventHook,
}

impl GuardBuilder {
    pub(super) fn new(name: &str, total_timeout: Duration) -> Self {
        Self {
            name: Arc::from(name),
            total_timeout,
            attempt_timeout: None,
            attempts: 3,
            backoff: Backoff::default(),
            max_retry_after: None,
            breaker: Some(BreakerConfig::default()),
            budget: Some(BudgetConfig::default()),
            has_bulkhead: true,
            line: LineConfig::default(),
            seed: None,
            clock: Clock::system(),
            events: EventHook::default(),
        }
    }

    /// The deadline of a call, retries and waits included. 30 s, 10 s for a database, 300 s for a job; above zero and at
    /// most a day.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// The longest that one attempt may take. Unset; above zero and at most a day.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Tries in all, the first included, for errors that may be retried. 3; at least 1.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The waits between attempts. 0.1 s doubling up to 2 s, full jitter.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The longest wait that an error may ask for; the call ends at one that asks for more. Unset: whatever the deadline
    /// allows; at most a day.
    pub fn max_retry_after(mut self, longest: Duration) -> Self {
        self.max_retry_after = Some(longest);
        self
    }

    /// The circuit breaker. On, with the defaults of the configuration.
    pub fn breaker(mut self, breaker: BreakerConfig) -> Self {
        self.breaker = Some(breaker);
        self
    }

    /// No circuit breaker: no number of failures stops the next call.
    pub fn without_breaker(mut self) -> Self {
        self.breaker = None;
        self
    }

    /// The retry budget. On, with the defaults of the configuration. Its gate alone is switched off by
    /// [`BudgetConfig::gate`].
    pub fn retry_budget(mut self, budget: BudgetConfig) -> Self {
        self.budget = Some(budget);
        self
    }

    /// No retry budget: a call may use all its attempts, whatever others did.
    pub fn without_retry_budget(mut self) -> Self {
        self.budget = None;
        self
    }

    /// At most so many at once, each waiting for its slot at most `wait`. 50 and 0.5 s.
    pub fn max_concurrent(mut self, slots: u32, wait: Duration) -> Self {
        self.line.slots = slots;
        self.line.slot_wait = wait;
        self.has_bulkhead = true;
        self
    }

    /// No bulkhead: any number at once.
    pub fn without_bulkhead(mut self) -> Self {
        self.has_bulkhead = false;
        self
    }

    /// A rate limit for each key. Off.
    pub fn rate_limit(mut self, rate: RateConfig) -> Self {
        self.line.rate = Some(rate);
        self
    }

    /// Another clock than the system's.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// A seed for the jitter and for idempotency keys, so that a test is the same each time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Tells of every transition, attempt, retry and refusal; as [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.events = EventHook::new(hook);
        self
    }

    /// The guard.
    ///
    /// # Errors
    /// Every value outside the bounds that the key of the same name has in a configuration, all at once.
    pub fn build(self) -> Result<Guard, Problems> {
        let problems = self.problems();
        if !problems.is_empty() {
            return Err(problems.into_iter().collect());
        }
        Ok(self.assemble())
    }

    /// The guard, unchecked.
    pub(crate) fn assemble(self) -> Guard {
        let seed = self.seed.or_else(|| self.clock.seed());
        let rules = Rules {
            total_timeout: self.total_timeout,
            attempt_timeout: self.attempt_timeout,
            timeout_evidence: Duration::from_secs(1),
            retry: RetryRules {
                attempts: self.attempts,
                backoff: self.backoff,
                max_retry_after: self.max_retry_after.unwrap_or(self.total_timeout),
                retry_after_jitter: Duration::ZERO,
            },
        };
        let breaker = self.breaker.unwrap_or_else(never_opens);
        let line = if self.has_bulkhead { self.line } else { LineConfig { slots: u32::MAX, ..self.line } };
        let setup = Setup {
            breaker: BreakerConfig { probe_lease: self.total_timeout, ..breaker },
            budget: self.budget.unwrap_or_else(pays_for_all),
            line,
            seed,
        };
        let upstream = Upstream::new(self.name, setup, self.clock, self.events);
        upstream.allow_calls_of(rules.total_timeout);
        Guard(Arc::new(Guarded::new(Arc::new(upstream), rules, seed)))
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = check("total_timeout", self.total_timeout);
        problems.extend(self.attempt_timeout.into_iter().flat_map(|timeout| check("attempt_timeout", timeout)));
        problems.extend(check("backoff_base", self.backoff.base));
        problems.extend(check("backoff_factor", self.backoff.factor));
        problems.extend(check("backoff_max", self.backoff.max));
        problems.extend(check("jitter_max", self.backoff.jitter_max));
        problems.extend(self.max_retry_after.into_iter().flat_map(|longest| check("max_retry_after", longest)));
        problems.extend(self.breaker.iter().flat_map(breaker_problems));
        if self.has_bulkhead {
            problems.extend(check("max_concurrent", self.line.slots));
            problems.extend(check("bulkhead_wait", self.line.slot_wait));
        }
        if let Some(rate) = &self.line.rate {
            problems.extend(check("rate_limit", rate.limit));
            problems.extend(check("rate_limit_period", rate.period));
            problems.extend(rate.wait.into_iter().flat_map(|wait| check("rate_limit_wait", wait)));
        }
        problems
    }
}

fn breaker_problems(breaker: &BreakerConfig) -> Vec<Problem> {
    let mut problems = check("breaker_failures", breaker.failures);
    problems.extend(check("breaker_failure_rate", breaker.failure_rate));
    problems.extend(check("breaker_minimum_calls", breaker.minimum_calls));
    problems.extend(check("breaker_window", breaker.window));
    problems.extend(check("breaker_cool_down", breaker.cool_down));
    problems.extend(breaker.cool_down_start.into_iter().flat_map(|start| check("breaker_cool_down_start", start)));
    problems
}

/// More failures than there are numbers for.
fn never_opens() -> BreakerConfig {
    BreakerConfig { failures: u32::MAX, minimum_calls: u32::MAX, ..BreakerConfig::default() }
}

fn pays_for_all() -> BudgetConfig {
    BudgetConfig { ratio: f64::INFINITY, min_per_second: f64::INFINITY, gate: false }
}
