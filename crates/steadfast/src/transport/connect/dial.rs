//! The first steps of a connection: resolve and TCP, to the upstream or to its proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use steadfast_http::Fault;
use tokio::net::TcpStream;

use super::resolve::{Lookup, Resolve};
use super::stream::{Metered, Stream};
use super::{race, unsent};
use crate::transport::TransportError;
use crate::transport::pool::meter::{Limits, Meter};

/// Where a socket goes.
pub(super) struct Place {
    host: String,
    port: u16,
    lookup: Lookup,
}

impl Place {
    /// `host`: IPv6 without brackets.
    pub(super) fn new(host: &str, port: u16, resolver: &Arc<dyn Resolve>) -> Self {
        Self { host: host.to_owned(), port, lookup: Lookup::new(Arc::clone(resolver)) }
    }

    pub(super) async fn addresses(&self) -> Result<Arc<[SocketAddr]>, TransportError> {
        self.lookup.addresses(&self.host, self.port).await
    }

    /// As it is, for a proxy to resolve.
    #[cfg(feature = "socks")]
    pub(super) fn unresolved(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

/// Opens sockets.
pub(super) struct Dialer {
    /// How long the whole connection may take; from it follows the patience with one address.
    pub(super) within: Duration,
    pub(super) limits: Limits,
}

impl Dialer {
    /// A socket to the first of the place's addresses that answers, and its meter.
    pub(super) async fn dial(&self, place: &Place) -> Result<(Stream, Arc<Meter>), TransportError> {
        let addresses = place.addresses().await?;
        let socket = race::connect(&addresses, self.within)
            .await
            .and_then(no_delay)
            .map_err(|error| unsent(Fault::Connect).with_source(error))?;
        let meter = Arc::new(Meter::new(self.limits));
        Ok((Stream::Plain(Metered::new(socket, Arc::clone(&meter))), meter))
    }
}

/// A request is written in one go, and must not wait for the acknowledgement of the one before.
fn no_delay(socket: TcpStream) -> std::io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    Ok(socket)
}
