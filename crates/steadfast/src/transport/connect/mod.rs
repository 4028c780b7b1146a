//! Opening a connection, as a list of steps: resolve, TCP, TLS.
//!
//! Every step is ours, so that each failure is typed by the step it happened in, and proves that nothing was sent.
//! `connect_timeout` covers the whole list. A proxy's CONNECT belongs between TCP and TLS; a choice of protocol
//! (ALPN) comes out of the last step.

mod proxy;
mod race;
mod resolve;
mod stream;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::TransportError;
use super::pool::PoolConfig;
use super::pool::meter::{Limits, Meter};
use super::version::{Offer, Protocol};
pub use proxy::{InvalidProxy, Proxy, ProxyUrl};
use resolve::Lookup;
pub use resolve::{Resolve, ResolveFuture, SystemResolver};
use stream::Metered;
pub(crate) use stream::Stream;
use tls::Tls;
pub(crate) use tls::TlsState;
pub use tls::{TlsConfigError, TlsFailure, TlsFailureKind, TlsOptions};

/// A stream that is ready for the first request, and its meter.
pub(crate) struct Opened {
    pub(crate) stream: Stream,
    pub(crate) meter: Arc<Meter>,
    pub(crate) protocol: Protocol,
}

/// How one upstream is reached.
pub(crate) struct Connector {
    host: String,
    port: u16,
    lookup: Lookup,
    /// `None`: plain TCP.
    tls: Option<Tls>,
    within: Duration,
    limits: Limits,
}

impl Connector {
    pub(crate) fn new(config: &PoolConfig, resolver: Arc<dyn Resolve>, limits: Limits) -> Result<Self, TlsConfigError> {
        let tls = if config.https { Some(Tls::new(&config.host, &config.tls)?) } else { None };
        Ok(Self {
            host: config.host.clone(),
            port: config.port,
            lookup: Lookup::new(resolver),
            tls,
            within: config.connect_timeout,
            limits,
        })
    }

    /// Reads the certificates again; `true` if they differ. Connections opened from now on use them.
    pub(crate) fn reload_tls(&self) -> Result<bool, TlsConfigError> {
        self.tls.as_ref().map_or(Ok(false), Tls::reload)
    }

    /// Goes through the steps.
    pub(crate) async fn open(&self, offer: Offer) -> Result<Opened, TransportError> {
        match timeout(self.within, self.steps(offer)).await {
            Ok(result) => result,
            Err(_) => Err(unsent(Fault::ConnectTimeout)),
        }
    }

    async fn steps(&self, offer: Offer) -> Result<Opened, TransportError> {
        let addresses = self.lookup.addresses(&self.host, self.port).await?;
        let socket = race::connect(&addresses, self.within)
            .await
            .and_then(no_delay)
            .map_err(|error| unsent(Fault::Connect).with_source(error))?;
        let meter = Arc::new(Meter::new(self.limits));
        let stream = Stream::Plain(Metered::new(socket, Arc::clone(&meter)));
        let (stream, protocol) = match &self.tls {
            Some(tls) => {
                let (stream, protocol) = tls.handshake(stream, offer).await?;
                (Stream::Tls(Box::new(stream)), protocol)
            }
            None if offer == Offer::Http2 => (stream, Protocol::Http2),
            None => (stream, Protocol::Http1),
        };
        Ok(Opened { stream, meter, protocol })
    }
}

/// A request is written in one go, and must not wait for the acknowledgement of the one before.
fn no_delay(socket: TcpStream) -> std::io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn unsent(fault: Fault) -> TransportError {
    TransportError::new(fault, Sent::No)
}
