//! What one call of a layered service may choose.

use std::time::{Duration, Instant};

use steadfast_http::CallContext;

/// What one call may choose, put into the extensions of its request; there the layer takes it out.
///
/// ```
/// use std::time::Duration;
/// use steadfast::layer::CallOptions;
/// use steadfast::transport::RequestBody;
///
/// let mut request = http::Request::post("http://billing.internal/pay").body(RequestBody::from("7")).unwrap();
/// request.extensions_mut().insert(CallOptions::new().timeout(Duration::from_secs(2)).retry(true));
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are in a request's extensions"]
pub struct CallOptions {
    pub(super) timeout: Option<Duration>,
    pub(super) deadline: Option<Instant>,
    pub(super) retry: Option<bool>,
    pub(super) timeout_is_evidence: bool,
    pub(super) context: Option<CallContext>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CallOptions {
    /// What a call has that brings none along.
    pub fn new() -> Self {
        Self { timeout: None, deadline: None, retry: None, timeout_is_evidence: true, context: None }
    }

    /// A deadline for this call; it can only shorten the upstream's. `Duration::MAX` means no further limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The instant at which the call must be over: the deadline of the request being served. It can only shorten.
    pub fn deadline(mut self, at: Instant) -> Self {
        self.deadline = Some(at);
        self
    }

    /// `false` forbids retries; `true` vouches for a request that the rules would not repeat. Where a layer does not
    /// retry, neither does anything.
    pub fn retry(mut self, retry: bool) -> Self {
        self.retry = Some(retry);
        self
    }

    /// `false` for a route that is known to be slow: an attempt that the call's deadline cuts is then no verdict for the
    /// circuit breaker (1.5).
    pub fn timeout_is_evidence(mut self, evidence: bool) -> Self {
        self.timeout_is_evidence = evidence;
        self
    }

    /// What travels with the call: the request id, bearer, trace, and time left of the request being served. Unless given,
    /// that of the task, where it has one: see [`context`](crate::context).
    pub fn context(mut self, context: &CallContext) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// What is left of the deadline of the request being served.
    pub(super) fn inherited(&self) -> Option<Duration> {
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        left.into_iter().chain(self.context.as_ref().and_then(CallContext::time_left)).min()
    }
}
