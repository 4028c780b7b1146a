//! The effective, validated settings of one upstream.
//!
//! Defaults live here and nowhere else: the reference page and `entries` show what [`Settings::new`] holds. Types,
//! bounds and names of the keys are in the table (`keys.rs`); a test holds the figures in the comments here to it.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use steadfast_http::{BaseUrl, StatusSet};
use steadfast_policy::backoff::Jitter;
use steadfast_policy::line::RateStyle;

use super::Profile;
use crate::transport::{HttpVersion, KEPT_BYTES, Proxy};

/// One upstream's effective settings. Made by the builder or by the configuration reader, which check every bound;
/// what is in here is valid.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The upstream's name: in errors, events, spans, and snapshots. 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// Where it is: an absolute http(s) URL whose path is a prefix of every request's. Required.
    pub base_url: BaseUrl,
    /// The sort of upstream, whose settings hold for each key that nobody sets. Default unset: the defaults hold, which are
    /// named here.
    pub profile: Option<Profile>,
    /// Opening TCP and TLS (and CONNECT in front). Default 2s; above 0s, at most 24h.
    pub connect_timeout: Duration,
    /// Each wait for the next piece of the response. Default 10s; above 0s, at most 24h.
    pub read_timeout: Duration,
    /// Each wait to write the next piece of the request. Default 10s; above 0s, at most 24h.
    pub write_timeout: Duration,
    /// The wait for a connection that the pool may open. Default 2s; above 0s, at most 24h.
    pub pool_timeout: Duration,
    /// The whole call: queueing, every attempt, every wait, the body. Default 30s; above 0s, at most 24h.
    pub total_timeout: Duration,
    /// One attempt as a whole. Default unset: bounded by the others; above 0s, at most 24h.
    pub attempt_timeout: Option<Duration>,
    /// Tries after the first. Default 2; 0 to 1000.
    pub retries: u32,
    /// Backoff before the first retry. Default 100ms; 0s to 24h.
    pub backoff_base: Duration,
    /// Growth of the backoff per retry. Default 2; 1 to 1000.
    pub backoff_factor: f64,
    /// Cap of the backoff. Default 2s; 0s to 24h.
    pub backoff_max: Duration,
    /// Form of the random part of the backoff. Default full.
    pub jitter: Jitter,
    /// The random part of additive jitter. Default 100ms; 0s to 24h.
    pub jitter_max: Duration,
    /// The longest `Retry-After` that is waited for. Default 30s; 0s to 24h.
    pub max_retry_after: Duration,
    /// Random extra on top of a `Retry-After` wait. Default 0s; 0s to 24h.
    pub retry_after_jitter: Duration,
    /// Statuses that another attempt can fix. Default 429, 502, 503, 504; each 200 to 599.
    pub retry_statuses: StatusSet,
    /// Retries per call, counted over the last ten seconds. Default 0.2; 0 to 1000.
    pub retry_budget_ratio: f64,
    /// Retries per second that a quiet client may always spend. Default 1; 0 to 1000000.
    pub retry_budget_min_per_second: f64,
    /// Whether retries that do not help stop being paid for. Default true.
    pub retry_budget_gate: bool,
    /// The shortest streak of failures that opens the breaker. Default 5; 1 to 1000000.
    pub breaker_failures: u32,
    /// The share of failures in the window that opens the breaker. Default 0.5; above 0, at most 1.
    pub breaker_failure_rate: f64,
    /// Attempts in the window before the share counts. Default 20; 1 to 1000000.
    pub breaker_minimum_calls: u32,
    /// The window over which the share is taken. Default 30s; above 0s, at most 24h.
    pub breaker_window: Duration,
    /// How long the breaker stays open. Default 15s; above 0s, at most 24h.
    pub breaker_cool_down: Duration,
    /// How long the first opening lasts, doubling with each failed probe. Default unset: `breaker_cool_down`; above 0s,
    /// at most 24h.
    pub breaker_cool_down_start: Option<Duration>,
    /// Statuses that are failures for the breaker. Default 502, 503, 504; each 200 to 599.
    pub breaker_statuses: StatusSet,
    /// How long an attempt must have run for the call's deadline to count against the upstream. Default 1s; 0s to 24h.
    pub breaker_timeout_evidence: Duration,
    /// Attempts in flight at once. Default 50; 1 to 1000000.
    pub max_concurrent: u32,
    /// The longest wait for a slot; 0 refuses at once. Default 500ms; 0s to 24h.
    pub bulkhead_wait: Duration,
    /// Attempts per `rate_limit_period` and key. Default unset: no limit; 1 to 1000000000 (style window: to 10000).
    pub rate_limit: Option<u32>,
    /// The window of the rate limit. Default 1s; above 0s, at most 24h.
    pub rate_limit_period: Duration,
    /// The longest wait for a place; 0 refuses at once. Default unset: the deadline; 0s to 24h.
    pub rate_limit_wait: Option<Duration>,
    /// Bursts of a whole window, or evenly spread. Default window.
    pub rate_limit_style: RateStyle,
    /// The largest response body in bytes, decoded. Default 16777216; 1 to 1099511627776.
    pub max_response_bytes: u64,
    /// The bytes of a streamed request body that are kept, so that it can be sent again; 0: none. Default 65536; 0 to
    /// 1073741824.
    pub replay_buffer_bytes: u64,
    /// Whether the bearer token of the request being served travels. Default false.
    pub forward_authorization: bool,
    /// Headers on every request; the weakest of all. Default none; at most 100.
    pub headers: HeaderMap<HeaderValue>,
    /// `User-Agent` where nothing else sets one. Default `steadfast/<version>`; 1 to 256 characters.
    pub user_agent: HeaderValue,
    /// How long an idle connection is kept. Default 90s; above 0s, at most 24h.
    pub idle_timeout: Duration,
    /// How long a connection is used at most, so that a changed address is noticed. Default 5m; above 0s, at most 24h.
    pub max_connection_age: Duration,
    /// Which HTTP is spoken; auto: over TLS what the upstream chooses, else HTTP/1.1. Default auto.
    pub http_version: HttpVersion,
    /// How often an HTTP/2 connection in use is asked for a sign of life. Default unset: never; above 0s, at most 24h.
    pub http2_ping_interval: Option<Duration>,
    /// How long that sign may take before the connection is given up. Default 10s; above 0s, at most 24h.
    pub http2_ping_timeout: Duration,
    /// The proxy in front. Default true, which is [`Proxy::Environment`]; false is [`Proxy::Off`].
    pub proxy: Proxy,
    /// Whether gzip is asked for and decoded. Default true.
    pub gzip: bool,
    /// Whether br is asked for and decoded, where the feature `brotli` is compiled in. Default true.
    pub brotli: bool,
    /// Whether zstd is asked for and decoded, where the feature `zstd` is compiled in. Default true.
    pub zstd: bool,
    /// Whether a certificate may lead to the platform's roots too, beside those of Mozilla, which are built in. Default
    /// false.
    pub tls_platform_roots: bool,
    /// PEM files of further roots. Default none; at most 100.
    pub tls_roots: Vec<PathBuf>,
    /// Whether only `tls_roots` count, not Mozilla's or the platform's. Default false.
    pub tls_roots_only: bool,
    /// A PEM file with our own certificate and its chain, for an upstream that asks for one. Default unset.
    pub tls_identity: Option<PathBuf>,
    /// A PEM file with the private key of `tls_identity`. Default unset: it is in that file too.
    pub tls_identity_key: Option<PathBuf>,
    /// The name that the upstream's certificate must be for, also sent as SNI. Default unset: the host of `base_url`.
    pub tls_server_name: Option<String>,
    /// The header that carries the remaining deadline upstream. Default unset: none.
    pub deadline_header: Option<HeaderName>,
    /// Whether each attempt is a span of its own, or one span stands for the call (feature `otel`). Default true.
    pub attempt_spans: bool,
    /// Whether spans say the URL, without user-info and the query's values (feature `otel`). Default false.
    pub record_url: bool,
}

impl AsRef<Self> for Settings {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Settings {
    /// The defaults, for the upstream `name` at `base_url`.
    pub(crate) fn new(name: impl Into<String>, base_url: BaseUrl) -> Self {
        Self {
            name: name.into(),
            base_url,
            profile: None,
            connect_timeout: Duration::from_secs(2),
            read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            pool_timeout: Duration::from_secs(2),
            total_timeout: Duration::from_secs(30),
            attempt_timeout: None,
            retries: 2,
            backoff_base: Duration::from_millis(100),
            backoff_factor: 2.0,
            backoff_max: Duration::from_secs(2),
            jitter: Jitter::Full,
            jitter_max: Duration::from_millis(100),
            max_retry_after: Duration::from_secs(30),
            retry_after_jitter: Duration::ZERO,
            retry_statuses: StatusSet::RETRY,
            retry_budget_ratio: 0.2,
            retry_budget_min_per_second: 1.0,
            retry_budget_gate: true,
            breaker_failures: 5,
            breaker_failure_rate: 0.5,
            breaker_minimum_calls: 20,
            breaker_window: Duration::from_secs(30),
            breaker_cool_down: Duration::from_secs(15),
            breaker_cool_down_start: None,
            breaker_statuses: StatusSet::BREAKER,
            breaker_timeout_evidence: Duration::from_secs(1),
            max_concurrent: 50,
            bulkhead_wait: Duration::from_millis(500),
            rate_limit: None,
            rate_limit_period: Duration::from_secs(1),
            rate_limit_wait: None,
            rate_limit_style: RateStyle::Window,
            max_response_bytes: 16 * 1024 * 1024,
            replay_buffer_bytes: KEPT_BYTES,
            forward_authorization: false,
            headers: HeaderMap::new(),
            user_agent: HeaderValue::from_static(concat!("steadfast/", env!("CARGO_PKG_VERSION"))),
            idle_timeout: Duration::from_secs(90),
            max_connection_age: Duration::from_secs(300),
            http_version: HttpVersion::Auto,
            http2_ping_interval: None,
            http2_ping_timeout: Duration::from_secs(10),
            proxy: Proxy::Environment,
            gzip: true,
            brotli: true,
            zstd: true,
            tls_platform_roots: false,
            tls_roots: Vec::new(),
            tls_roots_only: false,
            tls_identity: None,
            tls_identity_key: None,
            tls_server_name: None,
            deadline_header: None,
            attempt_spans: true,
            record_url: false,
        }
    }
}
