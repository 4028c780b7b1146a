//! The places of one key: which starts lie in the window that ends now, and when the next one leaves it.
//!
//! The window is exact. A start at `t` is allowed if fewer than `limit` starts lie in `(t - period, t]`, so no window of
//! that length, wherever it begins, holds more. That needs the last `limit` starts and nothing else: when a start pushes
//! an older one out of the ring, that one had left the window.
//!
//! The smooth style is the same rule with one place and a window of `period / limit`: starts at least that far apart.

use std::collections::VecDeque;
use std::time::Duration;

use super::config::{MAX_WINDOW_LIMIT, RateConfig, RateStyle};
use crate::Time;

/// A rate limit in the form in which it is kept: so many places in a window of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) places: usize,
    /// Zero: no limit, and nothing is remembered.
    pub(super) window: Duration,
    pub(super) wait: Option<Duration>,
    pub(super) max_keys: usize,
}

impl Rate {
    pub(super) fn new(config: Option<RateConfig>) -> Self {
        let Some(config) = config else {
            return Self { places: usize::MAX, window: Duration::ZERO, wait: None, max_keys: 0 };
        };
        let limit = config.limit.max(1);
        let (places, window) = match config.style {
            RateStyle::Window => (limit.min(MAX_WINDOW_LIMIT), config.period),
            RateStyle::Smooth => {
                let apart = config.period.as_nanos().div_ceil(u128::from(limit));
                (1, Duration::from_nanos(u64::try_from(apart).unwrap_or(u64::MAX)))
            }
        };
        Self { places: places as usize, window, wait: config.wait, max_keys: config.max_keys.max(1) }
    }

    #[inline]
    pub(super) fn is_unlimited(&self) -> bool {
        self.window.is_zero()
    }
}

/// The starts of one key that may still matter, in time order.
#[derive(Debug, Default)]
pub(super) struct Places {
    starts: VecDeque<Time>,
}

impl Places {
    /// Records a start, which must be allowed and not earlier than the last.
    #[inline]
    pub(super) fn stamp(&mut self, now: Time, rate: &Rate) {
        self.forget(now, rate);
        self.starts.push_back(now);
    }

    /// The latest start that was not forgotten.
    pub(super) fn last(&self) -> Option<Time> {
        self.starts.back().copied()
    }

    /// Forgets the starts that have left the window.
    #[inline]
    pub(super) fn forget(&mut self, now: Time, rate: &Rate) {
        while self.starts.front().is_some_and(|&start| start + rate.window <= now) {
            self.starts.pop_front();
        }
    }

    /// Takes a start back, as if it had never been, whatever started since. Starts of the same instant are alike.
    pub(super) fn unstamp(&mut self, start: Time) {
        if let Ok(position) = self.starts.binary_search(&start) {
            self.starts.remove(position);
        }
    }

    /// When there is a place for a waiter with `rank` others before it, all of whom hold theirs until then. `None` if
    /// that depends on when they start. An instant in the past means that there has been one since.
    #[inline]
    pub(super) fn opens(&self, rank: usize, rate: &Rate) -> Option<Time> {
        if rank >= rate.places {
            return None;
        }
        // With as many in the window as there are places, the oldest must leave for the first; where there are fewer, the
        // first need nothing to leave.
        let Some(position) = (rank + self.starts.len()).checked_sub(rate.places) else { return Some(Time::ZERO) };
        self.starts.get(position).map(|&start| start + rate.window)
    }

    /// When a waiter with `rank` others before it gets a place if each of them starts as soon as it has its own.
    pub(super) fn estimate(&self, now: Time, rank: usize, rate: &Rate) -> Estimate {
        // Whoever is a whole ring behind another starts one window after it.
        let rounds = u32::try_from(rank / rate.places).unwrap_or(u32::MAX);
        let first = self.opens(rank % rate.places, rate).unwrap_or(Time::ZERO);
        Estimate { at: first.max(now) + rate.window.saturating_mul(rounds), moves: first <= now }
    }
}

/// When a waiter gets its place if those before it start as soon as they can.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) at: Time,
    /// One of those before it could start now and does not, so the estimate moves away as time passes.
    pub(super) moves: bool,
}
