//! The one error that a call can end with, when no attempt got a response.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::report::{Ended, Report};

/// A boxed error: of a hook, of a body in pieces, of a transport of one's own.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What kind of ending it was (contract 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The circuit breaker refused the call; nothing was sent.
    CircuitOpen,
    /// No slot came free in time; nothing was sent.
    BulkheadFull,
    /// No place of the rate limit in time; nothing was sent.
    RateLimited,
    /// The call's deadline passed during a wait or an attempt.
    Timeout,
    /// The last attempt got no response, and retrying stopped.
    Unreachable,
    /// A mistake of the caller; nothing was sent.
    InvalidRequest,
    /// The client was closed; nothing was sent.
    Closed,
}

impl ErrorKind {
    /// Whether nothing was sent because we did not want to.
    pub(crate) const fn is_refusal(self) -> bool {
        !matches!(self, Self::Timeout | Self::Unreachable)
    }

    /// The word used by reports, problem documents and the command's JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CircuitOpen => "circuit_open",
            Self::BulkheadFull => "bulkhead_full",
            Self::RateLimited => "rate_limited",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::InvalidRequest => "invalid_request",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A call that got no response.
///
/// Its text names the upstream and nothing else: no path, no query, no address, no low-level text. The low-level
/// error, where there is one, is the [`source`](StdError::source).
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    upstream: Arc<str>,
    detail: Option<String>,
    report: Report,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, upstream: &Arc<str>, report: Report) -> Self {
        Self(Box::new(Inner { kind, upstream: Arc::clone(upstream), detail: None, report, source: None }))
    }

    /// The caller's own mistake, found before anything was asked or sent.
    pub(crate) fn invalid_request(upstream: &Arc<str>, detail: impl fmt::Display) -> Self {
        let mut report = Report::default();
        report.end(Ended::InvalidRequest, Duration::ZERO, None);
        let mut error = Self::new(ErrorKind::InvalidRequest, upstream, report);
        error.0.detail = Some(detail.to_string());
        error
    }

    pub(crate) fn with_source(mut self, source: Option<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = source;
        self
    }

    /// What kind of ending it was.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The upstream's name.
    pub fn upstream(&self) -> &str {
        &self.0.upstream
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.0.report.attempt_count()
    }

    /// When it makes sense to call again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.report.retry_after()
    }

    /// Every attempt, every wait, and why the call ended.
    pub fn report(&self) -> &Report {
        &self.0.report
    }

    /// The breaker refused the call.
    pub fn is_circuit_open(&self) -> bool {
        self.kind() == ErrorKind::CircuitOpen
    }

    /// No slot came free in time.
    pub fn is_bulkhead_full(&self) -> bool {
        self.kind() == ErrorKind::BulkheadFull
    }

    /// No place of the rate limit in time.
    pub fn is_rate_limited(&self) -> bool {
        self.kind() == ErrorKind::RateLimited
    }

    /// The call's deadline passed.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// No attempt got a response.
    pub fn is_unreachable(&self) -> bool {
        self.kind() == ErrorKind::Unreachable
    }

    /// The request could not be sent as it was.
    pub fn is_invalid_request(&self) -> bool {
        self.kind() == ErrorKind::InvalidRequest
    }

    /// The client was closed.
    pub fn is_closed(&self) -> bool {
        self.kind() == ErrorKind::Closed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.upstream();
        match self.kind() {
            ErrorKind::CircuitOpen => write!(f, "circuit breaker '{name}' is open"),
            ErrorKind::BulkheadFull => write!(f, "too many calls to upstream '{name}' are in flight"),
            ErrorKind::RateLimited => write!(f, "the rate limit of upstream '{name}' has no place in time"),
            ErrorKind::Timeout => write!(f, "upstream '{name}' did not answer before the deadline"),
            ErrorKind::Unreachable => {
                let attempts = self.attempts();
                let plural = if attempts == 1 { "" } else { "s" };
                write!(f, "upstream '{name}' could not be reached in {attempts} attempt{plural}")?;
                match self.report().attempts().last() {
                    Some(last) => write!(f, " ({})", last.outcome.name()),
                    None => Ok(()),
                }
            }
            ErrorKind::InvalidRequest => {
                write!(f, "invalid request to upstream '{name}'")?;
                match &self.0.detail {
                    Some(detail) => write!(f, ": {detail}"),
                    None => Ok(()),
                }
            }
            ErrorKind::Closed => write!(f, "the client of upstream '{name}' is closed"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("upstream", &self.0.upstream)
            .field("detail", &self.0.detail)
            .field("report", &self.0.report)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
