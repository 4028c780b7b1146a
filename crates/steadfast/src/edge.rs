//! How a failed call looks at the edge of the service that made it (contract 7.3).
//!
//! Decides which row of the one table ([`ProblemDetails::of_call`]) an error has, and adds what is known of the request
//! being served. An operation's own error is somebody else's text, so nothing of it is told: it is 503 where the dependency
//! failed, as every error is taken that nobody classified, and 500 where it answered no and the handler made nothing of it.
//!
//! Limits: `Retry-After` is told only where somebody asked for a wait; our own backoff is nobody else's.

use steadfast_http::Sent;
use steadfast_http::problem::ProblemDetails;

use crate::context;
use crate::error::Error;
use crate::guard::GuardError;
use crate::report::{Ended, Report};

impl Error {
    /// The problem document that a service answers with when it lets this error escape (RFC 9457; contract 7.3): 503,
    /// or 500 for an invalid request. It names the upstream, and never a path, an address, or low-level text; and the
    /// request being served, where the task [has one](crate::context).
    pub fn to_problem(&self) -> ProblemDetails {
        problem(self.kind().name(), self.upstream(), self.report())
    }
}

impl<E> GuardError<E> {
    /// The problem document that a service answers with when it lets this error escape, as [`Error::to_problem`]. Of an
    /// operation's own error it tells nothing but that there was one: 503 (`operation_failed`) if the dependency failed or a
    /// limit further in refused, 500 (`operation_rejected`) if it answered no.
    pub fn to_problem(&self) -> ProblemDetails {
        match self {
            Self::Limit { error, .. } => error.to_problem(),
            Self::Operation { upstream, report, .. } => {
                // A limit further in refused: nothing was asked, so nothing was answered no.
                let refused = report.attempts().last().is_some_and(|last| last.sent == Sent::No);
                let fixable = refused || report.ended() != Ended::NotRetryable;
                let reason = if fixable { "operation_failed" } else { "operation_rejected" };
                problem(reason, upstream, report)
            }
        }
    }
}

fn problem(reason: &str, upstream: &str, report: &Report) -> ProblemDetails {
    let mut problem = ProblemDetails::of_call(reason, upstream).with_attempts(report.attempt_count());
    if let Some(wait) = report.retry_after() {
        problem = problem.with_retry_after(wait);
    }
    let served = context::current();
    match served.as_ref().and_then(|served| served.request_id()) {
        Some(id) => problem.with_request_id(id),
        None => problem,
    }
}

#[cfg(feature = "axum")]
mod axum {
    use axum_core::response::{IntoResponse, Response};

    use super::{Error, GuardError, Report};
    use crate::error::ErrorKind;

    /// The error ends here: what is safe to say of it goes to the log, and an operation's own text is not (8.6).
    fn tell(upstream: &str, kind: &str, report: &Report) {
        let (ended, attempts) = (report.ended(), report.attempt_count());
        tracing::warn!(%upstream, %kind, %ended, attempts, "a failed call is the answer");
    }

    /// A handler that returns this error answers with its [problem document](Error::to_problem), and `Retry-After` where a
    /// wait is known.
    impl IntoResponse for Error {
        fn into_response(self) -> Response {
            tell(self.upstream(), self.kind().name(), self.report());
            self.to_problem().to_response()
        }
    }

    /// As of [`Error`](Error); see [`to_problem`](GuardError::to_problem).
    impl<E> IntoResponse for GuardError<E> {
        fn into_response(self) -> Response {
            tell(self.upstream(), self.limit().map_or("operation", ErrorKind::name), self.report());
            self.to_problem().to_response()
        }
    }
}
