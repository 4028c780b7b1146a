//! How long an opening lasts.
//!
//! Fixed, unless a start is configured: then the first opening is short, so that a restart of one second does not cost
//! fifteen, and each failed probe doubles it up to the full cool-down. An opening that follows soon after the last one
//! keeps its length: only a breaker that stayed closed for a full cool-down starts again.

use std::time::Duration;

use super::config::BreakerConfig;
use crate::Time;

#[derive(Debug)]
pub(super) struct CoolDown {
    first: Duration,
    full: Duration,
    /// The length of the last opening, or of the first one to come.
    current: Duration,
    /// When the last opening ended with a close.
    closed_at: Time,
}

impl CoolDown {
    pub(super) fn new(config: &BreakerConfig) -> Self {
        let first = config.cool_down_start.map_or(config.cool_down, |start| start.min(config.cool_down));
        Self { first, full: config.cool_down, current: first, closed_at: Time::ZERO }
    }

    /// Whether the settings behind both are the same, whatever has happened since.
    pub(super) fn has_settings_of(&self, other: &Self) -> bool {
        (self.first, self.full) == (other.first, other.full)
    }

    /// The length of the opening that goes on or went last.
    pub(super) fn current(&self) -> Duration {
        self.current
    }

    /// The breaker closed after an opening.
    pub(super) fn closed(&mut self, now: Time) {
        self.closed_at = now;
    }

    /// The breaker opens from closed: how long?
    pub(super) fn opens(&mut self, now: Time) -> Duration {
        if now.since(self.closed_at) >= self.full {
            self.current = self.first;
        }
        self.current
    }

    /// A probe failed: how long does the next opening last?
    pub(super) fn reopens(&mut self) -> Duration {
        self.current = self.current.saturating_mul(2).min(self.full);
        self.current
    }

    /// Forgets the openings so far.
    pub(super) fn reset(&mut self) {
        self.current = self.first;
    }
}
