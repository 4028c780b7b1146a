//! Our own certificate: reading it, and presenting it to an upstream that asks.
//!
//! Whether an upstream asked decides what its alert means, and rustls does not say so in its error. It does call the
//! resolver, in the middle of a poll of the handshake: [`noting`] looks, after each poll, whether that happened in it.
//! (A resolver for each connection would tell too, but a session is only resumed with the resolver that it began with.)
//!
//! Limit: one certificate, presented to whoever asks, whatever authorities the upstream names.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{PemObject, SectionKind};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error as RustlsError, InconsistentKeys, SignatureScheme};

use super::config::{File, Files};
use super::error::{Part, TlsConfigError, What};

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Presents our certificate, if there is one, to an upstream that asks for it.
pub(super) struct Presenter(Option<Arc<CertifiedKey>>);

impl Presenter {
    pub(super) fn new(files: &Files, provider: &CryptoProvider) -> Result<Self, TlsConfigError> {
        let Some(identity) = &files.identity else { return Ok(Self(None)) };
        let part = if files.key.is_some() { Part::Chain } else { Part::Identity };
        let (key_file, key_part) = files.key.as_ref().map_or((identity, part), |file| (file, Part::Key));
        // First, as the older form of it is no PEM that the reader knows.
        if is_encrypted(&key_file.bytes) {
            return Err(TlsConfigError::new(What::EncryptedKey(key_file.path.clone())));
        }
        let chain = chain(identity, part)?;
        let key = provider
            .key_provider
            .load_private_key(key(key_file, key_part)?)
            // The source would say less.
            .map_err(|_| TlsConfigError::new(What::UnusableKey(key_file.path.clone())))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            // A key that cannot tell is believed.
            Ok(()) | Err(RustlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {
                Ok(Self(Some(Arc::new(certified))))
            }
            Err(_) => Err(TlsConfigError::new(What::KeyMismatch {
                key: key_file.path.clone(),
                identity: identity.path.clone(),
            })),
        }
    }
}

impl fmt::Debug for Presenter {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presenter").field("has_certs", &self.has_certs()).finish()
    }
}

impl ResolvesClientCert for Presenter {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        ASKED.set(true);
        self.0.as_ref().filter(|certified| certified.key.choose_scheme(schemes).is_some()).map(Arc::clone)
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// Runs a handshake, and says whether the upstream asked for our certificate in it.
pub(super) async fn noting<F: Future>(handshake: F) -> (F::Output, bool) {
    let mut handshake = pin!(handshake);
    let mut asked = false;
    let output = poll_fn(|cx| {
        ASKED.set(false);
        let output = handshake.as_mut().poll(cx);
        asked |= ASKED.take();
        output
    })
    .await;
    (output, asked)
}

fn chain(file: &File, part: Part) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let mut chain = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&file.bytes) {
        let certificate = certificate.map_err(|error| TlsConfigError::not_pem(part, &file.path, &error))?;
        let number = chain.len() + 1;
        ParsedCertificate::try_from(&certificate)
            .map_err(|error| TlsConfigError::because(What::NotACertificate(part, file.path.clone(), number), error))?;
        chain.push(certificate);
    }
    if chain.is_empty() { Err(TlsConfigError::new(What::NoCertificate(file.path.clone()))) } else { Ok(chain) }
}

fn key(file: &File, part: Part) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    let mut keys = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(&file.bytes) {
        let (kind, der) = section.map_err(|error| TlsConfigError::not_pem(part, &file.path, &error))?;
        keys.extend(PrivateKeyDer::from_pem(kind, der));
    }
    let count = keys.len();
    match keys.pop() {
        Some(key) if count == 1 => Ok(key),
        Some(_) => Err(TlsConfigError::new(What::SeveralKeys(file.path.clone(), count))),
        None => Err(TlsConfigError::new(What::NoKey(part, file.path.clone()))),
    }
}

/// PKCS#8 has a section of its own for it (RFC 7468 section 11); the older forms have a header (RFC 1421 section 4.6.1.1).
fn is_encrypted(pem: &[u8]) -> bool {
    pem.split(|byte| *byte == b'\n' || *byte == b'\r').any(|line| {
        line.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY") || line.starts_with(b"Proc-Type: 4,ENCRYPTED")
    })
}
