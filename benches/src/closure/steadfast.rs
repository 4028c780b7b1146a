//! A guard, as a service uses it: everything that a call goes through, the report included.

use std::io;
use std::time::Duration;

use ::steadfast::Guard;
use ::steadfast::policy::line::{RateConfig, RateStyle};

use super::{Kind, Stack, operate};
use crate::Failure;

/// Deadline, retries, retry budget, circuit breaker, bulkhead: the defaults.
#[derive(Clone, Debug)]
pub struct Steadfast(Guard);

/// The same, with a rate limit that is never reached.
#[derive(Clone, Debug)]
pub struct RateLimited(Guard);

impl Steadfast {
    /// A guard with the defaults.
    ///
    /// # Errors
    /// None with these settings.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self(Guard::builder("closure").build()?))
    }
}

impl RateLimited {
    /// A guard with the defaults and an exact window of a thousand starts in 100 µs.
    ///
    /// # Errors
    /// None with these settings.
    pub fn new() -> Result<Self, Failure> {
        let rate = RateConfig {
            limit: 1_000,
            period: Duration::from_micros(100),
            wait: None,
            style: RateStyle::Window,
            max_keys: 1,
        };
        Ok(Self(Guard::builder("closure").rate_limit(rate).build()?))
    }
}

impl Stack for Steadfast {
    const NAME: &'static str = "steadfast";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        call(&self.0, kind).await
    }
}

impl Stack for RateLimited {
    const NAME: &'static str = "steadfast, rate limit";

    async fn call(&mut self, kind: Kind) -> Result<u64, Failure> {
        call(&self.0, kind).await
    }
}

async fn call(guard: &Guard, kind: Kind) -> Result<u64, Failure> {
    Ok(guard.transient(|_: &io::Error| true).call(move || operate(kind)).await?)
}
