//! A pool of connections to one upstream: HTTP/1.1 on `hyper::client::conn`, HTTP/2 on `h2` (see [`http2`]).
//!
//! Why one of our own: a client that knows its one upstream needs no keys, no boxed futures, and no race between a
//! checkout and a new connection; and it can say what an attempt needs to know, namely in which phase it failed and
//! whether a byte of it went out.
//!
//! - HTTP/1.1: the connection used last is taken first. It goes back only after the body was read to its end; a body or
//!   an exchange that is dropped before cuts its connection off.
//! - HTTP/2: many exchanges share a connection, as many as the upstream allows. What ends an exchange early (a limit,
//!   dropping it) resets its stream and nothing else; but a connection that was silent for all of an attempt that was
//!   given up takes no further stream, as it may be dead.
//! - A connection is driven by a task of its own, which also keeps its limits (see [`driver`]).
//! - A request that met a dead connection, before a byte of it was written, goes once to a fresh one. A connection
//!   that lay idle for 10 ms or more is looked at before it is written to, and the request is copied, so that this holds
//!   even where hyper has begun with it. On one that was in use a moment ago it holds unless the connection dies
//!   between hyper's last look and its first write; the error then says that nothing was sent.
//!
//! Limits: a connection is driven by the runtime in which it was opened: if that ends, the connection is
//! closed and the next request opens another; if nobody runs it meanwhile, a request on it waits for its deadline.

mod attempt;
mod body;
mod connection;
mod driver;
mod faults;
pub(crate) mod gate;
mod http2;
pub(crate) mod meter;
mod stock;
mod target;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Response};

use super::connect::{Connector, PoolConfigError, Proxy, RenewedTls, Resolve, TlsConfigError, TlsOptions};
use super::{Exchange, ExchangeFuture, HttpVersion, Outgoing, Progress, ResponseBody, TransportError};
pub(crate) use body::PooledBody;
use http2::PingPlan;
use meter::{Limits, nanos};
pub use stock::PoolSnapshot;
use stock::{Speech, Stock};
use target::Target;

/// One upstream, and the limits of its connections.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoolConfig {
    /// TLS or plain TCP.
    pub https: bool,
    /// The host's name, or an IP literal (IPv6 without brackets).
    pub host: String,
    /// The port.
    pub port: u16,
    /// Resolving, TCP, the proxy, and TLS together. 2 s.
    pub connect_timeout: Duration,
    /// Each wait for the next piece of the response; not while the source of the request's body has nothing. 10 s.
    pub read_timeout: Duration,
    /// Each wait to write the next piece of the request. 10 s.
    pub write_timeout: Duration,
    /// The wait for a connection when `max_connections` are in use, over HTTP/2 with all their streams. 2 s.
    pub pool_timeout: Duration,
    /// How long an idle connection is kept. 90 s.
    pub idle_timeout: Duration,
    /// After this age a connection takes no further request, so that a changed address is noticed. 5 min.
    pub max_connection_age: Duration,
    /// Connections open at once, the idle ones included; at least 1. 100.
    pub max_connections: usize,
    /// Which certificates are trusted, and our own; of no effect without `https`.
    pub tls: TlsOptions,
    /// Which proxy stands before the upstream. The environment's.
    pub proxy: Proxy,
    /// Which HTTP is spoken. `Auto`.
    pub http_version: HttpVersion,
    /// HTTP/2: after so long without a byte a connection with open streams is asked for a sign of life. None: never;
    /// a connection is then suspected when an attempt on it was given up and nothing came meanwhile.
    pub ping_interval: Option<Duration>,
    /// HTTP/2: how long that sign may take, before the connection is closed. 10 s.
    pub ping_timeout: Duration,
}

impl PoolConfig {
    /// The defaults for this upstream.
    pub fn new(https: bool, host: impl Into<String>, port: u16) -> Self {
        Self {
            https,
            host: host.into(),
            port,
            connect_timeout: Duration::from_secs(2),
            read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            pool_timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(90),
            max_connection_age: Duration::from_secs(300),
            max_connections: 100,
            tls: TlsOptions::default(),
            proxy: Proxy::default(),
            http_version: HttpVersion::default(),
            ping_interval: None,
            ping_timeout: Duration::from_secs(10),
        }
    }
}

/// The connections to one upstream. Clones share them; dropping the last clone closes what is idle, and the rest
/// closes when its response is over.
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// Everything that an exchange needs.
struct Inner {
    stock: Arc<Stock>,
    connector: Connector,
    target: Target,
    pool_timeout: Duration,
    pings: Option<PingPlan>,
}

/// The clones' common end.
struct Handle(Inner);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stock.close();
    }
}

impl Pool {
    /// A pool without connections; they are opened when requests need them.
    ///
    /// # Errors
    ///
    /// TLS whose certificates, trusted or our own, cannot be read or used, or a proxy that cannot be used.
    pub fn new(config: PoolConfig, resolver: Arc<dyn Resolve>) -> Result<Self, PoolConfigError> {
        let limits = Limits {
            read: nanos(config.read_timeout),
            write: nanos(config.write_timeout),
            idle: nanos(config.idle_timeout),
            age: nanos(config.max_connection_age),
        };
        let connector = Connector::new(&config, resolver, limits)?;
        let target = Target::new(config.https, &config.host, config.port).forwarded(connector.forwarding());
        let speech = Speech::new(config.http_version, config.https);
        let stock = Arc::new(Stock::new(config.max_connections, speech));
        let timeout = config.ping_timeout;
        let pings = config.ping_interval.map(|interval| PingPlan { interval, timeout });
        let inner = Inner { stock, connector, target, pool_timeout: config.pool_timeout, pings };
        Ok(Self { handle: Arc::new(Handle(inner)) })
    }

    /// Sends one request and returns the response's head, with its body to come.
    ///
    /// Needs a tokio runtime. Dropping the future cuts the connection off, or over HTTP/2 resets the stream; `progress`
    /// then says whether anything of the request was sent.
    ///
    /// # Errors
    ///
    /// What went wrong, in which phase, and whether anything was sent.
    pub fn exchange<'a>(
        &'a self,
        outgoing: Outgoing,
        progress: &'a mut Progress,
    ) -> impl Future<Output = Result<Response<ResponseBody>, TransportError>> + Send + 'a {
        attempt::run(&self.handle.0, outgoing, progress)
    }

    /// Closes what is idle, and keeps no connection from now on. Exchanges under way go on, and so may a new one, each
    /// with a connection that is closed after it.
    pub fn close(&self) {
        self.handle.0.stock.close();
    }

    /// Reads the certificates again (`tls_roots`, `tls_identity`, the platform's): `true` if what they hold differs.
    ///
    /// New connections then use the new ones, idle ones are closed, and one in use is closed when its response is over.
    /// Content is compared, not a file's time. `false` without https. It reads files, and waits for them: a few
    /// milliseconds on a local disk.
    ///
    /// # Errors
    ///
    /// What [`Pool::new`] says of the files, or of their content. The old certificates stay in use.
    pub fn reload_tls(&self) -> Result<bool, TlsConfigError> {
        let renewed = self.renew_tls()?;
        let changed = renewed.is_some();
        self.adopt_tls(renewed);
        Ok(changed)
    }

    /// The first half of [`reload_tls`](Self::reload_tls): what can fail. Changes nothing.
    pub(crate) fn renew_tls(&self) -> Result<RenewedTls, TlsConfigError> {
        self.handle.0.connector.renew_tls()
    }

    /// The second half.
    pub(crate) fn adopt_tls(&self, renewed: RenewedTls) {
        if renewed.is_some() {
            self.handle.0.connector.adopt_tls(renewed);
            self.handle.0.stock.retire_outdated();
        }
    }

    /// The `Host` of every request.
    pub(crate) fn host(&self) -> Option<&HeaderValue> {
        self.handle.0.target.host()
    }

    /// Whether it is a clone of `other`.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// How many connections there are.
    pub fn snapshot(&self) -> PoolSnapshot {
        self.handle.0.stock.snapshot()
    }
}

impl Exchange for Pool {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(attempt::run(&self.handle.0, outgoing, progress))
    }
}

impl fmt::Debug for Pool {
    /// Its numbers; the upstream's address stays out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("connections", &self.snapshot()).finish()
    }
}
