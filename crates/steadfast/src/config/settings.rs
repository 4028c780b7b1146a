//! The effective, validated settings of one upstream.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use steadfast_http::StatusSet;
use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

/// One upstream's effective settings. Made by the builder or by the configuration reader, which check every bound;
/// what is in here is valid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The upstream's name: in errors, events, spans, and snapshots.
    pub name: String,
    /// Where it is: absolute http(s) URL; its path is a prefix of every request's.
    pub base_url: steadfast_http::BaseUrl,
    /// Opening TCP and TLS (and CONNECT in front). 2 s.
    pub connect_timeout: Duration,
    /// Each wait for the next piece of the response. 10 s.
    pub read_timeout: Duration,
    /// Each wait to write the next piece of the request. 10 s.
    pub write_timeout: Duration,
    /// The wait for a connection that the pool may open. 2 s.
    pub pool_timeout: Duration,
    /// The whole call: queueing, every attempt, every wait, the body. 30 s.
    pub total_timeout: Duration,
    /// One attempt as a whole; unset: bounded by the others.
    pub attempt_timeout: Option<Duration>,
    /// Tries after the first. 2.
    pub retries: u32,
    /// Backoff before the first retry. 0.1 s.
    pub backoff_base: Duration,
    /// Growth per retry. 2.
    pub backoff_factor: f64,
    /// Cap of the backoff. 2 s.
    pub backoff_max: Duration,
    /// Form of the random part. Full.
    pub jitter: Jitter,
    /// The random part of additive jitter. 0.1 s.
    pub jitter_max: Duration,
    /// The longest `Retry-After` that is waited for. 30 s.
    pub max_retry_after: Duration,
    /// Random extra on top of a `Retry-After` wait. 0.
    pub retry_after_jitter: Duration,
    /// Statuses that another attempt can fix. 429, 502, 503, 504.
    pub retry_statuses: StatusSet,
    /// Retries per call in the last ten seconds. 0.2.
    pub retry_budget_ratio: f64,
    /// Retries per second that a quiet client may always spend. 1.
    pub retry_budget_min_per_second: f64,
    /// Whether retries that do not help stop being paid for. True.
    pub retry_budget_gate: bool,
    /// The shortest streak that opens the breaker. 5.
    pub breaker_failures: u32,
    /// The share of failures that opens it. 0.5.
    pub breaker_failure_rate: f64,
    /// Attempts in the window before the share counts. 20.
    pub breaker_minimum_calls: u32,
    /// The window of the share. 30 s.
    pub breaker_window: Duration,
    /// How long it stays open. 15 s.
    pub breaker_cool_down: Duration,
    /// How long the first opening lasts, doubling with each failed probe; unset: `breaker_cool_down`.
    pub breaker_cool_down_start: Option<Duration>,
    /// Statuses that are failures for the breaker. 502, 503, 504.
    pub breaker_statuses: StatusSet,
    /// How long an attempt must have run for the call's deadline to count against the upstream. 1 s.
    pub breaker_timeout_evidence: Duration,
    /// Attempts in flight. 50.
    pub max_concurrent: u32,
    /// The wait for a slot. 0.5 s.
    pub bulkhead_wait: Duration,
    /// Attempts per `rate_limit_period` and key; unset: no limit.
    pub rate_limit: Option<u32>,
    /// The window of the rate limit. 1 s.
    pub rate_limit_period: Duration,
    /// The longest wait for a place; unset: the deadline.
    pub rate_limit_wait: Option<Duration>,
    /// Bursts of a whole window, or evenly spread.
    pub rate_limit_style: RateStyle,
    /// The largest body, decoded. 16 MiB.
    pub max_response_bytes: u64,
    /// Whether the caller's bearer token travels. False.
    pub forward_authorization: bool,
    /// Headers on every request; the weakest of all.
    pub headers: HeaderMap<HeaderValue>,
    /// `User-Agent` where nothing else sets one.
    pub user_agent: HeaderValue,
    /// How long an idle connection is kept. 90 s.
    pub idle_timeout: Duration,
    /// How long a connection is used at most, so that a changed address is noticed. 5 min.
    pub max_connection_age: Duration,
    /// Whether gzip is asked for and decoded. True.
    pub gzip: bool,
    /// Which roots a certificate must lead to, beside `tls_roots`.
    pub tls_platform_roots: bool,
    /// PEM files of further roots.
    pub tls_roots: Vec<std::path::PathBuf>,
    /// The header that carries the remaining deadline upstream; unset: none.
    pub deadline_header: Option<HeaderName>,
}
