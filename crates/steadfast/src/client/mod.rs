//! The client of one upstream, and the clients of all that are configured.

mod builder;
mod clients;
mod exchange;
mod request;
mod response;

pub use builder::ClientBuilder;
pub use clients::{BuildError, Clients, UnknownUpstream};
pub use exchange::{Assessment, AttemptParts, BoxError, HookFuture};
pub use request::RequestBuilder;
pub use response::{BodyError, Response, StatusError};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use steadfast_http::Rules;
use steadfast_http::headers::{CallHeaders, Layers};

use crate::config::Settings;
use crate::snapshot::Snapshot;
use crate::transport::Transport;
use crate::upstream::Upstream;
use exchange::Hooks;

/// The client of one upstream.
///
/// Make one per upstream and process, and clone it: the circuit breaker, the bulkhead, the rate limit and the retry
/// budget are state, and they protect only if every call goes through the same one. Clones share it.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use steadfast::ServiceClient;
///
/// let billing = ServiceClient::builder("http://localhost:8010")
///     .name("billing")
///     .total_timeout(Duration::from_secs(10))
///     .build()?;
/// let response = billing.get("/invoices/7").send().await?;
/// let invoice: serde_json::Value = response.error_for_status()?.json()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServiceClient(Arc<Shared>);

/// What all clones of a client share.
pub(crate) struct Shared {
    pub(crate) upstream: Upstream,
    pub(crate) settings: Settings,
    pub(crate) transport: Transport,
    pub(crate) rules: Rules,
    /// Configured headers and `Accept-Encoding`: the weakest layer of every request.
    pub(crate) base_headers: HeaderMap,
    /// The headers of a call that adds nothing to them, put together once.
    pub(crate) plain_headers: Arc<CallHeaders>,
    /// A head that comes later than this is a slow answer to the retry budget.
    pub(crate) slow_after: Duration,
    pub(crate) hooks: Hooks,
}

impl Shared {
    /// What every call has.
    pub(crate) fn base_layers(&self) -> Layers<'_> {
        base_layers(&self.settings, &self.base_headers)
    }
}

fn base_layers<'a>(settings: &'a Settings, configured: &'a HeaderMap) -> Layers<'a> {
    Layers {
        user_agent: Some(&settings.user_agent),
        configured: Some(configured),
        deadline_header: settings.deadline_header.as_ref(),
        ..Layers::default()
    }
}

impl ServiceClient {
    /// A client of the upstream at this URL, without any file. Every key of the configuration is a method.
    pub fn builder(base_url: &str) -> ClientBuilder {
        ClientBuilder::new(base_url)
    }

    /// The upstream's name.
    pub fn name(&self) -> &str {
        &self.0.upstream.name
    }

    /// The effective settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// GET `path`, which is joined to the base URL.
    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    /// POST to `path`. Not repeated, unless an idempotency key or `retry(true)` allows it.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    /// PUT to `path`.
    pub fn put(&self, path: &str) -> RequestBuilder {
        self.request(Method::PUT, path)
    }

    /// PATCH `path`. Not repeated, unless an idempotency key or `retry(true)` allows it.
    pub fn patch(&self, path: &str) -> RequestBuilder {
        self.request(Method::PATCH, path)
    }

    /// DELETE `path`.
    pub fn delete(&self, path: &str) -> RequestBuilder {
        self.request(Method::DELETE, path)
    }

    /// HEAD of `path`.
    pub fn head(&self, path: &str) -> RequestBuilder {
        self.request(Method::HEAD, path)
    }

    /// OPTIONS of `path`.
    pub fn options(&self, path: &str) -> RequestBuilder {
        self.request(Method::OPTIONS, path)
    }

    /// Any method.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, path)
    }

    /// The state of the circuit breaker, the budget, the line and the pool. Taking it changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.0.upstream.snapshot();
        snapshot.pool = self.0.transport.snapshot();
        snapshot
    }

    /// Opens the breaker until [`reset_breaker`](Self::reset_breaker): for an operator who knows better.
    pub fn force_open(&self) {
        let now = self.0.upstream.clock.now();
        self.0.upstream.with(|policies| policies.breaker.force_open(now));
    }

    /// Closes the breaker, and lets it ignore every verdict, until [`reset_breaker`](Self::reset_breaker).
    pub fn force_close(&self) {
        let now = self.0.upstream.clock.now();
        self.0.upstream.with(|policies| policies.breaker.force_close(now));
    }

    /// A closed breaker that has seen nothing.
    pub fn reset_breaker(&self) {
        let now = self.0.upstream.clock.now();
        self.0.upstream.with(|policies| policies.breaker.reset(now));
    }

    /// Refuses new calls, waits for the running ones (each ends by its deadline), and closes every connection (7.7).
    ///
    /// Cancel safe: the client stays closed to new calls; call it again to wait on.
    pub async fn close(&self) {
        self.0.upstream.close().await;
        self.0.transport.close();
    }
}

impl fmt::Debug for ServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceClient").field("upstream", &self.0.upstream.name).finish_non_exhaustive()
    }
}
