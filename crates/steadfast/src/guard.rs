//! The same protection around any operation: a query, a mail, a call through another library.
//!
//! A guard runs an operation through the very loop that HTTP calls run through, with the same order of limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use steadfast_policy::backoff::Backoff;
use steadfast_policy::breaker::BreakerConfig;
use steadfast_policy::budget::BudgetConfig;
use steadfast_policy::line::{LineConfig, RateConfig};
use steadfast_policy::retry::RetryRules;
use steadfast_policy::{Advice, Answer, Cause, Judgement, Verdict};

use crate::call::{self, Options};
use crate::clock::Clock;
use crate::config::{Problem, Problems, check};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, EventHook};
use crate::operation::{Attempt, Judged, Operation, ResultKind};
use crate::report::{Ended, Outcome, Report};
use crate::snapshot::Snapshot;
use crate::upstream::{Rules, Setup, Upstream};

/// Deadline, retry, circuit breaker, bulkhead and rate limit around any operation. Clones share the state.
#[derive(Clone)]
pub struct Guard(Arc<Guarded>);

/// What clones share.
struct Guarded {
    upstream: Arc<Upstream>,
    rules: Rules,
}

/// What an operation is told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The number of this attempt; the first is 1.
    pub attempt: u32,
    /// What is left until the call must be over.
    pub time_left: Duration,
}

/// How a guarded call fails.
#[derive(Debug)]
#[non_exhaustive]
pub enum GuardError<E> {
    /// The operation's own last error, as it is.
    Operation {
        /// The error.
        error: E,
        /// Every attempt and wait.
        report: Box<Report>,
    },
    /// A limit ended the call: deadline, attempt timeout, open breaker, full bulkhead, rate limit.
    Limit {
        /// Which, and what happened before.
        error: Error,
        /// The operation's last error before that, if it had one.
        last: Option<E>,
    },
}

impl<E> GuardError<E> {
    /// Every attempt and wait.
    pub fn report(&self) -> &Report {
        match self {
            Self::Operation { report, .. } => report,
            Self::Limit { error, .. } => error.report(),
        }
    }

    /// The limit that ended the call, if it was one.
    pub fn limit(&self) -> Option<ErrorKind> {
        match self {
            Self::Operation { .. } => None,
            Self::Limit { error, .. } => Some(error.kind()),
        }
    }
}

impl<E: fmt::Display> fmt::Display for GuardError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation { error, .. } => error.fmt(f),
            Self::Limit { error, .. } => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for GuardError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Operation { error, .. } => error.source(),
            Self::Limit { last, .. } => last.as_ref().map(|last| last as &(dyn std::error::Error + 'static)),
        }
    }
}

impl Guard {
    /// A guard for the dependency of this name, with the defaults: 30 s, 3 attempts for transient errors, the breaker,
    /// 50 at once, no rate limit.
    pub fn builder(name: &str) -> GuardBuilder {
        GuardBuilder {
            name: Arc::from(name),
            total_timeout: Duration::from_secs(30),
            attempt_timeout: None,
            attempts: 3,
            backoff: Backoff::default(),
            breaker: BreakerConfig::default(),
            budget: BudgetConfig::default(),
            line: LineConfig::default(),
            seed: None,
            clock: Clock::system(),
            events: EventHook::default(),
        }
    }

    /// Runs `operation`; every error counts against the dependency, and none is retried (11.2).
    ///
    /// Cancel safe: dropping the future drops the operation and gives everything back.
    ///
    /// # Errors
    /// The operation's own error, or the limit that ended the call.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once something has to be
    /// waited for.
    pub async fn call<T, E, F, Fut>(&self, operation: F) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        let judge = |_: &E| Transience::Unknown;
        self.run("", ClosureOperation { operation, judge, slow_after: self.slow_after(), repeatable: false }).await
    }

    /// Runs `operation`; an error that `transient` says yes to counts against the dependency and may be retried,
    /// another passes through after one attempt and is no verdict (11.2). `key` says whose rate limit.
    ///
    /// Cancel safe: dropping the future drops the operation and gives everything back.
    ///
    /// # Errors
    /// The operation's own last error, or the limit that ended the call.
    ///
    /// # Panics
    /// With the system clock outside a tokio runtime, or in one without time (`enable_time`), once something has to be
    /// waited for.
    pub async fn call_transient<T, E, F, Fut, P>(
        &self,
        key: &str,
        transient: P,
        operation: F,
    ) -> Result<T, GuardError<E>>
    where
        F: FnMut(Context) -> Fut + Send,
        Fut: Future<Output = Result<T, E>> + Send,
        P: Fn(&E) -> bool + Send + Sync,
        T: Send,
        E: Send,
    {
        let judge = |error: &E| if transient(error) { Transience::Transient } else { Transience::Permanent };
        self.run(key, ClosureOperation { operation, judge, slow_after: self.slow_after(), repeatable: true }).await
    }

    async fn run<T, E, O: Operation<Out = Result<T, E>>>(
        &self,
        key: &str,
        mut operation: O,
    ) -> Result<T, GuardError<E>> {
        let options = Options { key, timeout: None, inherited: None, timeout_is_evidence: true };
        let finished = call::run(&self.0.upstream, &self.0.rules, &mut operation, options).await;
        if let Some(Ok(value)) = finished.response {
            return Ok(value);
        }
        let last = finished.failure.and_then(|failure| failure.err());
        let ended = finished.report.ended();
        // 11.3: an open breaker is never an operation's error, even where it opened on this very call; nor is an attempt
        // that we cut.
        let is_own = finished.kind == ErrorKind::Unreachable
            && ended != Ended::CircuitOpen
            && finished.report.attempts().last().is_some_and(|last| last.outcome == Outcome::Error);
        match (finished.kind, last) {
            (_, Some(error)) if is_own => Err(GuardError::Operation { error, report: Box::new(finished.report) }),
            (kind, last) => {
                let kind = if ended == Ended::CircuitOpen { ErrorKind::CircuitOpen } else { kind };
                let error = Error::new(kind, &self.0.upstream.name, finished.report);
                Err(GuardError::Limit { error, last })
            }
        }
    }

    /// The state as it is.
    pub fn snapshot(&self) -> Snapshot {
        self.0.upstream.snapshot()
    }

    fn slow_after(&self) -> Duration {
        let rules = &self.0.rules;
        rules.attempt_timeout.unwrap_or(rules.total_timeout).min(rules.total_timeout) / 2
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.0.upstream.name).finish_non_exhaustive()
    }
}

/// Sets a [`Guard`] up.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct GuardBuilder {
    name: Arc<str>,
    total_timeout: Duration,
    attempt_timeout: Option<Duration>,
    attempts: u32,
    backoff: Backoff,
    breaker: BreakerConfig,
    budget: BudgetConfig,
    line: LineConfig,
    seed: Option<u64>,
    clock: Clock,
    events: EventHook,
}

impl GuardBuilder {
    /// The deadline of a call, retries and waits included. 30 s; above zero and at most a day.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// The longest that one attempt may take. Unset; above zero and at most a day.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Tries in all, the first included. 3; at least 1.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The waits between attempts. 0.1 s doubling up to 2 s, full jitter.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The circuit breaker.
    pub fn breaker(mut self, breaker: BreakerConfig) -> Self {
        self.breaker = breaker;
        self
    }

    /// The retry budget.
    pub fn retry_budget(mut self, budget: BudgetConfig) -> Self {
        self.budget = budget;
        self
    }

    /// At most so many at once, each waiting for its slot at most `wait`. 50 and 0.5 s.
    pub fn max_concurrent(mut self, slots: u32, wait: Duration) -> Self {
        self.line.slots = slots;
        self.line.slot_wait = wait;
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

    /// A seed for the jitter, so that a test is the same each time.
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
        let rules = Rules {
            total_timeout: self.total_timeout,
            attempt_timeout: self.attempt_timeout,
            timeout_evidence: Duration::from_secs(1),
            retry: RetryRules {
                attempts: self.attempts,
                backoff: self.backoff,
                max_retry_after: self.total_timeout,
                retry_after_jitter: Duration::ZERO,
            },
        };
        let breaker = BreakerConfig { probe_lease: self.total_timeout, ..self.breaker };
        let setup = Setup { breaker, budget: self.budget, line: self.line, seed: self.seed };
        let upstream = Upstream::new(self.name, setup, self.clock, self.events);
        upstream.allow_calls_of(rules.total_timeout);
        Ok(Guard(Arc::new(Guarded { upstream: Arc::new(upstream), rules })))
    }

    fn problems(&self) -> Vec<Problem> {
        let (backoff, breaker, line) = (&self.backoff, &self.breaker, &self.line);
        let mut problems = check("total_timeout", self.total_timeout);
        problems.extend(self.attempt_timeout.into_iter().flat_map(|timeout| check("attempt_timeout", timeout)));
        problems.extend(check("backoff_base", backoff.base));
        problems.extend(check("backoff_factor", backoff.factor));
        problems.extend(check("backoff_max", backoff.max));
        problems.extend(check("jitter_max", backoff.jitter_max));
        problems.extend(check("breaker_failures", breaker.failures));
        problems.extend(check("breaker_failure_rate", breaker.failure_rate));
        problems.extend(check("breaker_minimum_calls", breaker.minimum_calls));
        problems.extend(check("breaker_window", breaker.window));
        problems.extend(check("breaker_cool_down", breaker.cool_down));
        problems.extend(breaker.cool_down_start.into_iter().flat_map(|start| check("breaker_cool_down_start", start)));
        problems.extend(check("max_concurrent", line.slots));
        problems.extend(check("bulkhead_wait", line.slot_wait));
        if let Some(rate) = &line.rate {
            problems.extend(check("rate_limit", rate.limit));
            problems.extend(check("rate_limit_period", rate.period));
            problems.extend(rate.wait.into_iter().flat_map(|wait| check("rate_limit_wait", wait)));
        }
        problems
    }
}

/// What an error says about the dependency.
#[derive(Clone, Copy)]
enum Transience {
    /// Nobody told: it counts, and is not retried.
    Unknown,
    /// It counts, and may be retried.
    Transient,
    /// It says nothing about the dependency.
    Permanent,
}

/// A closure as an operation.
struct ClosureOperation<F, J> {
    operation: F,
    judge: J,
    slow_after: Duration,
    /// Whether the caller said which errors may be tried again; then an attempt that took too long may be, too.
    repeatable: bool,
}

impl<T, E, F, Fut, J> Operation for ClosureOperation<F, J>
where
    F: FnMut(Context) -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
    J: Fn(&E) -> Transience + Send,
    T: Send,
    E: Send,
{
    type Out = Result<T, E>;

    fn attempt(&mut self, attempt: Attempt) -> impl Future<Output = Self::Out> + Send {
        (self.operation)(Context { attempt: attempt.number, time_left: attempt.time_left() })
    }

    fn judge(&self, ran: Duration, out: &Self::Out) -> Judged {
        let (verdict, answer, advice) = match out {
            Ok(_) if ran > self.slow_after => (Some(Verdict::Success), Answer::SlowOk, Advice::Done),
            Ok(_) => (Some(Verdict::Success), Answer::Ok, Advice::Done),
            Err(error) => match (self.judge)(error) {
                Transience::Unknown => (Some(Verdict::Failure), Answer::Failed, Advice::NotRetryable),
                Transience::Transient => (Some(Verdict::Failure), Answer::Failed, Advice::Retry),
                Transience::Permanent => (None, Answer::ServerError, Advice::NotRetryable),
            },
        };
        let (outcome, result) = match out {
            Ok(_) => (Outcome::Ok, ResultKind::Response),
            Err(_) => (Outcome::Error, ResultKind::Failure),
        };
        let judgement = Judgement { verdict, answer, cause: Cause::Fast, advice, retry_after: None };
        Judged { judgement, outcome, sent: Sent::Yes, result }
    }

    fn judge_cut(&self, fault: Fault) -> Judged {
        let judgement = Judgement {
            verdict: Some(Verdict::Timeout),
            answer: Answer::Failed,
            cause: Cause::Timeout,
            advice: if self.repeatable { Advice::Retry } else { Advice::NotRetryable },
            retry_after: None,
        };
        Judged { judgement, outcome: Outcome::Fault(fault), sent: Sent::Unknown, result: ResultKind::Failure }
    }
}
