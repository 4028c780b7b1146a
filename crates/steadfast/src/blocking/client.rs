//! The client of one upstream, and the clients of all that are configured, for plain threads.

use std::fmt;
use std::sync::Arc;

use http::Method;

use super::RequestBuilder;
use super::runtime;
use crate::client::alike::verbs;
use crate::client::{BuildError, ClientBuilder, Reloaded, UnknownUpstream};
use crate::config::{Config, Settings};
use crate::snapshot::Snapshot;

/// The client of one upstream, for plain threads: the async [`ServiceClient`](crate::ServiceClient), with calls that wait
/// for their answer on the thread that makes them.
///
/// Make one per upstream and process, and clone it, as with the async one. Both can be had of the same state: each is made
/// `From` the other, and the circuit breaker, the bulkhead, the rate limit, the budget and the pool are then shared. The
/// async client's runtime must then go on running, because its connections live in it.
///
/// A call that would hold up the tasks of a tokio runtime is refused (`InvalidRequest`), with nothing sent: use the async
/// client there, or `spawn_blocking`. The same goes for a call that an event hook makes.
///
/// ```no_run
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use steadfast::blocking::ServiceClient;
///
/// let billing = ServiceClient::builder("http://localhost:8010")
///     .name("billing")
///     .total_timeout(Duration::from_secs(10))
///     .build_blocking()?;
/// let response = billing.get("/invoices/7").send()?;
/// let invoice: serde_json::Value = response.error_for_status()?.json()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServiceClient(crate::ServiceClient);

impl ClientBuilder {
    /// The same client, for plain threads. Nothing is connected, and no thread started, before the first call.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_blocking(self) -> Result<ServiceClient, BuildError> {
        self.build().map(ServiceClient)
    }
}

impl ServiceClient {
    /// A client of the upstream at this URL, without any file. Every key of the configuration is a method; the last is
    /// [`build_blocking`](ClientBuilder::build_blocking).
    pub fn builder(base_url: &str) -> ClientBuilder {
        ClientBuilder::new(base_url)
    }

    /// The async client of the same state.
    pub fn as_async(&self) -> &crate::ServiceClient {
        &self.0
    }

    /// The upstream's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The settings that are in force for calls that begin now.
    pub fn settings(&self) -> Arc<Settings> {
        self.0.settings()
    }

    verbs!(RequestBuilder);

    /// Any method.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        RequestBuilder::new(self.0.request(method, path))
    }

    /// The state of the circuit breaker, the budget, the line and the pool. Taking it changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    /// Opens the breaker until [`reset_breaker`](Self::reset_breaker): for an operator who knows better.
    pub fn force_open(&self) {
        self.0.force_open();
    }

    /// Closes the breaker, and lets it ignore every verdict, until [`reset_breaker`](Self::reset_breaker).
    pub fn force_close(&self) {
        self.0.force_close();
    }

    /// A closed breaker that has seen nothing.
    pub fn reset_breaker(&self) {
        self.0.reset_breaker();
    }

    /// Refuses new calls, closes idle connections, and waits for the running calls (7.7), at the longest until the latest
    /// deadline that any of them can have.
    ///
    /// Where a blocking call would be refused, and in a hook of one, it does everything but wait.
    pub fn close(&self) {
        let limit = self.0.refuse_new_calls();
        if !runtime::is_in_a_call() {
            // Refused or late: the client is closed to new calls all the same.
            let _ = runtime::run(self.0.close(), runtime::after(self.0.upstream(), limit));
        }
    }
}

impl From<crate::ServiceClient> for ServiceClient {
    fn from(client: crate::ServiceClient) -> Self {
        Self(client)
    }
}

impl From<ServiceClient> for crate::ServiceClient {
    fn from(client: ServiceClient) -> Self {
        client.0
    }
}

impl fmt::Debug for ServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("blocking::ServiceClient").field("upstream", &self.name()).finish_non_exhaustive()
    }
}

/// The clients of all configured upstreams, for plain threads. Clones share them, and so does what is made `From` them.
#[derive(Clone, Debug, Default)]
pub struct Clients(crate::Clients);

impl Clients {
    /// One client per upstream of the configuration. Nothing is connected, and no thread started, before the first call.
    ///
    /// # Errors
    /// [`BuildError`] when the roots of trust of an upstream cannot be loaded.
    pub fn new(config: &Config) -> Result<Self, BuildError> {
        crate::Clients::new(config).map(Self)
    }

    /// The async clients of the same state.
    pub fn as_async(&self) -> &crate::Clients {
        &self.0
    }

    /// The client of this upstream: the same one each time.
    ///
    /// # Errors
    /// [`UnknownUpstream`], which lists the names that are known.
    pub fn client(&self, name: &str) -> Result<ServiceClient, UnknownUpstream> {
        self.0.client(name).map(ServiceClient)
    }

    /// Every client, in the order of their names.
    pub fn all(&self) -> Vec<ServiceClient> {
        self.0.all().into_iter().map(ServiceClient).collect()
    }

    /// Puts another configuration in force, for the calls that begin from here on; see
    /// [`Clients::reload`](crate::Clients::reload).
    ///
    /// # Errors
    /// As there.
    pub fn reload(&self, config: &Config) -> Result<Reloaded, BuildError> {
        self.0.reload(config)
    }

    /// The state of every upstream.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        self.0.snapshot()
    }

    /// Closes every client: new calls are refused and idle connections closed at all of them first, then each is waited
    /// for, as [`ServiceClient::close`] does. All of it takes no longer than the longest `total_timeout`.
    pub fn close(&self) {
        let clients = self.0.all();
        let limits = clients.iter().map(|client| runtime::after(client.upstream(), client.refuse_new_calls()));
        // The last of all; none if one has none, under a virtual clock.
        let limit = limits.collect::<Option<Vec<_>>>().and_then(|limits| limits.into_iter().max());
        if !runtime::is_in_a_call() {
            let _ = runtime::run(self.0.close(), limit);
        }
    }
}

impl From<crate::Clients> for Clients {
    fn from(clients: crate::Clients) -> Self {
        Self(clients)
    }
}

impl From<Clients> for crate::Clients {
    fn from(clients: Clients) -> Self {
        clients.0
    }
}
