//! What `/ready` answers, as data. Its JSON is documented (docs/inside-a-service.md) and stays.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use steadfast::Snapshot;
use steadfast::policy::breaker::{BreakerSnapshot, State};

/// The service as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overall {
    /// Everything passes.
    Ok,
    /// Something that the service can do without fails: send requests.
    Degraded,
    /// Something that it cannot do without fails: send none.
    Unavailable,
}

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// It passes.
    Pass,
    /// It fails.
    Fail,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReadyReport {
    /// The service as a whole.
    pub status: Overall,
    /// Each check, by its name.
    pub checks: BTreeMap<String, CheckReport>,
}

/// What one check says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// Whether it passes.
    pub status: CheckStatus,
    /// Whether the service is unavailable while it fails.
    pub critical: bool,
    /// What is wrong, in words that are for everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The breakers, where it is about breakers.
    #[serde(rename = "meta", skip_serializing_if = "Option::is_none", serialize_with = "as_meta")]
    pub breakers: Option<BTreeMap<String, Breaker>>,
}

/// One breaker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Breaker {
    /// `closed`, `open`, or `half_open`.
    pub state: &'static str,
    /// Seconds until a call would be let through, to the millisecond; absent where the next one would be, and where an
    /// operator forced it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<f64>,
}

fn as_meta<S: serde::Serializer>(
    breakers: &Option<BTreeMap<String, Breaker>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Meta<'a> {
        breakers: &'a Option<BTreeMap<String, Breaker>>,
    }
    Meta { breakers }.serialize(serializer)
}

impl ReadyReport {
    pub(super) fn of(checks: impl IntoIterator<Item = (String, CheckReport)>) -> Self {
        let mut report = Self { status: Overall::Ok, checks: BTreeMap::new() };
        for (name, check) in checks {
            report.insert(name, check);
        }
        report
    }

    pub(super) fn insert(&mut self, name: String, check: CheckReport) {
        self.status = match (check.status, check.critical) {
            (CheckStatus::Fail, true) => Overall::Unavailable,
            (CheckStatus::Fail, false) if self.status == Overall::Ok => Overall::Degraded,
            _ => self.status,
        };
        self.checks.insert(name, check);
    }

    /// 200, or 503 where it is `unavailable`.
    pub fn status_code(&self) -> u16 {
        if self.status == Overall::Unavailable { 503 } else { 200 }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Cannot fail: text, and numbers that are none of JSON's impossible ones.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl CheckReport {
    pub(super) fn of_check(critical: bool, failed: Option<&str>) -> Self {
        let status = if failed.is_some() { CheckStatus::Fail } else { CheckStatus::Pass };
        Self { status, critical, detail: failed.map(str::to_owned), breakers: None }
    }

    /// Of two upstreams with one name the one that is worse off is told.
    pub(super) fn of_breakers(snapshots: &[Snapshot]) -> Self {
        let mut breakers: BTreeMap<String, Breaker> = BTreeMap::new();
        let mut details = Vec::new();
        for snapshot in snapshots {
            let name = &*snapshot.upstream;
            let is_closed = snapshot.breaker.state == State::Closed;
            if !is_closed {
                details.push(detail(name, &snapshot.breaker));
            }
            if !is_closed || !breakers.contains_key(name) {
                breakers.insert(name.to_owned(), Breaker::of(&snapshot.breaker));
            }
        }
        let status = if details.is_empty() { CheckStatus::Pass } else { CheckStatus::Fail };
        let detail = (!details.is_empty()).then(|| details.join("; "));
        Self { status, critical: false, detail, breakers: Some(breakers) }
    }
}

impl Breaker {
    fn of(breaker: &BreakerSnapshot) -> Self {
        Self { state: breaker.state.name(), retry_after: breaker.retry_after.map(seconds) }
    }
}

/// 10.1: what is wrong with a breaker that is not closed.
fn detail(name: &str, breaker: &BreakerSnapshot) -> String {
    match breaker.state {
        _ if breaker.forced => format!("circuit breaker '{name}' is forced open"),
        _ if breaker.ready_to_probe => format!("circuit breaker '{name}' is ready to probe, no traffic"),
        State::HalfOpen => format!("circuit breaker '{name}' is half-open, a probe is under way"),
        State::Open | State::Closed => format!("circuit breaker '{name}' is open"),
    }
}

/// Rounded up to the millisecond.
fn seconds(wait: Duration) -> f64 {
    wait.as_nanos().div_ceil(1_000_000) as f64 / 1000.0
}
