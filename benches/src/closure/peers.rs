//! Crates that do a part of it: a stack of layers for tower, and one policy each. Set up as their documentation does, with
//! the figures that Steadfast has by default.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use failsafe::backoff::EqualJittered;
use failsafe::failure_policy::{ConsecutiveFailures, OrElse, SuccessRateOverTimeWindow};
use failsafe::futures::CircuitBreaker as _;
use failsafe::{Config, StateMachine};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tower::util::ServiceFn;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_resilience_bulkhead::{Bulkhead, BulkheadLayer, BulkheadServiceError};
use tower_resilience_circuitbreaker::{CircuitBreaker, CircuitBreakerError, CircuitBreakerLayer, DefaultClassifier};
use tower_resilience_retry::{Retry, RetryLayer};
use tower_resilience_timelimiter::{FixedTimeout, TimeLimiter, TimeLimiterLayer};

use super::{Kind, Operate, Stack, operate};
use crate::Failure;

type Operation = ServiceFn<fn(Kind) -> Operate>;
type Broken = CircuitBreakerError<BulkheadServiceError<io::Error>>;
type Layers =
    TimeLimiter<Retry<CircuitBreaker<Bulkhead<Operation>, DefaultClassifier>, Kind, u64, Broken>, FixedTimeout>;

/// tower-resilience: time limiter, retry, circuit breaker, bulkhead. It has no retry budget here and no rate limit.
#[derive(Clone)]
pub struct TowerResilience(Layers);

impl TowerResilience {
    /// The stack.
    ///
    /// # Errors
    /// None with these settings.
    pub fn new() -> Result<Self, Failure> {
        let retry = RetryLayer::<Kind, u64, Broken>::builder()
            .max_attempts(3)
            .exponential_backoff(Duration::from_millis(100))
            .build();
        let breaker = CircuitBreakerLayer::builder().failure_rate_threshold(0.5).sliding_window_size(100).build()?;
        let operation: Operation = tower::service_fn(operate as fn(Kind) -> Operate);
        let stack = ServiceBuilder::new()
            .layer(TimeLimiterLayer::slow().build())
            .layer(retry)
            .layer(breaker)
            .layer(BulkheadLayer::builder().max_concurrent_calls(50).build()?)
            .service(operation);
        Ok(Self(stack))
    }
}

impl Stack for TowerResilience {
    const NAME: &'static str = "tower-resilience";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        Ok(self.0.ready().await?.call(kind).await?)
    }
}

type Policy = OrElse<SuccessRateOverTimeWindow<EqualJittered>, ConsecutiveFailures<EqualJittered>>;

/// failsafe: a circuit breaker.
#[derive(Clone)]
pub struct Failsafe(StateMachine<Policy, ()>);

impl Failsafe {
    /// The breaker with its own defaults.
    pub fn new() -> Self {
        Self(Config::new().build())
    }
}

impl Default for Failsafe {
    fn default() -> Self {
        Self::new()
    }
}

impl Stack for Failsafe {
    const NAME: &'static str = "failsafe: breaker";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        Ok(self.0.call(operate(kind)).await?)
    }
}

/// backon: retries. Nothing is shared between calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backon;

impl Stack for Backon {
    const NAME: &'static str = "backon: retry";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        Ok((|| operate(kind)).retry(ExponentialBuilder::default().with_max_times(2)).when(|_| true).await?)
    }
}

/// governor: a rate limit, which is never reached.
#[derive(Clone)]
pub struct Governor(Arc<DefaultDirectRateLimiter>);

impl Governor {
    /// A limiter of as many starts as it can count.
    pub fn new() -> Self {
        Self(Arc::new(RateLimiter::direct(Quota::per_second(NonZeroU32::MAX))))
    }
}

impl Default for Governor {
    fn default() -> Self {
        Self::new()
    }
}

impl Stack for Governor {
    const NAME: &'static str = "governor: rate limit";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        self.0.until_ready().await;
        Ok(operate(kind).await?)
    }
}
