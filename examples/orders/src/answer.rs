//! What a caller is told when there is no order to show.
//!
//! An error of a call is an answer as it is: 503, `application/problem+json`, with `Retry-After` where a wait is known. What is
//! left to decide is what an upstream's own answer means here, which nobody else can know.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use steadfast::client::{BodyError, StatusError};
use steadfast::{Error, ProblemDetails, context};

/// Why there is no order.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Billing says that there is none.
    NoSuchOrder,
    /// As many orders wait for the worker as may.
    Busy,
    /// The call brought no answer.
    Unanswered(Error),
    /// Billing answered with an error of its own.
    Failed(StatusError),
    /// Billing's answer is not what was agreed on.
    Nonsense(BodyError),
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self::Unanswered(error)
    }
}

impl From<StatusError> for Answer {
    fn from(error: StatusError) -> Self {
        Self::Failed(error)
    }
}

impl From<BodyError> for Answer {
    fn from(error: BodyError) -> Self {
        Self::Nonsense(error)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let problem = match self {
            Self::Unanswered(error) => return error.into_response(),
            Self::NoSuchOrder => ProblemDetails::new(404, "Not Found", "no invoice for this order"),
            Self::Busy => ProblemDetails::new(503, "Service Unavailable", "too many orders wait to be billed"),
            // After the retries that made sense: the upstream's trouble, and the caller may come back.
            Self::Failed(error) if is_trouble(error.status()) => {
                tracing::warn!(%error, "billing is in trouble");
                let problem = ProblemDetails::of_call("unreachable", error.response().upstream());
                match error.response().report().retry_after() {
                    Some(wait) => problem.with_retry_after(wait),
                    None => problem,
                }
            }
            Self::Failed(error) => {
                tracing::error!(%error, "billing refuses what we ask");
                ProblemDetails::new(502, "Bad Gateway", "billing refused")
            }
            Self::Nonsense(error) => {
                tracing::error!(%error, "billing does not keep to its contract");
                ProblemDetails::new(502, "Bad Gateway", "billing's answer could not be read")
            }
        };
        let served = context::current();
        let problem = match served.as_ref().and_then(|served| served.request_id()) {
            Some(id) => problem.with_request_id(id),
            None => problem,
        };
        problem.to_response()
    }
}

fn is_trouble(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}
