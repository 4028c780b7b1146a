//! Setting a guard up: every limit is optional but the deadline.

use std::sync::Arc;
use std::time::Duration;

use steadfast_policy::backoff::Backoff;
use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::budget::BudgetConfig;
use steadfast_policy::line::{LineConfig, MAX_WINDOW_LIMIT, RateConfig, RateStyle};
use steadfast_policy::retry::RetryRules;

use super::limits::{Limits, put};
use super::{Guard, Guarded};
use crate::clock::Clock;
use crate::config::{Config, GuardSettings, Origin, Place, Problem, Problems, Profile, check};
use crate::event::{Event, EventHook};
#[cfg(feature = "metrics")]
use crate::telemetry::metrics;
use crate::upstream::{Rules, Setup, Upstream};

/// Sets a [`Guard`] up. What is not said keeps its default.
///
/// Of two that say the same, an operator's configuration ([`settings`](Self::settings)) wins over a setter, a setter over a
/// [`profile`](Self::profile), and a profile over the default, in whatever order the methods are called.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct GuardBuilder {
    name: Arc<str>,
    /// The deadline of this kind of guard.
    kind: Duration,
    profile: Option<Profile>,
    settings: Option<Box<GuardSettings>>,
    total_timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    attempts: Option<u32>,
    backoff: Option<Backoff>,
    max_retry_after: Option<Duration>,
    breaker: Option<BreakerConfig>,
    has_breaker: bool,
    budget: Option<BudgetConfig>,
    has_budget: bool,
    /// Slots, and the longest wait for one.
    bulkhead: Option<(u32, Duration)>,
    has_bulkhead: bool,
    rate: Option<RateConfig>,
    seed: Option<u64>,
    clock: Clock,
    events: EventHook,
    /// Whether it is one policy alone.
    is_part: bool,
    /// What all guards of its family are called.
    family: Option<Arc<str>>,
    #[cfg(feature = "metrics")]
    metrics_name: Option<Arc<str>>,
}

impl GuardBuilder {
    pub(super) fn new(name: &str, kind: Duration) -> Self {
        Self {
            name: Arc::from(name),
            kind,
            profile: None,
            settings: None,
            total_timeout: None,
            attempt_timeout: None,
            attempts: None,
            backoff: None,
            max_retry_after: None,
            breaker: None,
            has_breaker: true,
            budget: None,
            has_budget: true,
            bulkhead: None,
            has_bulkhead: true,
            rate: None,
            seed: None,
            clock: Clock::system(),
            events: EventHook::default(),
            is_part: false,
            family: None,
            #[cfg(feature = "metrics")]
            metrics_name: None,
        }
    }

    /// The values of a profile, of those keys that a guard has, for all that no setter sets: they stand above the defaults
    /// and the deadline of the kind. See `docs/profiles.md`.
    ///
    /// ```
    /// use steadfast::Guard;
    /// use steadfast::config::Profile;
    ///
    /// // As patient as a mail relay asks for, but for this one's limit.
    /// let relay = Guard::job("relay").profile(Profile::Mail).attempts(1).build()?;
    /// # Ok::<(), steadfast::config::Problems>(())
    /// ```
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// What an operator's configuration says of this guard: it wins over every setter. A profile that it names stands in the
    /// place of the code's. It tunes a policy that is there: one that the code switches off stays off. A rate limit that only the configuration
    /// names keeps at most 1000 keys.
    pub fn settings(mut self, settings: &GuardSettings) -> Self {
        self.settings = Some(Box::new(settings.clone()));
        self
    }

    /// The same, of the table `[guards.<name>]` for this guard's name; without one, nothing changes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use steadfast::Guard;
    /// use steadfast::config::Loader;
    ///
    /// let file = "[guards.tariffs]\ntotal_timeout = \"4s\"\nmax_concurrent = 10";
    /// let config = Loader::new().text("steadfast.toml", file).load()?;
    /// let tariffs = Guard::database("tariffs").attempts(2).configured(&config).build()?;
    /// # Ok::<(), steadfast::config::Problems>(())
    /// ```
    pub fn configured(self, config: &Config) -> Self {
        match config.guard_settings(&self.name) {
            Some(settings) => self.settings(settings),
            None => self,
        }
    }

    /// The deadline of a call, retries and waits included. 30 s, 10 s for a database, 300 s for a job; above zero and at
    /// most a day.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = Some(timeout);
        self
    }

    /// The longest that one attempt may take. Unset; above zero and at most a day.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Tries in all, the first included, for errors that may be retried. 3; at least 1.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts.max(1));
        self
    }

    /// The waits between attempts. 0.1 s doubling up to 2 s, full jitter.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
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
        (self.breaker, self.has_breaker) = (Some(breaker), true);
        self
    }

    /// No circuit breaker: no number of failures stops the next call.
    pub fn without_breaker(mut self) -> Self {
        self.has_breaker = false;
        self
    }

    /// The retry budget. On, with the defaults of the configuration. Its gate alone is switched off by
    /// [`BudgetConfig::gate`].
    pub fn retry_budget(mut self, budget: BudgetConfig) -> Self {
        (self.budget, self.has_budget) = (Some(budget), true);
        self
    }

    /// No retry budget: a call may use all its attempts, whatever others did.
    pub fn without_retry_budget(mut self) -> Self {
        self.has_budget = false;
        self
    }

    /// At most so many at once, each waiting for its slot at most `wait`. 50 and 0.5 s.
    pub fn max_concurrent(mut self, slots: u32, wait: Duration) -> Self {
        (self.bulkhead, self.has_bulkhead) = (Some((slots, wait)), true);
        self
    }

    /// No bulkhead: any number at once.
    pub fn without_bulkhead(mut self) -> Self {
        self.has_bulkhead = false;
        self
    }

    /// A rate limit for each key. Off.
    pub fn rate_limit(mut self, rate: RateConfig) -> Self {
        self.rate = Some(rate);
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
        self.events = self.events.with(hook);
        self
    }

    /// Under another name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = Arc::from(name);
        self
    }

    /// The name that metrics count it under: the same for guards that are to count as one. Its own, unless set; in a
    /// [`Guards`](crate::Guards) the template's, and `guards` where each is [made](crate::Guards::with).
    #[cfg(feature = "metrics")]
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.metrics_name = Some(Arc::from(name));
        self
    }

    /// The name that metrics count it under, unless another one was set.
    #[cfg(feature = "metrics")]
    pub(super) fn or_metrics_name(mut self, name: &str) -> Self {
        self.metrics_name.get_or_insert_with(|| Arc::from(name));
        self
    }

    /// One of several with the same settings: they share the name's beginning and the clock, and no chance.
    pub(super) fn for_key(self, key: &str) -> Self {
        // A key may come from outside, and the name goes to logs: no line of theirs is to be of its making.
        let key = key.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter });
        let name: String = self.name.chars().chain(['/']).chain(key).collect();
        #[cfg(feature = "metrics")]
        let metrics_name = self.metrics_name.or_else(|| Some(Arc::clone(&self.name)));
        Self {
            name: Arc::from(name),
            family: Some(self.name),
            #[cfg(feature = "metrics")]
            metrics_name,
            ..self
        }
    }

    /// Chance of its own, if there is a seed, and the same each time.
    pub(super) fn seeded_by(mut self, key: &str) -> Self {
        let seed = self.seed.or_else(|| self.clock.seed());
        self.seed = seed.map(|seed| key.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)));
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
        Ok(self.assemble_with(|_| {}))
    }

    /// One policy alone, for a stack that is seen as a whole: its calls are no spans of their own.
    pub(crate) fn one_of_a_stack(mut self) -> Self {
        self.is_part = true;
        self
    }

    /// The guard, unchecked. `adjust` is for one whose deadline is not what its other limits are derived from.
    #[cfg_attr(not(feature = "metrics"), expect(unused_mut, reason = "metrics count under the guard's name"))]
    pub(crate) fn assemble_with(mut self, adjust: impl FnOnce(&mut Setup)) -> Guard {
        #[cfg(feature = "metrics")]
        self.events.count_in(match self.metrics_name.take() {
            Some(name) => metrics::shared_meter(&name),
            None => metrics::meter(&self.name),
        });
        let guard = self.assemble_for_one(adjust);
        #[cfg(feature = "metrics")]
        metrics::observe(&guard.0.upstream);
        guard
    }

    /// The same for a single call, which has no metrics of its own.
    pub(crate) fn assemble_for_one(self, adjust: impl FnOnce(&mut Setup)) -> Guard {
        let seed = self.seed.or_else(|| self.clock.seed());
        let limits = self.limits();
        let rules = Rules {
            total_timeout: limits.total_timeout,
            attempt_timeout: limits.attempt_timeout,
            timeout_evidence: limits.timeout_evidence,
            retry: RetryRules {
                attempts: limits.attempts,
                backoff: limits.backoff,
                max_retry_after: limits.max_retry_after.unwrap_or(limits.total_timeout),
                retry_after_jitter: limits.retry_after_jitter,
            },
        };
        let breaker = if self.has_breaker { limits.breaker } else { never_opens() };
        let line = if self.has_bulkhead { limits.line } else { LineConfig { slots: u32::MAX, ..limits.line } };
        let mut setup = Setup {
            breaker: BreakerConfig { probe_lease: limits.total_timeout, ..breaker },
            budget: if self.has_budget { limits.budget } else { pays_for_all() },
            line,
            seed,
            is_part: self.is_part,
            family: self.family,
        };
        adjust(&mut setup);
        let upstream = Upstream::new(self.name, setup, self.clock, self.events);
        upstream.allow_calls_of(rules.total_timeout);
        Guard(Arc::new(Guarded::new(Arc::new(upstream), rules, seed)))
    }

    /// All layers, the strongest last.
    fn limits(&self) -> Limits {
        let mut limits = Limits::new(self.kind);
        let named = self.settings.as_ref().and_then(|settings| settings.profile);
        if let Some(profile) = named.or(self.profile) {
            limits.overlay(&GuardSettings::of_profile(profile));
        }
        put(&mut limits.total_timeout, self.total_timeout);
        limits.attempt_timeout = self.attempt_timeout.or(limits.attempt_timeout);
        put(&mut limits.attempts, self.attempts);
        put(&mut limits.backoff, self.backoff);
        limits.max_retry_after = self.max_retry_after.or(limits.max_retry_after);
        put(&mut limits.breaker, self.breaker.clone());
        put(&mut limits.budget, self.budget);
        if let Some((slots, wait)) = self.bulkhead {
            (limits.line.slots, limits.line.slot_wait) = (slots, wait);
        }
        limits.line.rate = self.rate.or(limits.line.rate);
        if let Some(settings) = &self.settings {
            limits.overlay(settings);
        }
        limits
    }

    /// Every value that is outside its bounds.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let limits = self.limits();
        let mut problems = check("total_timeout", limits.total_timeout);
        problems.extend(limits.attempt_timeout.into_iter().flat_map(|timeout| check("attempt_timeout", timeout)));
        problems.extend(check("backoff_base", limits.backoff.base));
        problems.extend(check("backoff_factor", limits.backoff.factor));
        problems.extend(check("backoff_max", limits.backoff.max));
        problems.extend(check("jitter_max", limits.backoff.jitter_max));
        problems.extend(limits.max_retry_after.into_iter().flat_map(|longest| check("max_retry_after", longest)));
        if self.has_breaker {
            problems.extend(breaker_problems(&limits.breaker));
        }
        if self.has_budget {
            problems.extend(check("retry_budget_ratio", limits.budget.ratio));
            problems.extend(check("retry_budget_min_per_second", limits.budget.min_per_second));
        }
        if self.has_bulkhead {
            problems.extend(check("max_concurrent", limits.line.slots));
            problems.extend(check("bulkhead_wait", limits.line.slot_wait));
        }
        if let Some(rate) = &limits.line.rate {
            problems.extend(check("rate_limit", rate.limit));
            problems.extend(more_than_a_window_remembers(rate));
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

/// Of the hash FNV-1a, whose offset the seed takes the place of.
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The window style would quietly keep to less.
fn more_than_a_window_remembers(rate: &RateConfig) -> Option<Problem> {
    let is_too_much = rate.style == RateStyle::Window && rate.limit > MAX_WINDOW_LIMIT;
    is_too_much.then(|| {
        let expected =
            format!("at most {MAX_WINDOW_LIMIT} with RateStyle::Window (RateStyle::Smooth takes up to 1000000000)");
        let message = format!("expected {expected}; found {}", rate.limit);
        let problem = Problem::new(Place::At(Origin::Builder), "rate_limit", message);
        Problem { expected: Some(expected), found: Some(rate.limit.to_string()), ..problem }
    })
}

/// More failures than there are numbers for.
fn never_opens() -> BreakerConfig {
    BreakerConfig { failures: u32::MAX, minimum_calls: u32::MAX, ..BreakerConfig::default() }
}

fn pays_for_all() -> BudgetConfig {
    BudgetConfig { ratio: f64::INFINITY, min_per_second: f64::INFINITY, gate: false }
}
