//! The gauges of all upstreams of one name: sums over what their snapshots say.

use std::sync::Arc;
use std::time::Duration;

use metrics::Recorder;
use steadfast_policy::breaker::State;

use super::handles::{METADATA, key};
use super::names::{self, Metric};
use super::registry::Observed;

/// As numbers that any recorder takes. `None` is not shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gauges {
    closed: u64,
    open: u64,
    half_open: u64,
    in_use: u64,
    queued: u64,
    keys: u64,
    credit: i64,
    timeout: Duration,
    limit: Option<u64>,
    ceiling_left: Option<u64>,
    /// Whether any has no limit, or no ceiling: then nor has the sum.
    is_unlimited: bool,
    has_no_ceiling: bool,
    pool: Option<Connections>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connections {
    idle: u64,
    busy: u64,
}

impl Gauges {
    /// What is shown of a name that nobody has any more.
    pub(super) fn of_none(self) -> Self {
        Self {
            limit: self.limit.map(|_| 0),
            ceiling_left: self.ceiling_left.map(|_| 0),
            pool: self.pool.map(|_| Connections::default()),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, observed: &dyn Observed) {
        let snapshot = observed.snapshot();
        match snapshot.breaker.state {
            State::Closed => self.closed += 1,
            State::Open => self.open += 1,
            State::HalfOpen => self.half_open += 1,
        }
        self.in_use += u64::from(snapshot.line.in_use);
        self.queued += u64::from(snapshot.line.queued);
        self.keys += snapshot.line.keys as u64;
        self.credit = self.credit.saturating_add(snapshot.budget.credit);
        self.timeout = self.timeout.max(observed.total_timeout());
        if snapshot.line.slots < u32::MAX {
            *self.limit.get_or_insert(0) += u64::from(snapshot.line.slots);
        } else {
            self.is_unlimited = true;
        }
        if snapshot.budget.ceiling_left < u64::MAX {
            let sum = self.ceiling_left.get_or_insert(0);
            *sum = sum.saturating_add(snapshot.budget.ceiling_left);
        } else {
            self.has_no_ceiling = true;
        }
        if let Some(pool) = snapshot.pool {
            let sum = self.pool.get_or_insert_default();
            sum.idle += pool.idle as u64;
            sum.busy += pool.open.saturating_sub(pool.idle) as u64;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float; what counts is far below 2^53")]
    pub(super) fn show(&self, recorder: &dyn Recorder, upstream: &Arc<str>) {
        let set = |metric: &Metric, values: &[&'static str], value: f64| {
            recorder.register_gauge(&key(metric, upstream, values), &METADATA).set(value);
        };
        for (state, count) in
            [(State::Closed, self.closed), (State::Open, self.open), (State::HalfOpen, self.half_open)]
        {
            set(&names::BREAKER_STATE, &[state.name()], count as f64);
        }
        set(&names::BULKHEAD_IN_USE, &[], self.in_use as f64);
        set(&names::QUEUED, &[], self.queued as f64);
        set(&names::RATE_LIMIT_KEYS, &[], self.keys as f64);
        set(&names::BUDGET_CREDIT, &[], self.credit as f64);
        set(&names::CALL_TIMEOUT, &[], self.timeout.as_secs_f64());
        if let Some(limit) = self.limit {
            set(&names::BULKHEAD_LIMIT, &[], if self.is_unlimited { f64::INFINITY } else { limit as f64 });
        }
        if let Some(left) = self.ceiling_left {
            set(&names::BUDGET_CEILING_LEFT, &[], if self.has_no_ceiling { f64::INFINITY } else { left as f64 });
        }
        if let Some(pool) = self.pool {
            set(&names::POOL_CONNECTIONS, &[names::IDLE], pool.idle as f64);
            set(&names::POOL_CONNECTIONS, &[names::BUSY], pool.busy as f64);
        }
    }
}
