//! One client for each configured upstream, for the life of the process.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;

use steadfast_http::headers::InvalidHeader;

use super::{ClientBuilder, ServiceClient};
use crate::config::Config;
use crate::snapshot::Snapshot;
use crate::transport::{PoolConfigError, TlsConfigError};

/// The clients of all configured upstreams. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    clients: BTreeMap<String, ServiceClient>,
}

impl Clients {
    /// One client per upstream of the configuration. Nothing is connected before the first call.
    ///
    /// # Errors
    /// [`BuildError`] when the roots of trust of an upstream cannot be loaded.
    pub fn new(config: &Config) -> Result<Self, BuildError> {
        let mut clients = BTreeMap::new();
        for (name, upstream) in config.upstreams() {
            let client = ClientBuilder::from_settings(upstream.settings().clone()).build()?;
            clients.insert(name.to_owned(), client);
        }
        Ok(Self { clients })
    }

    /// The client of this upstream: the same one each time.
    ///
    /// # Errors
    /// [`UnknownUpstream`], which lists the names that are known.
    pub fn client(&self, name: &str) -> Result<ServiceClient, UnknownUpstream> {
        self.clients
            .get(name)
            .cloned()
            .ok_or_else(|| UnknownUpstream { name: name.to_owned(), known: self.clients.keys().cloned().collect() })
    }

    /// Every client, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ServiceClient)> {
        self.clients.iter().map(|(name, client)| (name.as_str(), client))
    }

    /// The state of every upstream.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        self.clients.values().map(ServiceClient::snapshot).collect()
    }

    /// Closes every client: new calls are refused and idle connections closed at all of them first, then each is waited
    /// for, as [`ServiceClient::close`] does. All of it takes no longer than the longest `total_timeout`.
    ///
    /// Cancel safe: every client stays closed to new calls.
    pub async fn close(&self) {
        let closing: Vec<_> = self.clients.values().map(|client| (client, client.refuse_new_calls())).collect();
        for (client, limit) in closing {
            client.0.upstream.ended(limit).await;
        }
    }
}

/// There is no upstream of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownUpstream {
    name: String,
    known: Vec<String>,
}

impl UnknownUpstream {
    /// The names that are known.
    pub fn known(&self) -> &[String] {
        &self.known
    }
}

impl fmt::Display for UnknownUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no upstream '{}'; ", self.name)?;
        match self.known.as_slice() {
            [] => f.write_str("none is configured"),
            known => write!(f, "configured are: {}", known.join(", ")),
        }
    }
}

impl StdError for UnknownUpstream {}

/// A client that cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// Settings outside their bounds: all of them at once.
    Settings(crate::config::Problems),
    /// The roots of trust cannot be loaded.
    Tls {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with them.
        source: TlsConfigError,
    },
    /// The proxy cannot be used.
    Proxy {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with it.
        source: PoolConfigError,
    },
    /// The configured headers are more than a request can carry.
    Headers {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with them.
        source: InvalidHeader,
    },
}

impl BuildError {
    pub(super) fn of_pool(upstream: &str, error: PoolConfigError) -> Self {
        let upstream = upstream.to_owned();
        match error {
            PoolConfigError::Tls(source) => Self::Tls { upstream, source },
            source => Self::Proxy { upstream, source },
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(problems) => problems.fmt(f),
            Self::Tls { upstream, source } => write!(f, "upstream '{upstream}': {source}"),
            Self::Proxy { upstream, source } => write!(f, "upstream '{upstream}': {source}"),
            Self::Headers { upstream, source } => write!(f, "upstream '{upstream}': headers: {source}"),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Settings(_) => None,
            Self::Tls { source, .. } => Some(source),
            Self::Proxy { source, .. } => Some(source),
            Self::Headers { source, .. } => Some(source),
        }
    }
}
