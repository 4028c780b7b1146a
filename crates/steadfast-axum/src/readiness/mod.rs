//! `/ready`: whether this process should be sent requests, and what it lacks.
//!
//! Decides what counts: a check of the service's own that is critical and fails makes it `unavailable` (503); anything else
//! that fails makes it `degraded`, which is 200. Breakers are never critical (10.1): this service is still up, and taking it
//! out of rotation because a dependency is down turns one outage into two.
//!
//! Invariants: an answer comes within the timeout, whatever the checks do; asking changes no breaker; what a check's error
//! says is in the log and not in the body, which anybody may be able to read.
//!
//! Limits: each request runs the checks. Nothing is kept from one to the next, so a check should be cheap.

mod builder;
mod report;
mod run;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::{Clients, Clock, Guard, ServiceClient, Snapshot};
use tower_service::Service;

pub use builder::{ReadinessBuilder, ReadinessError};
pub use report::{Breaker, CheckReport, CheckStatus, Overall, ReadyReport};

use crate::health::json;

/// Answers with the state of every breaker, and with what the service's own checks say.
///
/// A service for a route, `route_service("/ready", ready)`; or [`respond`](Self::respond) in a handler.
///
/// ```
/// use std::time::Duration;
/// use steadfast::{Guard, ServiceClient};
/// use steadfast_axum::Readiness;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let billing = ServiceClient::builder("http://localhost:8010").name("billing").build()?;
/// let tariffs = Guard::http("tariffs").build()?;
/// let ready = Readiness::builder()
///     .client(&billing)
///     .guard(&tariffs)
///     .check("database", || async { Ok::<_, std::io::Error>(()) })
///     .timeout(Duration::from_secs(1))
///     .build()?;
/// tariffs.force_open();
/// let report = ready.report().await;
/// assert_eq!(
///     serde_json::to_value(&report)?,
///     serde_json::json!({
///         "status": "degraded",
///         "checks": {
///             "database": { "status": "pass", "critical": true },
///             "guards": {
///                 "status": "fail", "critical": false, "detail": "circuit breaker 'tariffs' is forced open",
///                 "meta": { "breakers": { "tariffs": { "state": "open" } } }
///             },
///             "http": {
///                 "status": "pass", "critical": false, "meta": { "breakers": { "billing": { "state": "closed" } } }
///             }
///         }
///     })
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Readiness(Arc<Inner>);

struct Inner {
    clients: Vec<Clients>,
    single: Vec<ServiceClient>,
    guards: Vec<Guard>,
    checks: Vec<Check>,
    timeout: Duration,
    clock: Clock,
}

type CheckFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

struct Check {
    name: String,
    critical: bool,
    run: Box<dyn Fn() -> CheckFuture + Send + Sync>,
}

impl Readiness {
    /// Sets it up.
    pub fn builder() -> ReadinessBuilder {
        ReadinessBuilder::new()
    }

    /// Asks everything, all checks at once, for as long as the timeout allows.
    ///
    /// Cancel safe: dropping the future drops the checks.
    ///
    /// # Panics
    /// With the system clock and a check that is not ready at once: outside a tokio runtime with time.
    pub async fn report(&self) -> ReadyReport {
        let inner = &*self.0;
        let mut report = ReadyReport::of(run::all(&inner.checks, inner.timeout, &inner.clock).await);
        let clients = inner.clients.iter().flat_map(Clients::snapshot);
        let http: Vec<Snapshot> = clients.chain(inner.single.iter().map(ServiceClient::snapshot)).collect();
        if !inner.clients.is_empty() || !http.is_empty() {
            report.insert("http".to_owned(), CheckReport::of_breakers(&http));
        }
        if !inner.guards.is_empty() {
            let guards: Vec<Snapshot> = inner.guards.iter().map(Guard::snapshot).collect();
            report.insert("guards".to_owned(), CheckReport::of_breakers(&guards));
        }
        report
    }

    /// The report as an answer: 200, or 503 where it is `unavailable`.
    ///
    /// Cancel safe, panics: as [`report`](Self::report).
    pub async fn respond(&self) -> Response<Full<Bytes>> {
        let report = self.report().await;
        json(report.status_code(), Bytes::from(report.to_json()))
    }
}

impl<B> Service<Request<B>> for Readiness {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.respond().await) })
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks: Vec<&str> = self.0.checks.iter().map(|check| check.name.as_str()).collect();
        f.debug_struct("Readiness").field("checks", &checks).field("timeout", &self.0.timeout).finish_non_exhaustive()
    }
}
