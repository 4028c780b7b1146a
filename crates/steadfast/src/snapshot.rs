//! The state of one upstream as plain data. Taking a snapshot never changes the state.

use std::sync::Arc;

use steadfast_policy::breaker::BreakerSnapshot;
use steadfast_policy::budget::BudgetSnapshot;
use steadfast_policy::line::LineSnapshot;

use crate::transport::PoolSnapshot;

/// What one upstream's policies and pool hold right now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// The circuit breaker.
    pub breaker: BreakerSnapshot,
    /// The retry budget.
    pub budget: BudgetSnapshot,
    /// Slots in use, and calls in the line.
    pub line: LineSnapshot,
    /// The connections, where the client has a pool of its own.
    pub pool: Option<PoolSnapshot>,
    /// Whether the client was closed.
    pub closed: bool,
}
