//! The state of one upstream as plain data. Taking a snapshot never changes the state.
//!
//! Its written form is fixed here and nowhere else: the policies depend on nothing but std, and what they call their fields
//! may change.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use steadfast_policy::breaker::{BreakerSnapshot, Opened};
use steadfast_policy::budget::BudgetSnapshot;
use steadfast_policy::line::LineSnapshot;

use crate::transport::PoolSnapshot;

/// What one upstream's policies and pool hold right now: data, which `serde` can write.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tariffs = steadfast::Guard::http("tariffs").build()?;
/// let state = serde_json::to_value(tariffs.snapshot())?;
/// assert_eq!(state["breaker"]["state"], "closed");
/// assert_eq!(state["line"]["slots"], 50);
/// # Ok(())
/// # }
/// ```
///
/// The fields of the written form stay as they are; what is added gets a name of its own. Times are whole milliseconds,
/// rounded up; `null` stands for what is not there.
///
/// | field | is |
/// |---|---|
/// | `upstream` | the name |
/// | `closed` | whether new calls are refused for ever |
/// | `breaker.state` | `closed`, `open`, `half_open` |
/// | `breaker.forced` | whether an operator put it there |
/// | `breaker.streak`, `.calls`, `.failures` | failures in a row; attempts in the window, and how many failed |
/// | `breaker.opened_with` | the same counts at the moment when it opened, and `why`; `null` while it is closed |
/// | `breaker.retry_after_ms` | what a refused call would be told; `null` if none is refused, or if it is forced open |
/// | `breaker.ready_to_probe` | not closed, but the next call goes through |
/// | `breaker.generation`, `.late_verdicts` | changes, and verdicts that came too late to count, since it was made |
/// | `budget.calls`, `.retries` | in the last ten seconds |
/// | `budget.ceiling_left` | retries that the ceiling would grant now; `null` without a ceiling |
/// | `budget.credit`, `.capacity` | the gate's, in good answers |
/// | `line.in_use`, `.queued` | slots that are taken; calls that wait for a slot or a place |
/// | `line.slots` | slots that there are; `null` without a limit |
/// | `line.keys` | keys that the rate limit keeps |
/// | `pool.open`, `.idle` | connections; `null` where the transport is not ours |
///
/// There is no address, path, or header in it. The name of a guard for a key holds that key.
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

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written {
            upstream: &self.upstream,
            closed: self.closed,
            breaker: Breaker::of(&self.breaker),
            budget: Budget::of(&self.budget),
            line: Line::of(&self.line),
            pool: self.pool.map(|pool| Pool { open: pool.open, idle: pool.idle }),
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct Written<'a> {
    upstream: &'a str,
    closed: bool,
    breaker: Breaker,
    budget: Budget,
    line: Line,
    pool: Option<Pool>,
}

#[derive(Serialize)]
struct Breaker {
    state: &'static str,
    forced: bool,
    streak: u32,
    calls: u64,
    failures: u64,
    opened_with: Option<OpenedWith>,
    retry_after_ms: Option<u64>,
    ready_to_probe: bool,
    generation: u64,
    late_verdicts: u64,
}

impl Breaker {
    fn of(breaker: &BreakerSnapshot) -> Self {
        Self {
            state: breaker.state.name(),
            forced: breaker.forced,
            streak: breaker.streak,
            calls: breaker.calls,
            failures: breaker.failures,
            opened_with: breaker.opened_with.map(OpenedWith::of),
            retry_after_ms: breaker.retry_after.map(millis),
            ready_to_probe: breaker.ready_to_probe,
            generation: breaker.generation,
            late_verdicts: breaker.late_verdicts,
        }
    }
}

#[derive(Serialize)]
struct OpenedWith {
    why: &'static str,
    streak: u32,
    calls: u64,
    failures: u64,
}

impl OpenedWith {
    fn of(opened: Opened) -> Self {
        Self { why: opened.why.name(), streak: opened.streak, calls: opened.calls, failures: opened.failures }
    }
}

#[derive(Serialize)]
struct Budget {
    calls: u64,
    retries: u64,
    ceiling_left: Option<u64>,
    credit: i64,
    capacity: i64,
}

impl Budget {
    fn of(budget: &BudgetSnapshot) -> Self {
        Self {
            calls: budget.requests,
            retries: budget.retries,
            ceiling_left: Some(budget.ceiling_left).filter(|left| *left < u64::MAX),
            credit: budget.credit,
            capacity: budget.capacity,
        }
    }
}

#[derive(Serialize)]
struct Line {
    in_use: u32,
    slots: Option<u32>,
    queued: u32,
    keys: usize,
}

impl Line {
    fn of(line: &LineSnapshot) -> Self {
        Self {
            in_use: line.in_use,
            slots: Some(line.slots).filter(|slots| *slots < u32::MAX),
            queued: line.queued,
            keys: line.keys,
        }
    }
}

#[derive(Serialize)]
struct Pool {
    open: usize,
    idle: usize,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
