//! What a client's calls came to, as their caller sees it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::output::Latencies;

/// The calls of one client to one upstream.
#[derive(Debug)]
pub(crate) struct Tally(Mutex<Counts>);

/// The figures, as they were when they were asked for.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) calls_while_down: u64,
    pub(crate) succeeded: u64,
    /// Calls that ended, by status or error.
    pub(crate) outcomes: BTreeMap<Cow<'static, str>, u64>,
    /// Failed calls that were not repeated because they may not be.
    pub(crate) not_repeated: u64,
    /// Calls refused by an open breaker although the outage was over: what its cool-down costs.
    pub(crate) refused_after_outage: u64,
    pub(crate) latencies: Latencies,
}

/// How one call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The last status, or the error's kind.
    pub(crate) result: Result<u16, &'static str>,
    /// It failed, and was not repeated because it may not be.
    pub(crate) not_repeated: bool,
}

/// When a call was made, seen from the outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Before,
    During,
    After,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Counts {
            calls: 0,
            calls_while_down: 0,
            succeeded: 0,
            outcomes: BTreeMap::new(),
            not_repeated: 0,
            refused_after_outage: 0,
            latencies: Latencies::new(),
        }))
    }

    /// The figures so far: a copy, because a guard that leaves here is a deadlock waiting for its second asker.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is made.
    pub(crate) fn started(&self, phase: Phase) {
        let mut counts = self.lock();
        counts.calls += 1;
        counts.calls_while_down += u64::from(phase == Phase::During);
    }

    /// It has ended.
    pub(crate) fn ended(&self, phase: Phase, ended: Ended, took: Duration) {
        let mut counts = self.lock();
        let (outcome, succeeded) = match ended.result {
            Ok(status) => (Cow::Owned(status.to_string()), status < 400),
            Err(kind) => (Cow::Borrowed(kind), false),
        };
        counts.succeeded += u64::from(succeeded);
        counts.not_repeated += u64::from(ended.not_repeated);
        counts.refused_after_outage += u64::from(phase == Phase::After && outcome == "circuit_open");
        *counts.outcomes.entry(outcome).or_default() += 1;
        counts.latencies.record(took);
    }
}
