//! TLS to an upstream: the handshake, with the certificates that count now.
//!
//! What a handshake needs is made from files when the pool is made, and again by [`Tls::renew`]; [`Tls::adopt`] puts it in the
//! place of the old one in one step: a handshake uses either the old or the new, whole. Sessions belong to what they
//! were begun with, so that none of the old is resumed under the new. A connection carries the number of the generation
//! that it was opened with ([`TlsState`]); the pool uses none of an older one for a further request.
//!
//! - [`config`]: the options, the files, what is made of them.
//! - [`roots`], [`identity`]: whom we trust, and who we are.
//! - [`error`]: what is wrong with the configuration.
//! - [`failure`], [`sentence`]: what is wrong with a connection, and whether it can pass.
//! - [`io`]: a connection's bytes, and what is remembered of it.
//!
//! Limits: no revocation lists, no OCSP. TLS 1.2 and 1.3 only.

mod config;
mod error;
mod failure;
mod identity;
mod io;
mod roots;
mod sentence;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use steadfast_http::{Fault, Sent};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::stream::Stream;
use crate::transport::TransportError;
use crate::transport::version::{Offer, Protocol};
use config::Files;
pub use config::TlsOptions;
pub use error::TlsConfigError;
use failure::Setting;
pub use failure::{TlsFailure, TlsFailureKind};
pub(crate) use io::{TlsIo, TlsState};

/// The last step of a connection to an https upstream.
pub(crate) struct Tls {
    options: TlsOptions,
    name: ServerName<'static>,
    now: ArcSwap<Generation>,
    /// The number of the latest generation.
    current: Arc<AtomicU64>,
    /// What the files held when they were last adopted; one adoption at a time.
    digest: Mutex<Vec<u8>>,
}

/// What handshakes use, from one reload to the next.
struct Generation {
    number: u64,
    config: Arc<ClientConfig>,
}

/// What the files hold now, where it differs.
pub(crate) struct Renewed {
    digest: Vec<u8>,
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(crate) fn new(host: &str, options: &TlsOptions) -> Result<Self, TlsConfigError> {
        let name = config::name(host, options)?;
        let files = Files::read(options)?;
        let config = Arc::new(config::client_config(&files, options)?);
        Ok(Self {
            options: options.clone(),
            name,
            now: ArcSwap::from_pointee(Generation { number: 0, config }),
            current: Arc::default(),
            digest: Mutex::new(files.digest()),
        })
    }

    /// Reads the files again. `None`: they hold what they held. Changes nothing.
    pub(crate) fn renew(&self) -> Result<Option<Renewed>, TlsConfigError> {
        let files = Files::read(&self.options)?;
        let digest = files.digest();
        // Nothing under the lock can leave it half-changed.
        if digest == *self.digest.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(None);
        }
        let config = Arc::new(config::client_config(&files, &self.options)?);
        Ok(Some(Renewed { digest, config }))
    }

    /// Puts what was read in the place of what is in use.
    pub(crate) fn adopt(&self, renewed: Renewed) {
        let Renewed { digest: read, config } = renewed;
        let mut digest = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.now.load().number + 1;
        // First, so that a connection that is being opened with the old one is known to be outdated.
        self.current.store(number, Ordering::Release);
        self.now.store(Arc::new(Generation { number, config }));
        *digest = read;
    }

    /// Also says what the upstream chose among what was offered; one that chooses nothing speaks HTTP/1.1.
    pub(crate) async fn handshake(&self, socket: Stream, offer: Offer) -> Result<(TlsIo, Protocol), TransportError> {
        let generation = self.now.load_full();
        let connector = TlsConnector::from(Arc::clone(&generation.config));
        let connect = connector.with_alpn(offer.alpn()).connect(self.name.clone(), socket);
        let (result, asked) = identity::noting(connect).await;
        let mut setting = Setting {
            only_extra_roots: self.options.only_extra_roots,
            identity: self.options.identity.is_some(),
            asked,
            established: false,
        };
        let stream = result.map_err(|error| match io::rustls_error(&error) {
            Some(error) => {
                let failure = TlsFailure::new(error.clone(), setting);
                TransportError::new(failure.fault(), Sent::No).with_source(failure)
            }
            // It was reset, or has ended.
            None => TransportError::new(Fault::Tls, Sent::No).with_source(error),
        })?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        setting.established = true;
        let state = TlsState::new(generation.number, Arc::clone(&self.current));
        Ok((TlsIo::new(stream, setting, state), protocol))
    }
}
