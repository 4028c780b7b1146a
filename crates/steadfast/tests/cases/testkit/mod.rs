//! The test kit itself, used as an application's tests use it (contract 11.6, P20 to P22).

mod concurrency;
mod fake_clock;
mod fast_mode;
mod operation;
mod rate_limits;
mod scope;
mod script;

use std::time::Duration;

use steadfast::policy::backoff::{Backoff, Jitter};
use steadfast::policy::breaker::BreakerConfig;
use steadfast::policy::line::{RateConfig, RateStyle};
use steadfast::{Guard, GuardBuilder};

use crate::harness::secs;

/// Waits of one, two, four… seconds, to the point.
fn exact() -> Backoff {
    Backoff { base: secs(1), factor: 2.0, max: secs(60), jitter: Jitter::None, jitter_max: Duration::ZERO }
}

fn five_a_second() -> RateConfig {
    RateConfig { limit: 5, period: secs(1), wait: None, style: RateStyle::Window, max_keys: 100 }
}

/// As the second seed's client has it, with exact waits.
fn guard() -> GuardBuilder {
    let breaker = BreakerConfig { failures: 3, cool_down: secs(30), ..BreakerConfig::default() };
    Guard::builder("rates").attempts(4).backoff(exact()).breaker(breaker).without_retry_budget()
}
