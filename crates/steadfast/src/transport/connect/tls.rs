//! Which certificates are trusted, and the handshake.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_http::{Fault, Sent};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error as RustlsError, RootCertStore, crypto};

use super::stream::Stream;
use crate::transport::TransportError;
use crate::transport::version::{Offer, Protocol};

/// Which roots a certificate may lead to. Mozilla's, which are compiled in, always count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// Those of the operating system count too. False.
    pub platform_roots: bool,
    /// PEM files whose certificates count too (a private authority). None.
    pub extra_roots: Vec<PathBuf>,
    /// Only `extra_roots` count. False.
    pub only_extra_roots: bool,
    /// A PEM file with our own certificate, its chain, and, unless `identity_key` names another file, its private key. None.
    pub identity: Option<PathBuf>,
    /// A PEM file with the private key of `identity`. None.
    pub identity_key: Option<PathBuf>,
    /// The name that the upstream's certificate must be for, and that it is asked for (SNI). None: its host.
    pub server_name: Option<String>,
}

/// TLS cannot be set up as configured. The message names the file, and what was expected of it.
#[derive(Debug)]
pub struct TlsConfigError {
    what: What,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

#[derive(Debug)]
enum What {
    Unreadable(PathBuf),
    NotPem(PathBuf),
    NoCertificate(PathBuf),
    NotACertificate(PathBuf, usize),
    NoPlatformRoots,
    Host(String),
    Provider,
}

impl TlsConfigError {
    fn new(what: What) -> Self {
        Self { what, source: None }
    }

    fn because(what: What, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { what, source: Some(source.into()) }
    }

    /// The file that cannot be used, where it is a file's fault.
    pub fn path(&self) -> Option<&Path> {
        match &self.what {
            What::Unreadable(path)
            | What::NotPem(path)
            | What::NoCertificate(path)
            | What::NotACertificate(path, _) => Some(path),
            What::NoPlatformRoots | What::Host(_) | What::Provider => None,
        }
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Unreadable(path) => write!(f, "the root certificates in '{}' cannot be read", path.display())?,
            What::NotPem(path) => {
                write!(f, "'{}' is not valid PEM; expected one or more CERTIFICATE sections", path.display())?;
            }
            What::NoCertificate(path) => {
                write!(f, "'{}' has no certificate; expected one or more PEM sections CERTIFICATE", path.display())?;
            }
            What::NotACertificate(path, number) => write!(
                f,
                "certificate {number} in '{}' cannot be used as a root; expected an X.509 certificate",
                path.display()
            )?,
            What::NoPlatformRoots => f.write_str("the operating system has no root certificates that can be read")?,
            What::Host(host) => write!(f, "'{host}' is not a host name that a certificate can be issued for")?,
            What::Provider => f.write_str("the TLS library cannot be set up")?,
        }
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TlsConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// The last step of a connection to an https upstream.
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    pub(crate) fn new(host: &str, options: &TlsOptions) -> Result<Self, TlsConfigError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| TlsConfigError::because(What::Host(host.to_owned()), error))?;
        let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsConfigError::because(What::Provider, error))?
            .with_root_certificates(roots(options)?)
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), name })
    }

    /// Also says what the upstream chose among what was offered; one that chooses nothing speaks HTTP/1.1.
    pub(crate) async fn handshake(
        &self,
        socket: Stream,
        offer: Offer,
    ) -> Result<(TlsStream<Stream>, Protocol), TransportError> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector
            .with_alpn(offer.alpn())
            .connect(self.name.clone(), socket)
            .await
            .map_err(|error| TransportError::new(handshake_fault(&error), Sent::No).with_source(error))?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

/// A certificate that does not verify now will not verify a moment later; anything else may pass.
fn handshake_fault(error: &io::Error) -> Fault {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<RustlsError>()) {
        Some(RustlsError::InvalidCertificate(_) | RustlsError::NoCertificatesPresented) => Fault::Certificate,
        _ => Fault::Tls,
    }
}

fn roots(options: &TlsOptions) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if options.platform_roots {
        let found = rustls_native_certs::load_native_certs();
        // A platform's store often holds a few that no library reads; those that it reads are enough.
        let (added, ignored) = roots.add_parsable_certificates(found.certs);
        tracing::debug!(added, ignored, errors = found.errors.len(), "platform root certificates");
        if added == 0 {
            let source = found.errors.into_iter().next();
            return Err(TlsConfigError { what: What::NoPlatformRoots, source: source.map(Into::into) });
        }
    }
    for path in &options.extra_roots {
        add_file(&mut roots, path)?;
    }
    Ok(roots)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsConfigError> {
    let unusable = |error: pem::Error| match error {
        pem::Error::Io(error) => TlsConfigError::because(What::Unreadable(path.to_owned()), error),
        error => TlsConfigError::because(What::NotPem(path.to_owned()), error),
    };
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(unusable)? {
        count += 1;
        roots
            .add(certificate.map_err(unusable)?)
            .map_err(|error| TlsConfigError::because(What::NotACertificate(path.to_owned(), count), error))?;
    }
    if count == 0 { Err(TlsConfigError::new(What::NoCertificate(path.to_owned()))) } else { Ok(()) }
}
