//! Every metric: its name, kind, unit, labels and description. The one table that the code, the page in `docs/`, the
//! dashboard and the alert rules are checked against.
//!
//! Labels have closed sets of values, but for `upstream`, whose values are names out of a configuration or the code. So
//! the number of time series is known for each name: 71 counters and gauges, and 6 histograms with 19 each in Prometheus.

use std::fmt;

use steadfast_http::Fault;
use steadfast_policy::breaker::{State, Why};

use crate::error::ErrorKind;
use crate::report::{Ended, Outcome, WaitReason};

/// One metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name for the `metrics` facade: words between dots.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Whether its unit is the second; otherwise it counts.
    pub in_seconds: bool,
    /// What its time series are told apart by.
    pub labels: &'static [Label],
    /// What it says, in one sentence.
    pub help: &'static str,
}

/// How the values of a metric behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only goes up, while a process lives.
    Counter,
    /// Goes up and down; as it was when [`refresh`](super::refresh) was last called.
    Gauge,
    /// Counts values by how large they are.
    Histogram,
}

impl Kind {
    /// The word for it, as Prometheus has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// What time series are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Label {
    /// The upstream's or dependency's name.
    Upstream,
    /// Why a call ended: the one reason that its report has.
    Ended,
    /// How an attempt ended: the class of its status, or the fault's name; `ok` or `error` for what is not HTTP.
    Outcome,
    /// Who asked for the wait before a retry.
    RetryReason,
    /// Which half of the retry budget said no.
    DenialReason,
    /// What was waited for.
    WaitReason,
    /// Which limit refused.
    Rejection,
    /// The state that a circuit breaker entered.
    To,
    /// What made it change.
    Why,
    /// How the body of a streamed response ended.
    BodyEnded,
    /// The state that a circuit breaker is in.
    BreakerState,
    /// Whether a connection carries a request.
    ConnectionState,
}

impl Label {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Ended | Self::BodyEnded => "ended",
            Self::Outcome => "outcome",
            Self::RetryReason | Self::DenialReason | Self::WaitReason => "reason",
            Self::Rejection => "kind",
            Self::To => "to",
            Self::Why => "why",
            Self::BreakerState | Self::ConnectionState => "state",
        }
    }

    /// All values that it can have; `None` for [`Upstream`](Self::Upstream).
    pub fn values(self) -> Option<Vec<&'static str>> {
        let values = match self {
            Self::Upstream => return None,
            Self::Ended => names(ENDED, Ended::name),
            Self::Outcome => names(OUTCOMES, OutcomeClass::name),
            Self::RetryReason => names(RETRY_REASONS, WaitReason::name),
            Self::DenialReason => names(DENIALS, Ended::name),
            Self::WaitReason => names(WAIT_REASONS, WaitReason::name),
            Self::Rejection => names(REJECTIONS, ErrorKind::name),
            Self::To => names(TRANSITIONS, |(to, _)| to.name()),
            Self::Why => names(TRANSITIONS, |(_, why)| why.name()),
            Self::BodyEnded => names(BODY_ENDS, BodyEnd::name),
            Self::BreakerState => names(STATES, State::name),
            Self::ConnectionState => vec![IDLE, BUSY],
        };
        Some(values)
    }
}

/// Each name once, in the order of the list.
fn names<V: Copy>(values: &[V], name: impl Fn(V) -> &'static str) -> Vec<&'static str> {
    let mut names = Vec::with_capacity(values.len());
    for name in values.iter().map(|value| name(*value)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Metric {
    const fn new(kind: Kind, name: &'static str, labels: &'static [Label], help: &'static str) -> Self {
        Self { name, kind, in_seconds: false, labels, help }
    }

    const fn seconds(kind: Kind, name: &'static str, labels: &'static [Label], help: &'static str) -> Self {
        Self { in_seconds: true, ..Self::new(kind, name, labels, help) }
    }

    /// Its name in Prometheus: `_` for the dots, the unit behind it, and `_total` behind a counter. A histogram's time
    /// series have `_bucket`, `_sum` and `_count` behind that.
    pub fn prometheus_name(&self) -> String {
        let unit = if self.in_seconds { "_seconds" } else { "" };
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub const TABLE: &[Metric] = &[
    CALLS,
    CANCELLED_CALLS,
    CALL_DURATION,
    CALL_TIMEOUT,
    ATTEMPTS,
    ATTEMPT_DURATION,
    RETRIES,
    BUDGET_DENIALS,
    BUDGET_CEILING_LEFT,
    BUDGET_CREDIT,
    REJECTIONS_BY_KIND,
    BREAKER_STATE,
    BREAKER_TRANSITIONS,
    BULKHEAD_IN_USE,
    BULKHEAD_LIMIT,
    QUEUED,
    RATE_LIMIT_KEYS,
    WAIT_DURATION,
    DEGRADED,
    STREAMED_BODIES,
    POOL_CONNECTIONS,
];

/// Upper bounds, in seconds, for the buckets of every histogram here: from a local cache to the longest deadline that is
/// usual. Those of a recorder that knows better may be others.
pub const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0];

use Kind::{Counter, Gauge, Histogram};
use Label::Upstream;

pub(super) const CALLS: Metric = Metric::new(
    Counter,
    "steadfast.calls",
    &[Upstream, Label::Ended],
    "Calls that ended, by the reason. One whose future was dropped is not among them.",
);
pub(super) const CANCELLED_CALLS: Metric = Metric::new(
    Counter,
    "steadfast.cancelled_calls",
    &[Upstream],
    "Calls whose future was dropped before they ended: their caller gave them up.",
);
pub(super) const CALL_DURATION: Metric = Metric::seconds(
    Histogram,
    "steadfast.call.duration",
    &[Upstream],
    "How long calls took as a whole, waits and retries included; to the head, where the body is read as it comes.",
);
pub(super) const CALL_TIMEOUT: Metric = Metric::seconds(
    Gauge,
    "steadfast.call.timeout",
    &[Upstream],
    "The longest that a call may take: total_timeout. Of several with one name, the longest.",
);
pub(super) const ATTEMPTS: Metric =
    Metric::new(Counter, "steadfast.attempts", &[Upstream, Label::Outcome], "Attempts that ended, by their outcome.");
pub(super) const ATTEMPT_DURATION: Metric = Metric::seconds(
    Histogram,
    "steadfast.attempt.duration",
    &[Upstream],
    "How long attempts took, their bodies included; to the head, where the body is read as it comes.",
);
pub(super) const RETRIES: Metric = Metric::new(
    Counter,
    "steadfast.retries",
    &[Upstream, Label::RetryReason],
    "Retries that were decided on, by who asked for the wait before them.",
);
pub(super) const BUDGET_DENIALS: Metric = Metric::new(
    Counter,
    "steadfast.retry_budget.denials",
    &[Upstream, Label::DenialReason],
    "Retries that made sense, and that the retry budget did not pay for.",
);
pub(super) const BUDGET_CEILING_LEFT: Metric = Metric::new(
    Gauge,
    "steadfast.retry_budget.ceiling_left",
    &[Upstream],
    "Retries that the ceiling of the retry budget would still grant now. Absent without a ceiling.",
);
pub(super) const BUDGET_CREDIT: Metric = Metric::new(
    Gauge,
    "steadfast.retry_budget.credit",
    &[Upstream],
    "Credit of the retry budget's gate, in good answers.",
);
pub(super) const REJECTIONS_BY_KIND: Metric = Metric::new(
    Counter,
    "steadfast.rejections",
    &[Upstream, Label::Rejection],
    "Attempts that our own limits refused, with nothing sent, by the limit.",
);
pub(super) const BREAKER_STATE: Metric = Metric::new(
    Gauge,
    "steadfast.circuit_breaker.state",
    &[Upstream, Label::BreakerState],
    "How many circuit breakers of this name are in the state: 1 or 0, unless several have the name.",
);
pub(super) const BREAKER_TRANSITIONS: Metric = Metric::new(
    Counter,
    "steadfast.circuit_breaker.transitions",
    &[Upstream, Label::To, Label::Why],
    "Changes of the circuit breaker, by the state that it entered and what made it change.",
);
pub(super) const BULKHEAD_IN_USE: Metric = Metric::new(
    Gauge,
    "steadfast.bulkhead.in_use",
    &[Upstream],
    "Slots that are taken: attempts in flight, and bodies that are still being read.",
);
pub(super) const BULKHEAD_LIMIT: Metric = Metric::new(
    Gauge,
    "steadfast.bulkhead.limit",
    &[Upstream],
    "Slots that there are: max_concurrent. Absent without a limit.",
);
pub(super) const QUEUED: Metric = Metric::new(
    Gauge,
    "steadfast.bulkhead.queued",
    &[Upstream],
    "Calls that wait in the line, for a slot or for a place of the rate limit.",
);
pub(super) const RATE_LIMIT_KEYS: Metric = Metric::new(
    Gauge,
    "steadfast.rate_limit.keys",
    &[Upstream],
    "Keys that the rate limit keeps, beside the one that calls without a key have.",
);
pub(super) const WAIT_DURATION: Metric = Metric::seconds(
    Histogram,
    "steadfast.wait.duration",
    &[Upstream, Label::WaitReason],
    "How long calls waited, by what for. Those that did not wait are not counted.",
);
pub(super) const DEGRADED: Metric = Metric::new(
    Counter,
    "steadfast.degraded",
    &[Upstream],
    "Fallbacks that were served instead of what the dependency did not bring.",
);
pub(super) const STREAMED_BODIES: Metric = Metric::new(
    Counter,
    "steadfast.streamed_bodies",
    &[Upstream, Label::BodyEnded],
    "Bodies of streamed responses that ended. One that was dropped is not among them.",
);
pub(super) const POOL_CONNECTIONS: Metric = Metric::new(
    Gauge,
    "steadfast.pool.connections",
    &[Upstream, Label::ConnectionState],
    "Connections to the upstream. Absent where the transport is not ours.",
);

/// Most frequent first: the lists are searched from the front.
pub(super) const ENDED: &[Ended] = &[
    Ended::Response,
    Ended::NotRepeatable,
    Ended::NotRetryable,
    Ended::Stale408,
    Ended::AttemptsExhausted,
    Ended::BudgetCeiling,
    Ended::BudgetEfficacy,
    Ended::Deadline,
    Ended::RetryAfterTooLong,
    Ended::CircuitOpen,
    Ended::BulkheadFull,
    Ended::RateLimited,
    Ended::InvalidRequest,
    Ended::Closed,
];

pub(super) const OUTCOMES: &[OutcomeClass] = &[
    OutcomeClass::Status2xx,
    OutcomeClass::Ok,
    OutcomeClass::Status3xx,
    OutcomeClass::Status4xx,
    OutcomeClass::Status5xx,
    OutcomeClass::Error,
    OutcomeClass::Fault(Fault::Dns),
    OutcomeClass::Fault(Fault::Connect),
    OutcomeClass::Fault(Fault::ConnectTimeout),
    OutcomeClass::Fault(Fault::Tls),
    OutcomeClass::Fault(Fault::Certificate),
    OutcomeClass::Fault(Fault::Proxy),
    OutcomeClass::Fault(Fault::ProxyRefused),
    OutcomeClass::Fault(Fault::Reset),
    OutcomeClass::Fault(Fault::RefusedStream),
    OutcomeClass::Fault(Fault::GoAway),
    OutcomeClass::Fault(Fault::Protocol),
    OutcomeClass::Fault(Fault::LocalProtocol),
    OutcomeClass::Fault(Fault::RequestBody),
    OutcomeClass::Fault(Fault::Decode),
    OutcomeClass::Fault(Fault::Incomplete),
    OutcomeClass::Fault(Fault::TooLarge),
    OutcomeClass::Fault(Fault::ReadTimeout),
    OutcomeClass::Fault(Fault::WriteTimeout),
    OutcomeClass::Fault(Fault::AttemptTimeout),
    OutcomeClass::Fault(Fault::Deadline),
    OutcomeClass::Fault(Fault::PoolTimeout),
];

pub(super) const RETRY_REASONS: &[WaitReason] = &[WaitReason::Backoff, WaitReason::RetryAfter];

pub(super) const DENIALS: &[Ended] = &[Ended::BudgetCeiling, Ended::BudgetEfficacy];

pub(super) const WAIT_REASONS: &[WaitReason] =
    &[WaitReason::Backoff, WaitReason::RetryAfter, WaitReason::Bulkhead, WaitReason::RateLimit];

pub(super) const REJECTIONS: &[ErrorKind] = &[ErrorKind::CircuitOpen, ErrorKind::BulkheadFull, ErrorKind::RateLimited];

pub(super) const TRANSITIONS: &[(State, Why)] = &[
    (State::Open, Why::Streak),
    (State::Open, Why::Rate),
    (State::Open, Why::ProbeFailed),
    (State::Open, Why::Forced),
    (State::HalfOpen, Why::CoolDownOver),
    (State::Closed, Why::ProbeSucceeded),
    (State::Closed, Why::Forced),
    (State::Closed, Why::Reset),
    (State::Closed, Why::Reconfigured),
];

pub(super) const BODY_ENDS: &[BodyEnd] = &[BodyEnd::Whole, BodyEnd::Deadline, BodyEnd::Failed];

pub(super) const STATES: &[State] = &[State::Closed, State::Open, State::HalfOpen];

pub(super) const IDLE: &str = "idle";
pub(super) const BUSY: &str = "busy";

/// An outcome without its status: how many there are must be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutcomeClass {
    Status2xx,
    Status3xx,
    Status4xx,
    /// With what is beyond: RFC 9110 section 15 has a client treat it so.
    Status5xx,
    Ok,
    Error,
    Fault(Fault),
}

impl OutcomeClass {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Status2xx => "2xx",
            Self::Status3xx => "3xx",
            Self::Status4xx => "4xx",
            Self::Status5xx => "5xx",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Fault(fault) => fault.name(),
        }
    }
}

impl From<Outcome> for OutcomeClass {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        match outcome {
            // No attempt ends with a 1xx but 101, which is an answer.
            Outcome::Status(..300) => Self::Status2xx,
            Outcome::Status(300..400) => Self::Status3xx,
            Outcome::Status(400..500) => Self::Status4xx,
            Outcome::Status(_) => Self::Status5xx,
            Outcome::Ok => Self::Ok,
            Outcome::Error => Self::Error,
            Outcome::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// How the body of a streamed response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Whole,
    Deadline,
    Failed,
}

impl BodyEnd {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Deadline => "deadline",
            Self::Failed => "failed",
        }
    }
}

impl From<Option<Fault>> for BodyEnd {
    fn from(fault: Option<Fault>) -> Self {
        match fault {
            None => Self::Whole,
            Some(Fault::Deadline) => Self::Deadline,
            Some(_) => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not in a list is not counted.
    #[test]
    fn every_status_and_every_fault_has_a_class_that_is_listed() {
        for status in 100..1_000 {
            assert!(OUTCOMES.contains(&OutcomeClass::from(Outcome::Status(status))), "{status}");
        }
        assert_eq!(OutcomeClass::from(Outcome::Status(299)).name(), "2xx");
        assert_eq!(OutcomeClass::from(Outcome::Status(399)).name(), "3xx");
        assert_eq!(OutcomeClass::from(Outcome::Status(404)).name(), "4xx");
        assert_eq!(OutcomeClass::from(Outcome::Status(599)).name(), "5xx");
        // `Fault` numbers its variants from 0, and the last is `PoolTimeout`.
        let listed = OUTCOMES.iter().filter_map(|class| match class {
            OutcomeClass::Fault(fault) => Some(*fault as usize),
            _ => None,
        });
        assert_eq!(listed.collect::<Vec<_>>(), (0..=Fault::PoolTimeout as usize).collect::<Vec<_>>());
    }

    #[test]
    fn every_ending_is_listed_but_that_of_a_body_whose_call_has_ended() {
        let missing: Vec<_> = (0..=Ended::Closed as usize)
            .filter(|number| !ENDED.iter().any(|ended| *ended as usize == *number))
            .collect();
        assert_eq!(missing, [Ended::BodyFailed as usize]);
    }

    #[test]
    fn names_and_labels_are_what_prometheus_takes() {
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        for metric in TABLE {
            assert!(metric.name.starts_with("steadfast.") && metric.name.split('.').all(is_word), "{metric}");
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{metric}");
            assert_eq!(metric.labels.first(), Some(&Label::Upstream), "{metric}");
            assert!(metric.labels.iter().all(|label| is_word(label.name())), "{metric}");
            assert_eq!(TABLE.iter().filter(|other| other.name == metric.name).count(), 1, "{metric}");
        }
        assert!(SECONDS.is_sorted_by(|one, next| one < next));
    }
}
