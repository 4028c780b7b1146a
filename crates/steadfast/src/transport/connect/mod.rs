//! Opening a connection, as a list of steps: resolve, TCP, the proxy, TLS.
//!
//! Every step is ours, so that each failure is typed by the step it happened in, and proves that nothing was sent.
//! `connect_timeout` covers the whole list. With a proxy, what is resolved and connected to is the proxy; its part of
//! the list is in [`proxy`]. A choice of protocol (ALPN) comes out of the last step.

mod dial;
mod error;
mod proxy;
mod race;
mod resolve;
mod stream;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use steadfast_http::{Fault, Sent};
use tokio::time::timeout;

use super::TransportError;
use super::pool::PoolConfig;
use super::pool::meter::{Limits, Meter};
use super::version::{Offer, Protocol};
use dial::{Dialer, Place};
pub use error::PoolConfigError;
pub(crate) use proxy::Forwarding;
use proxy::Via;
pub use proxy::{InvalidProxy, Proxy, ProxyUrl};
pub use resolve::{Resolve, ResolveFuture, SystemResolver};
pub(crate) use stream::Stream;
pub(crate) use tls::TlsState;
use tls::{Renewed, Tls};
pub use tls::{TlsConfigError, TlsFailure, TlsFailureKind, TlsOptions};

/// A stream that is ready for the first request, and its meter.
pub(crate) struct Opened {
    pub(crate) stream: Stream,
    pub(crate) meter: Arc<Meter>,
    pub(crate) protocol: Protocol,
}

/// Certificates as the files hold them now, where they differ from those in use.
pub(crate) struct RenewedTls {
    upstream: Option<Renewed>,
    proxy: Option<Renewed>,
}

impl RenewedTls {
    /// Whether anything differs.
    pub(crate) fn is_some(&self) -> bool {
        self.upstream.is_some() || self.proxy.is_some()
    }
}

/// How one upstream is reached.
pub(crate) struct Connector {
    way: Way,
    /// `None`: plain TCP.
    tls: Option<Tls>,
    within: Duration,
    dialer: Dialer,
}

enum Way {
    Direct(Place),
    Proxy(Box<Via>),
}

impl Connector {
    pub(crate) fn new(
        config: &PoolConfig,
        resolver: Arc<dyn Resolve>,
        limits: Limits,
    ) -> Result<Self, PoolConfigError> {
        let way = match config.proxy.of_upstream(config.https, &config.host, config.port)? {
            Some(chosen) => Way::Proxy(Box::new(Via::new(chosen, config, &resolver)?)),
            None => Way::Direct(Place::new(&config.host, config.port, &resolver)),
        };
        let tls = if config.https { Some(Tls::new(&config.host, &config.tls)?) } else { None };
        let within = config.connect_timeout;
        Ok(Self { way, tls, within, dialer: Dialer { within, limits } })
    }

    /// What each request must have for a proxy that passes it on; `None`: nothing, as the connection leads to the upstream.
    pub(crate) fn forwarding(&self) -> Option<&Forwarding> {
        match &self.way {
            Way::Proxy(via) => via.forwarding(),
            Way::Direct(_) => None,
        }
    }

    /// What a 407 means: the error for one that comes from a proxy that passes requests on. Through a tunnel it comes from
    /// the upstream, like any other response.
    pub(crate) fn refusal(&self) -> Option<TransportError> {
        match &self.way {
            Way::Proxy(via) => via.forwarding().map(|_| via.refused_request()),
            Way::Direct(_) => None,
        }
    }

    /// Reads the certificates again, those for the way to an https proxy too. Changes nothing.
    pub(crate) fn renew_tls(&self) -> Result<RenewedTls, TlsConfigError> {
        let renew = |tls: Option<&Tls>| tls.map_or(Ok(None), Tls::renew);
        Ok(RenewedTls { upstream: renew(self.tls.as_ref())?, proxy: renew(self.proxy_tls())? })
    }

    /// Uses what was read from here on.
    pub(crate) fn adopt_tls(&self, renewed: RenewedTls) {
        let pairs = [(self.tls.as_ref(), renewed.upstream), (self.proxy_tls(), renewed.proxy)];
        for (tls, renewed) in pairs {
            if let (Some(tls), Some(renewed)) = (tls, renewed) {
                tls.adopt(renewed);
            }
        }
    }

    fn proxy_tls(&self) -> Option<&Tls> {
        match &self.way {
            Way::Proxy(via) => via.tls(),
            Way::Direct(_) => None,
        }
    }

    /// Goes through the steps.
    pub(crate) async fn open(&self, offer: Offer) -> Result<Opened, TransportError> {
        match timeout(self.within, self.steps(offer)).await {
            Ok(result) => result,
            Err(_) => Err(unsent(Fault::ConnectTimeout)),
        }
    }

    async fn steps(&self, offer: Offer) -> Result<Opened, TransportError> {
        let (stream, meter) = match &self.way {
            Way::Direct(upstream) => self.dialer.dial(upstream).await?,
            Way::Proxy(via) => via.open(&self.dialer).await?,
        };
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

fn unsent(fault: Fault) -> TransportError {
    TransportError::new(fault, Sent::No)
}
