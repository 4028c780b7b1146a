//! Rate limits that a test switches off, and on again.
//!
//! The switch belongs to a clock, and whatever was built on that clock follows it: at the next call, as if its
//! configuration had no rate limit. A limit that is on again has seen no start.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_policy::Time;
use steadfast_policy::line::{Line, LineConfig};

use crate::clock::Clock;

/// How many want the rate limits of one clock off.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitSwitch(Arc<AtomicUsize>);

impl LimitSwitch {
    pub(super) fn off(&self) -> RateLimitsOff {
        self.0.fetch_add(1, Ordering::SeqCst);
        RateLimitsOff(self.clone())
    }

    fn is_off(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// The rate limits of a clock are off until this is dropped, and any other of the same clock.
#[derive(Debug)]
#[must_use = "the rate limits are on again when this is dropped"]
pub struct RateLimitsOff(LimitSwitch);

impl Drop for RateLimitsOff {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the line of one upstream is to be like, with or without its rate limit.
#[derive(Debug)]
pub(crate) struct LineSetting {
    config: LineConfig,
    is_off: bool,
    switch: Option<LimitSwitch>,
}

impl LineSetting {
    pub(crate) fn new(config: LineConfig, clock: &Clock) -> Self {
        Self { config, is_off: false, switch: clock.limits().cloned() }
    }

    /// Does what the switch says, if it says something else than before.
    pub(crate) fn follow(&mut self, now: Time, line: &mut Line) {
        let is_off = self.switch.as_ref().is_some_and(LimitSwitch::is_off);
        if is_off != self.is_off {
            self.is_off = is_off;
            line.reconfigure(now, self.in_force());
        }
    }

    /// Other limits.
    pub(crate) fn change(&mut self, now: Time, line: &mut Line, config: LineConfig) {
        self.config = config;
        line.reconfigure(now, self.in_force());
    }

    fn in_force(&self) -> LineConfig {
        LineConfig { rate: self.config.rate.filter(|_| !self.is_off), ..self.config }
    }
}
