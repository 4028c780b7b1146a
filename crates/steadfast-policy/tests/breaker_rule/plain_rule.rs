//! The plain rule that the breaker refines: so many failures in a row, or a share of the window. Only tests have it.

use std::collections::VecDeque;

use steadfast_policy::{Time, Verdict};

use crate::history::Settings;

/// The verdicts since the last transition, as the plain rule counts them.
pub(crate) struct PlainRule {
    settings: Settings,
    streak: u64,
    timeouts: u64,
    /// Bucket, and whether it failed.
    window: VecDeque<(u64, bool)>,
    failed: u64,
    latest: Time,
}

/// What the plain rule says after a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    /// Failures in a row.
    pub(crate) streak: u64,
    /// Timeouts among them.
    pub(crate) timeouts: u64,
    /// The streak is long enough for it.
    pub(crate) streak_opens: bool,
    /// The share is high enough for it.
    pub(crate) rate_opens: bool,
    /// Successes in the window.
    pub(crate) successes: u64,
}

impl PlainRule {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, streak: 0, timeouts: 0, window: VecDeque::new(), failed: 0, latest: Time::ZERO }
    }

    pub(crate) fn clear(&mut self) {
        self.streak = 0;
        self.timeouts = 0;
        self.window.clear();
        self.failed = 0;
    }

    /// The clock was looked at.
    pub(crate) fn saw(&mut self, now: Time) {
        self.latest = self.latest.max(now);
    }

    pub(crate) fn record(&mut self, verdict: Verdict) -> Says {
        let failed = verdict != Verdict::Success;
        let bucket = self.latest.as_nanos() / self.settings.bucket_nanos();
        self.window.push_back((bucket, failed));
        self.failed += u64::from(failed);
        while let Some(&(oldest, failed)) = self.window.front()
            && oldest + 30 <= bucket
        {
            self.window.pop_front();
            self.failed -= u64::from(failed);
        }
        self.streak = if failed { self.streak + 1 } else { 0 };
        self.timeouts = if failed { self.timeouts + u64::from(verdict == Verdict::Timeout) } else { 0 };
        let calls = self.window.len() as u64;
        Says {
            streak: self.streak,
            timeouts: self.timeouts,
            streak_opens: self.streak >= u64::from(self.settings.failures),
            rate_opens: calls >= u64::from(self.settings.minimum_calls)
                && self.failed * 1_000_000 >= u64::from(self.settings.rate_millionths) * calls,
            successes: calls - self.failed,
        }
    }
}
