//! From the options to what a handshake needs. Everything is read before anything is judged, so that what was read can
//! be compared with what was read before, byte by byte, through its digest: a file's time says nothing (a secret that
//! is mounted anew has a new one), and to keep the bytes would be to keep a second copy of the key.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, SupportedCipherSuite, crypto};

use super::error::{Part, TlsConfigError, What};
use super::identity::Presenter;
use super::roots;

/// More than any file of certificates.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Whom to trust, and who we are. Mozilla's roots, which are compiled in, count unless `only_extra_roots` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOptions {
    /// The roots of the operating system count too. False.
    pub platform_roots: bool,
    /// PEM files whose certificates count too (a private authority). None.
    pub extra_roots: Vec<PathBuf>,
    /// Only `extra_roots` count: no public authority can issue a certificate that is accepted. It needs at least one
    /// file, and cannot be combined with `platform_roots`. False.
    pub only_extra_roots: bool,
    /// A PEM file with our own certificate, the chain that leads from it to its root, and, unless `identity_key` names
    /// another file, its private key (PKCS#8, PKCS#1 or SEC1, not encrypted). It is presented to an upstream that asks.
    /// None.
    pub identity: Option<PathBuf>,
    /// A PEM file with the private key of `identity`; one in `identity` is then not looked at. None.
    pub identity_key: Option<PathBuf>,
    /// The name, or IP address, that the upstream's certificate must be for, and that it is asked for (SNI, RFC 6066
    /// section 3; an address is not sent). None: its host.
    pub server_name: Option<String>,
}

/// A file, whole.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

impl File {
    fn read(path: &Path, part: Part) -> Result<Self, TlsConfigError> {
        let unreadable = |error| TlsConfigError::because(What::Unreadable(part, path.to_owned()), error);
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if read as u64 > MAX_BYTES {
            return Err(TlsConfigError::new(What::TooLarge(part, path.to_owned())));
        }
        Ok(Self { path: path.to_owned(), bytes })
    }
}

/// Everything that the options name, as it was at one time.
pub(super) struct Files {
    pub(super) roots: Vec<File>,
    /// `None`: they do not count.
    pub(super) platform: Option<Vec<CertificateDer<'static>>>,
    pub(super) identity: Option<File>,
    pub(super) key: Option<File>,
}

impl Files {
    pub(super) fn read(options: &TlsOptions) -> Result<Self, TlsConfigError> {
        if options.only_extra_roots {
            if options.platform_roots {
                return Err(TlsConfigError::new(What::OnlyRootsAndPlatform));
            }
            if options.extra_roots.is_empty() {
                return Err(TlsConfigError::new(What::OnlyRootsWithoutRoots));
            }
        }
        if let (None, Some(key)) = (&options.identity, &options.identity_key) {
            return Err(TlsConfigError::new(What::KeyWithoutIdentity(key.clone())));
        }
        let chain_part = if options.identity_key.is_some() { Part::Chain } else { Part::Identity };
        Ok(Self {
            roots: options.extra_roots.iter().map(|path| File::read(path, Part::Roots)).collect::<Result<_, _>>()?,
            platform: options.platform_roots.then(platform).transpose()?,
            identity: options.identity.as_deref().map(|path| File::read(path, chain_part)).transpose()?,
            key: options.identity_key.as_deref().map(|path| File::read(path, Part::Key)).transpose()?,
        })
    }

    /// The same for the same content, in the same order.
    pub(super) fn digest(&self) -> Vec<u8> {
        let hash = match TLS13_AES_128_GCM_SHA256 {
            SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider,
            SupportedCipherSuite::Tls12(suite) => suite.common.hash_provider,
        };
        let mut context = hash.start();
        // Lengths first, so that what moves from one file to the next is a difference.
        let mut add = |pieces: &mut dyn ExactSizeIterator<Item = &[u8]>| {
            context.update(&(pieces.len() as u64).to_be_bytes());
            for piece in pieces {
                context.update(&(piece.len() as u64).to_be_bytes());
                context.update(piece);
            }
        };
        add(&mut self.roots.iter().map(|file| file.bytes.as_slice()));
        add(&mut self.platform.iter().flatten().map(AsRef::as_ref).collect::<Vec<_>>().into_iter());
        add(&mut self.identity.iter().map(|file| file.bytes.as_slice()));
        add(&mut self.key.iter().map(|file| file.bytes.as_slice()));
        context.finish().as_ref().to_vec()
    }
}

/// In an order of their own, as that of a directory says nothing.
fn platform() -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let mut found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(match found.errors.into_iter().next() {
            Some(error) => TlsConfigError::because(What::NoPlatformRoots, error),
            None => TlsConfigError::new(What::NoPlatformRoots),
        });
    }
    tracing::debug!(errors = found.errors.len(), "platform root certificates read");
    found.certs.sort_by(|a, b| a.as_ref().cmp(b.as_ref()));
    Ok(found.certs)
}

pub(super) fn client_config(files: &Files, options: &TlsOptions) -> Result<ClientConfig, TlsConfigError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let presenter = Presenter::new(files, &provider)?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsConfigError::because(What::Provider, error))?
        .with_root_certificates(roots::store(files, options.only_extra_roots)?)
        .with_client_cert_resolver(Arc::new(presenter)))
}

/// The name that the upstream's certificate must be for.
pub(super) fn name(host: &str, options: &TlsOptions) -> Result<ServerName<'static>, TlsConfigError> {
    let (name, what): (&str, fn(String) -> What) = match &options.server_name {
        Some(name) => (name, What::ServerName),
        None => (host, What::Host),
    };
    ServerName::try_from(name.to_owned()).map_err(|error| TlsConfigError::because(what(name.to_owned()), error))
}
