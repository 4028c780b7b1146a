//! How a connection goes through a proxy.
//!
//! - `http` through an HTTP proxy: no tunnel. Each request names its upstream in full and carries the credentials, and
//!   the proxy passes it on ([`Forwarding`]).
//! - `https`, or HTTP/2 without TLS, through an HTTP proxy: a tunnel made with CONNECT, which alone carries the
//!   credentials.
//! - Anything through a SOCKS5 proxy: a tunnel too.
//!
//! What is written here is nobody's request, so each failure proves that nothing was sent. A proxy that wants other
//! credentials is a fault of ours and permanent; every other refusal may pass. The proxy's own certificate is checked
//! like the upstream's, against the same roots; a client certificate and `server_name` are for the upstream alone.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use http::uri::Authority;
use steadfast_http::{Fault, Sent};
#[cfg(feature = "socks")]
use tokio_socks::{IntoTargetAddr, TargetAddr};

#[cfg(feature = "socks")]
use super::socks;
use super::tunnel::NoTunnel;
use super::url::{ProxyUrl, Scheme, authority};
use super::{basic, tunnel};
use crate::error::BoxError;
use crate::transport::connect::dial::{Dialer, Place};
use crate::transport::connect::{PoolConfigError, Resolve, Stream, Tls, TlsOptions};
use crate::transport::pool::PoolConfig;
use crate::transport::pool::meter::Meter;
use crate::transport::version::Offer;
use crate::transport::{HttpVersion, TransportError};

/// The proxy before an upstream, and what is asked of it.
pub(crate) struct Via {
    url: ProxyUrl,
    place: Place,
    /// `None`: the way to the proxy is plain.
    tls: Option<Tls>,
    hop: Hop,
}

enum Hop {
    Forward(Forwarding),
    /// The request for the tunnel, whole.
    Tunnel(Vec<u8>),
    /// To this upstream.
    #[cfg(feature = "socks")]
    Socks(Place),
}

/// What each request to the proxy has in place of a tunnel (RFC 9112 section 3.2.2).
#[derive(Clone, Debug)]
pub(crate) struct Forwarding {
    pub(crate) authority: Authority,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Via {
    pub(crate) fn new(
        url: ProxyUrl,
        config: &PoolConfig,
        resolver: &Arc<dyn Resolve>,
    ) -> Result<Self, PoolConfigError> {
        let hop = match url.scheme() {
            #[cfg(feature = "socks")]
            Scheme::Socks5 | Scheme::Socks5h => Hop::Socks(Place::new(&config.host, config.port, resolver)),
            // Without the feature no other kind gets here.
            _ => http_hop(&url, config)?,
        };
        let tls = match url.scheme() {
            Scheme::Https => {
                let mut options: TlsOptions = config.tls.clone();
                (options.identity, options.identity_key, options.server_name) = (None, None, None);
                Some(Tls::new(url.host(), &options)?)
            }
            _ => None,
        };
        Ok(Self { place: Place::new(url.host(), url.port(), resolver), url, tls, hop })
    }

    /// What secures the way to the proxy, if anything does.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// `None`: there is a tunnel, and the proxy sees no request.
    pub(crate) fn forwarding(&self) -> Option<&Forwarding> {
        match &self.hop {
            Hop::Forward(forwarding) => Some(forwarding),
            _ => None,
        }
    }

    /// A stream whose other end is the upstream, or a proxy that passes requests on.
    pub(crate) async fn open(&self, dialer: &Dialer) -> Result<(Stream, Arc<Meter>), TransportError> {
        match &self.hop {
            Hop::Forward(_) => self.reach(dialer).await,
            Hop::Tunnel(request) => {
                let (mut stream, meter) = self.reach(dialer).await?;
                tunnel::open(&mut stream, request).await.map_err(|error| match error {
                    NoTunnel::Status(407) => self.wants_credentials(),
                    error => self.failed(Fault::Proxy, error.to_string(), None),
                })?;
                Ok((stream, meter))
            }
            #[cfg(feature = "socks")]
            Hop::Socks(upstream) => self.through_socks(upstream, dialer).await,
        }
    }

    /// A stream to the proxy.
    async fn reach(&self, dialer: &Dialer) -> Result<(Stream, Arc<Meter>), TransportError> {
        let unreached = |error: TransportError| {
            let fault = error.fault();
            self.failed(fault, "cannot be reached".to_owned(), error.into_source())
        };
        let (stream, meter) = dialer.dial(&self.place).await.map_err(unreached)?;
        let Some(tls) = &self.tls else { return Ok((stream, meter)) };
        let (stream, _) = tls.handshake(stream, Offer::Http1).await.map_err(unreached)?;
        Ok((Stream::Tls(Box::new(stream)), meter))
    }

    /// `socks5` has the upstream's name resolved here, and tries one address after the other; `socks5h` hands the name
    /// over.
    #[cfg(feature = "socks")]
    async fn through_socks(&self, upstream: &Place, dialer: &Dialer) -> Result<(Stream, Arc<Meter>), TransportError> {
        let targets = match self.url.scheme() {
            Scheme::Socks5 => upstream.addresses().await?.iter().copied().map(TargetAddr::Ip).collect(),
            _ => vec![upstream.unresolved().into_target_addr().map_err(|error| self.socks_failed(error))?],
        };
        let mut failed = self.failed(Fault::Proxy, "was given no address".to_owned(), None);
        for target in targets {
            let (stream, meter) = self.reach(dialer).await?;
            match socks::open(stream, target, self.url.credentials()).await {
                Ok(stream) => return Ok((stream, meter)),
                Err(error) if socks::is_about_credentials(&error) => return Err(self.wants_credentials()),
                Err(error) => failed = self.socks_failed(error),
            }
        }
        Err(failed)
    }

    #[cfg(feature = "socks")]
    fn socks_failed(&self, error: tokio_socks::Error) -> TransportError {
        self.failed(Fault::Proxy, "did not connect to the upstream".to_owned(), Some(error.into()))
    }

    /// The proxy refused the credentials, or misses them: before anything was sent through it.
    fn wants_credentials(&self) -> TransportError {
        self.failed(Fault::ProxyRefused, self.asks().to_owned(), None)
    }

    /// The proxy answered a request that it was to pass on with a 407. Whether that came from this proxy or from beyond
    /// it cannot be told, so it is no proof that the upstream saw nothing.
    pub(crate) fn refused_request(&self) -> TransportError {
        let error = AtProxy { proxy: self.url.clone(), what: self.asks().to_owned(), source: None };
        TransportError::new(Fault::ProxyRefused, Sent::Unknown).with_source(error)
    }

    fn asks(&self) -> &'static str {
        match (self.url.scheme().is_socks(), self.url.credentials().is_some()) {
            (false, true) => "asks for other credentials (407)",
            (false, false) => "asks for credentials (407), and its URL has none",
            (true, true) => "asks for other credentials",
            (true, false) => "asks for credentials, and its URL has none",
        }
    }

    fn failed(&self, fault: Fault, what: String, source: Option<BoxError>) -> TransportError {
        TransportError::new(fault, Sent::No).with_source(AtProxy { proxy: self.url.clone(), what, source })
    }
}

/// What an HTTP proxy is asked for. A proxy passes on HTTP/1.1 only, so HTTP/2 needs a tunnel even without TLS.
fn http_hop(url: &ProxyUrl, config: &PoolConfig) -> Result<Hop, PoolConfigError> {
    let forwards = !config.https && config.http_version != HttpVersion::Http2;
    let mut text = authority(&config.host, config.port);
    if forwards && config.port == 80 {
        text.truncate(text.len() - ":80".len());
    }
    // What is no authority could say more to the proxy than it should.
    let authority: Authority = match text.parse() {
        Ok(authority) if !text.contains('@') => authority,
        _ => return Err(PoolConfigError::Host(config.host.clone())),
    };
    let authorization = url.credentials().and_then(basic::authorization);
    Ok(if forwards {
        Hop::Forward(Forwarding { authority, authorization })
    } else {
        Hop::Tunnel(tunnel::request(&authority, authorization.as_ref()))
    })
}

/// What happened at a proxy. Its URL shows no credentials.
#[derive(Debug)]
struct AtProxy {
    proxy: ProxyUrl,
    what: String,
    source: Option<BoxError>,
}

impl fmt::Display for AtProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {} {}", self.proxy, self.what)
    }
}

impl StdError for AtProxy {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
