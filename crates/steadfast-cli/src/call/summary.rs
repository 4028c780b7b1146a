//! What all calls of a run add up to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::record::Record;
use crate::output::{Latencies, Percentiles};

/// The totals so far.
#[derive(Debug)]
pub(crate) struct Totals {
    calls: u64,
    requests: u64,
    retries: u64,
    outcomes: BTreeMap<String, u64>,
    latencies: Latencies,
}

/// The last line of the output. The order of the fields is part of the format.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    summary: bool,
    calls: u64,
    /// Attempts, those that could not connect among them.
    requests: u64,
    /// Attempts after a call's first.
    retries: u64,
    outcomes: &'a BTreeMap<String, u64>,
    /// From a call's start to its end; `null` where no call ended.
    latency_ms: Option<Percentiles>,
}

impl Totals {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { calls: 0, requests: 0, retries: 0, outcomes: BTreeMap::new(), latencies: Latencies::new() }
    }

    /// One more call.
    pub(crate) fn add(&mut self, record: &Record) {
        let attempts = record.line.attempts.len() as u64;
        self.calls += 1;
        self.requests += attempts;
        self.retries += attempts.saturating_sub(1);
        *self.outcomes.entry(record.line.outcome().into_owned()).or_default() += 1;
        self.latencies.record(record.elapsed);
    }

    /// The line for machines.
    pub(crate) fn line(&self) -> Summary<'_> {
        Summary {
            summary: true,
            calls: self.calls,
            requests: self.requests,
            retries: self.retries,
            outcomes: &self.outcomes,
            latency_ms: self.latencies.percentiles(),
        }
    }

    /// The sentence for people.
    pub(crate) fn sentence(&self) -> String {
        let outcomes: Vec<_> = self.outcomes.iter().map(|(outcome, n)| format!("{n} × {outcome}")).collect();
        let at = |quantile| self.latencies.at(quantile).map_or_else(String::new, human);
        format!(
            "{}, {} ({}): {}\nlatency p50 {}, p90 {}, p99 {}, max {}",
            count(self.calls, "call"),
            count(self.requests, "request"),
            if self.retries == 1 { String::from("1 retry") } else { format!("{} retries", self.retries) },
            if outcomes.is_empty() { String::from("nothing ended") } else { outcomes.join(", ") },
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0),
        )
    }
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn human(duration: Duration) -> String {
    crate::output::human(duration)
}
