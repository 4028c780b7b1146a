//! What is wrong with the TLS configuration: which file, and what was expected of it.
//!
//! The texts are ours, down to the reason why a file is not PEM: the PEM reader's own quote the line that they stumble
//! over, and that may be a key. What the operating system says about a file is passed on.

use std::fmt;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::pem;

/// TLS cannot be set up as configured. The message names the file, and what was expected of it, in the words of the
/// configuration's keys (`tls_roots` is [`TlsOptions::extra_roots`](super::TlsOptions::extra_roots)). It holds no part
/// of a key.
#[derive(Debug)]
pub struct TlsConfigError {
    what: What,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What a file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Certificates of authorities.
    Roots,
    /// Our certificate, its chain, and its key.
    Identity,
    /// Our certificate and its chain; the key is in another file.
    Chain,
    /// The key alone.
    Key,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Roots => "the root certificates",
            Self::Identity | Self::Chain => "the client certificate",
            Self::Key => "the client certificate's key",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Roots => "one or more CERTIFICATE sections",
            Self::Identity => "CERTIFICATE sections and one PRIVATE KEY section",
            Self::Chain => "one or more CERTIFICATE sections",
            Self::Key => "one PRIVATE KEY section",
        }
    }
}

#[derive(Debug)]
pub(super) enum What {
    Unreadable(Part, PathBuf),
    TooLarge(Part, PathBuf),
    NotPem(Part, PathBuf, &'static str),
    NoCertificate(PathBuf),
    NotACertificate(Part, PathBuf, usize),
    NoKey(Part, PathBuf),
    SeveralKeys(PathBuf, usize),
    EncryptedKey(PathBuf),
    UnusableKey(PathBuf),
    KeyMismatch { key: PathBuf, identity: PathBuf },
    KeyWithoutIdentity(PathBuf),
    OnlyRootsWithoutRoots,
    OnlyRootsAndPlatform,
    NoPlatformRoots,
    Host(String),
    ServerName(String),
    Provider,
}

impl TlsConfigError {
    pub(super) fn new(what: What) -> Self {
        Self { what, source: None }
    }

    pub(super) fn because(what: What, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { what, source: Some(source.into()) }
    }

    /// A file that the PEM reader does not get through.
    pub(super) fn not_pem(part: Part, path: &Path, error: &pem::Error) -> Self {
        let reason = match error {
            pem::Error::MissingSectionEnd { .. } => "a section has no END line",
            pem::Error::IllegalSectionStart { .. } => "a BEGIN line does not end after its five dashes",
            pem::Error::Base64Decode(_) => "a section is not base64",
            _ => "a section cannot be read",
        };
        Self::new(What::NotPem(part, path.to_owned(), reason))
    }

    /// The file that cannot be used, where it is a file's fault.
    pub fn path(&self) -> Option<&Path> {
        match &self.what {
            What::Unreadable(_, path)
            | What::TooLarge(_, path)
            | What::NotPem(_, path, _)
            | What::NoCertificate(path)
            | What::NotACertificate(_, path, _)
            | What::NoKey(_, path)
            | What::SeveralKeys(path, _)
            | What::EncryptedKey(path)
            | What::UnusableKey(path)
            | What::KeyMismatch { key: path, .. }
            | What::KeyWithoutIdentity(path) => Some(path),
            What::OnlyRootsWithoutRoots
            | What::OnlyRootsAndPlatform
            | What::NoPlatformRoots
            | What::Host(_)
            | What::ServerName(_)
            | What::Provider => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(part, path) => write!(f, "{} in '{}' cannot be read", part.name(), path.display()),
            Self::TooLarge(part, path) => {
                write!(f, "'{}' is larger than 16 MiB; expected {}", path.display(), part.expected())
            }
            Self::NotPem(part, path, reason) => {
                write!(f, "'{}' is not valid PEM; expected {}: {reason}", path.display(), part.expected())
            }
            Self::NoCertificate(path) => {
                write!(f, "'{}' has no certificate; expected one or more PEM sections CERTIFICATE", path.display())
            }
            Self::NotACertificate(part, path, number) => {
                let purpose = if *part == Part::Roots { "a root" } else { "a client certificate" };
                let path = path.display();
                write!(f, "certificate {number} in '{path}' cannot be used as {purpose}; expected an X.509 certificate")
            }
            Self::NoKey(part, path) => {
                let place = if *part == Part::Identity { " in it, or in the file of tls_identity_key" } else { "" };
                let path = path.display();
                write!(
                    f,
                    "'{path}' has no private key; expected one PEM section PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE \
                     KEY{place}"
                )
            }
            Self::SeveralKeys(path, count) => write!(f, "'{}' has {count} private keys; expected one", path.display()),
            Self::EncryptedKey(path) => {
                write!(f, "the private key in '{}' is encrypted; expected one without a passphrase", path.display())
            }
            Self::UnusableKey(path) => write!(
                f,
                "the private key in '{}' cannot be used; expected RSA (2048 bits or more), ECDSA (P-256, P-384) or \
                 Ed25519, as PKCS#8, PKCS#1 or SEC1",
                path.display()
            ),
            Self::KeyMismatch { key, identity } => write!(
                f,
                "the private key in '{}' does not belong to the first certificate in '{}'; expected that certificate's \
                 own key, and the chain after it",
                key.display(),
                identity.display()
            ),
            Self::KeyWithoutIdentity(path) => write!(
                f,
                "tls_identity_key ('{}') is set without tls_identity; expected the file of the key's certificate too",
                path.display()
            ),
            Self::OnlyRootsWithoutRoots => f.write_str(
                "tls_roots_only is set and tls_roots is empty; expected at least one file of root certificates",
            ),
            Self::OnlyRootsAndPlatform => {
                f.write_str("tls_roots_only and tls_platform_roots contradict each other; expected one of the two")
            }
            Self::NoPlatformRoots => f.write_str("the operating system has no root certificates that can be read"),
            Self::Host(host) => write!(f, "'{host}' is not a host name that a certificate can be issued for"),
            Self::ServerName(name) => write!(
                f,
                "tls_server_name '{}' is not a name that a certificate can be issued for; expected a host name or an IP \
                 address",
                name.escape_debug()
            ),
            Self::Provider => f.write_str("the TLS library cannot be set up"),
        }
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)?;
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
