//! The client of one upstream, and the clients of all that are configured.

pub(crate) mod alike;
mod build_error;
mod builder;
mod clients;
pub(crate) mod exchange;
pub mod multipart;
mod reload;
pub(crate) mod request;
pub(crate) mod response;
pub mod stream_read;
mod streaming;

pub use build_error::BuildError;
pub use builder::ClientBuilder;
pub use clients::{Clients, UnknownUpstream};
pub use exchange::{Assessment, AttemptParts, HookFuture};
pub use reload::Reloaded;
pub use request::RequestBuilder;
pub use response::{BodyError, Response, StatusError};
pub use streaming::{StreamingBody, StreamingResponse};

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::Method;
use steadfast_http::Rules as StatusRules;
use steadfast_http::headers::CallHeaders;
use steadfast_policy::Time;

use crate::config::Settings;
use crate::snapshot::Snapshot;
#[cfg(feature = "metrics")]
use crate::telemetry::metrics;
use crate::transport::Transport;
use crate::transport::decode::Codings;
use crate::upstream::{Rules as CallRules, Upstream};
use alike::verbs;
use builder::Parts;
use exchange::Hooks;

/// The client of one upstream.
///
/// Make one per upstream and process, and clone it: the circuit breaker, the bulkhead, the rate limit and the retry
/// budget are state, and they protect only if every call goes through the same one. Clones share it.
///
/// A client needs a tokio runtime with time and I/O (`enable_all`). Calls may come from several runtimes; a connection lives
/// in the one that opened it, so each must go on running, or be dropped, before another's calls can rely on the pool.
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
pub struct ServiceClient(Arc<Handle>);

/// What all clones of a client share: the state of the upstream, and what is in force for the calls that begin now.
struct Handle {
    upstream: Arc<Upstream>,
    live: ArcSwap<Shared>,
    parts: Parts,
    reloading: Mutex<()>,
}

/// Everything that is in force for a call. A reload makes another one; calls under way keep theirs.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) transport: Transport,
    pub(crate) rules: CallRules,
    pub(crate) statuses: StatusRules,
    /// Configured headers, `User-Agent` and `Accept-Encoding`: what every call has, put together once.
    pub(crate) plain_headers: Arc<CallHeaders>,
    /// Which encodings of a body are decoded.
    pub(crate) codings: Codings,
    /// A head that comes later than this is a slow answer to the retry budget.
    pub(crate) slow_after: Duration,
    pub(crate) hooks: Hooks,
}

impl Handle {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.upstream.snapshot();
        snapshot.pool = self.live.load().transport.snapshot();
        snapshot
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

    /// The settings that are in force for calls that begin now.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.0.live.load().settings)
    }

    verbs!(RequestBuilder);

    /// Any method.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        RequestBuilder::new(self.0.live.load_full(), method, path)
    }

    /// The state of the circuit breaker, the budget, the line and the pool. Taking it changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    /// Opens the breaker until [`reset_breaker`](Self::reset_breaker): for an operator who knows better.
    pub fn force_open(&self) {
        self.0.upstream.force_open();
    }

    /// Closes the breaker, and lets it ignore every verdict, until [`reset_breaker`](Self::reset_breaker).
    pub fn force_close(&self) {
        self.0.upstream.force_close();
    }

    /// A closed breaker that has seen nothing.
    pub fn reset_breaker(&self) {
        self.0.upstream.reset_breaker();
    }

    /// Refuses new calls, closes idle connections, and waits for the running calls (7.7). Each ends by its deadline, and its
    /// connection is closed with it; one whose future is kept and never polled is waited for to the latest deadline that it
    /// can have, `total_timeout` from now, and no longer.
    ///
    /// Cancel safe: the client stays closed to new calls; call it again to wait on.
    pub async fn close(&self) {
        let limit = self.refuse_new_calls();
        self.0.upstream.ended(limit, None).await;
    }

    /// The state that all clones share.
    #[cfg(feature = "blocking")]
    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.0.upstream
    }

    /// The first half of [`close`](Self::close): what takes no time. Returns when the last call has ended at the latest.
    pub(crate) fn refuse_new_calls(&self) -> Time {
        let limit = self.0.upstream.refuse_new_calls();
        self.0.live.load().transport.close();
        limit
    }
}

#[cfg(feature = "metrics")]
impl metrics::Observed for Handle {
    fn meter(&self) -> Option<&metrics::Meter> {
        self.upstream.events.meter()
    }

    fn snapshot(&self) -> Snapshot {
        Handle::snapshot(self)
    }

    fn total_timeout(&self) -> Duration {
        self.live.load().rules.total_timeout
    }
}

impl fmt::Debug for ServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceClient").field("upstream", &self.0.upstream.name).finish_non_exhaustive()
    }
}
