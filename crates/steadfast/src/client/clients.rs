//! One client for each configured upstream, for the life of the process.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::reload::{Committed, Prepared, Reloaded};
use super::{BuildError, ClientBuilder, ServiceClient};
use crate::config::Config;
use crate::snapshot::Snapshot;

/// The clients of all configured upstreams. Clones share them.
#[derive(Clone)]
pub struct Clients(Arc<Inner>);

struct Inner {
    clients: RwLock<Arc<ByName>>,
    customize: Box<Customize>,
    /// One reload at a time; whether the clients were closed.
    reloading: Mutex<bool>,
}

type ByName = BTreeMap<String, ServiceClient>;
type Customize = dyn Fn(&str, ClientBuilder) -> ClientBuilder + Send + Sync;

impl Clients {
    /// One client per upstream of the configuration. Nothing is connected before the first call.
    ///
    /// # Errors
    /// [`BuildError`] when certificates cannot be loaded, or a proxy cannot be used.
    pub fn new(config: &Config) -> Result<Self, BuildError> {
        Self::with(config, |_, builder| builder)
    }

    /// The same with each client's builder handed to `customize`, with its name: for event hooks, a resolver, a transport of
    /// one's own. A reload asks it again for upstreams that are new.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`BuildError::Settings`] for keys that `customize` sets: the configuration fixes them.
    pub fn with(
        config: &Config,
        customize: impl Fn(&str, ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<Self, BuildError> {
        let mut clients = ByName::new();
        for (name, upstream) in config.upstreams() {
            let builder = ClientBuilder::from_settings(upstream.settings().clone());
            clients.insert(name.to_owned(), customize(name, builder).build()?);
        }
        Ok(Self::of(clients, customize))
    }

    fn of(clients: ByName, customize: impl Fn(&str, ClientBuilder) -> ClientBuilder + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            clients: RwLock::new(Arc::new(clients)),
            customize: Box::new(customize),
            reloading: Mutex::new(false),
        }))
    }

    fn by_name(&self) -> Arc<ByName> {
        Arc::clone(&self.0.clients.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The client of this upstream: the same one each time.
    ///
    /// # Errors
    /// [`UnknownUpstream`], which lists the names that are known.
    pub fn client(&self, name: &str) -> Result<ServiceClient, UnknownUpstream> {
        let clients = self.by_name();
        clients
            .get(name)
            .cloned()
            .ok_or_else(|| UnknownUpstream { name: name.to_owned(), known: clients.keys().cloned().collect() })
    }

    /// Every client, in the order of their names.
    pub fn all(&self) -> Vec<ServiceClient> {
        self.by_name().values().cloned().collect()
    }

    /// The state of every upstream.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        self.by_name().values().map(ServiceClient::snapshot).collect()
    }

    /// Puts another configuration in force, for the calls that begin from here on (9.5). Calls under way end as they began.
    ///
    /// Breaker, budget, slots and rate limit of an upstream keep their state; a changed `breaker_*` key resets that breaker,
    /// and no other. Connections are kept unless a key that they depend on differs, or a certificate file holds something
    /// else. An upstream that is new gets a client. One that is gone is no longer found by its name: whoever holds its
    /// client may go on with it.
    ///
    /// A configuration that cannot be put in force changes nothing. It reads certificate files, and waits for them: a few
    /// milliseconds on a local disk.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`BuildError::Closed`] after [`close`](Self::close).
    pub fn reload(&self, config: &Config) -> Result<Reloaded, BuildError> {
        let mut made = ByName::new();
        loop {
            let closed = self.0.reloading.lock().unwrap_or_else(PoisonError::into_inner);
            if *closed {
                return Err(BuildError::Closed);
            }
            let before = self.by_name();
            let is_missing = |name: &str| !before.contains_key(name) && !made.contains_key(name);
            if let Some((name, upstream)) = config.upstreams().find(|(name, _)| is_missing(name)) {
                // Made by the user's code, which may call back: nothing is locked meanwhile.
                drop(closed);
                let builder = ClientBuilder::from_settings(upstream.settings().clone());
                made.insert(name.to_owned(), (self.0.customize)(name, builder).build()?);
                continue;
            }
            let (mut reloaded, clients, committed) = put_in_force(config, &before, made)?;
            *self.0.clients.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(clients);
            drop(closed);
            for (name, committed) in committed {
                if committed.tell() {
                    reloaded.changed.push(name);
                }
            }
            reloaded.log();
            return Ok(reloaded);
        }
    }

    /// Whether [`close`](Self::close) was called.
    #[cfg(feature = "watch")]
    pub(crate) fn is_closed(&self) -> bool {
        *self.0.reloading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes every client: new calls are refused and idle connections closed at all of them first, then each is waited
    /// for, as [`ServiceClient::close`] does. All of it takes no longer than the longest `total_timeout`.
    ///
    /// Cancel safe: every client stays closed to new calls.
    pub async fn close(&self) {
        *self.0.reloading.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let clients = self.by_name();
        let closing: Vec<_> = clients.values().map(|client| (client, client.refuse_new_calls())).collect();
        for (client, limit) in closing {
            client.0.upstream.ended(limit, None).await;
        }
    }
}

/// What a reload did, but for what was changed; the clients from now on, with those that were `made` for it; and whom to
/// tell.
type InForce = (Reloaded, ByName, Vec<(String, Committed)>);

/// Prepares every client, then commits all of them: a mistake in one changes none.
fn put_in_force(config: &Config, before: &ByName, mut made: ByName) -> Result<InForce, BuildError> {
    let mut clients = ByName::new();
    let mut prepared: Vec<(&str, Prepared<'_>)> = Vec::new();
    let mut reloaded = Reloaded::default();
    for (name, upstream) in config.upstreams() {
        let client = match before.get(name) {
            Some(client) => {
                prepared.push((name, client.prepare(upstream.settings().clone())?));
                client.clone()
            }
            None => {
                let Some(client) = made.remove(name) else { continue };
                reloaded.added.push(name.to_owned());
                client
            }
        };
        clients.insert(name.to_owned(), client);
    }
    // Nothing below can fail.
    let committed = prepared.into_iter().map(|(name, prepared)| (name.to_owned(), prepared.commit())).collect();
    reloaded.removed = before.keys().filter(|name| !clients.contains_key(*name)).cloned().collect();
    Ok((reloaded, clients, committed))
}

impl Default for Clients {
    /// No upstreams; a reload brings some.
    fn default() -> Self {
        Self::of(ByName::new(), |_, builder| builder)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clients").field(&self.by_name().keys().collect::<Vec<_>>()).finish()
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
