//! What a failure of TLS means: a plain sentence with what helps, and whether it can pass.
//!
//! | what happened | kind | permanent |
//! |---|---|---|
//! | the upstream's certificate is expired, or not valid yet | `Expired`, `NotYetValid` | yes |
//! | it leads to no trusted root; its signature does not verify | `UnknownIssuer`, `BadSignature` | yes |
//! | it is for another name, or another purpose; it is revoked, unreadable, missing | `WrongName`, `WrongPurpose`, `Revoked`, `Unusable` | yes |
//! | the upstream asked for our certificate, got none, and refused us | `IdentityRequired` | yes |
//! | it asked for our certificate, got one, and refused us | `IdentityRefused` | yes |
//! | no TLS version, cipher suite, or signature scheme in common | `Incompatible` | no |
//! | none of the offered protocols (ALPN) | `NoCommonProtocol` | no |
//! | it knows no such name (SNI) | `UnknownName` | no |
//! | what answers does not speak TLS | `NotTls` | no |
//! | any other alert or broken record | `Other` | no |
//!
//! Certificates do not change from one attempt to the next, so that their failures are [`Fault::Certificate`] and are
//! never retried, whichever side's certificate it is. The rest is [`Fault::Tls`]: nothing was sent, so that another
//! attempt harms nobody, and behind a balancer, or while a service is replaced, the next one may meet another peer.
//!
//! Some alerts have two meanings. `handshake_failure` says that there is nothing in common, or (OpenSSL and others, up
//! to TLS 1.2) that our certificate is missing or refused. The second is possible only once the upstream has asked for
//! it, and then the first is not possible any more, as what both speak was agreed before. `access_denied` is what a
//! rustls server says that has no certificate for the name; and so on: an alert is about our certificate if the
//! upstream has asked for it, else it is not.
//!
//! Limits: a connection that ends or is reset in the handshake has no alert, and is no `TlsFailure`. In TLS 1.3 an
//! upstream refuses our certificate after the handshake (RFC 8446 section 4.4.2.4): the failure then comes with the
//! first request, part of which may have been sent. In a resumed session the upstream does not ask again: what it says
//! of our certificate there counts as something that may pass.

use std::error::Error as StdError;
use std::fmt;

use steadfast_http::Fault;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as RustlsError, InvalidMessage, PeerMisbehaved};

use super::sentence;

/// Why TLS failed, in a sentence. It is the source of the [`TransportError`](crate::transport::TransportError), and
/// rustls's own error is its source.
///
/// The sentence names hosts, of the configuration and of the upstream's certificate, and nothing of the request.
#[derive(Clone, Debug)]
pub struct TlsFailure {
    kind: TlsFailureKind,
    error: RustlsError,
    setting: Setting,
}

/// The kinds of TLS failures; [`is_permanent`](Self::is_permanent) says which can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsFailureKind {
    /// The upstream's certificate has expired.
    Expired,
    /// The upstream's certificate is not valid yet, or a clock is wrong.
    NotYetValid,
    /// The upstream's certificate leads to no root that is trusted.
    UnknownIssuer,
    /// A signature in the upstream's chain, or of its handshake, does not verify.
    BadSignature,
    /// The upstream's certificate is for another name.
    WrongName,
    /// The upstream's certificate is not for servers.
    WrongPurpose,
    /// The upstream's certificate has been revoked.
    Revoked,
    /// The upstream's certificate is missing, or cannot be used for another reason.
    Unusable,
    /// The upstream wants a certificate of ours, and we have none.
    IdentityRequired,
    /// The upstream does not accept our certificate.
    IdentityRefused,
    /// There is no TLS version, cipher suite, or signature scheme that both sides accept.
    Incompatible,
    /// The upstream speaks none of the protocols that were offered (ALPN, RFC 7301).
    NoCommonProtocol,
    /// The upstream knows no such name (SNI, RFC 6066 section 3).
    UnknownName,
    /// What answers does not speak TLS.
    NotTls,
    /// Anything else that broke.
    Other,
}

impl TlsFailureKind {
    /// Whether another attempt would meet the same: [`Fault::Certificate`] rather than [`Fault::Tls`].
    pub const fn is_permanent(self) -> bool {
        match self {
            Self::Expired
            | Self::NotYetValid
            | Self::UnknownIssuer
            | Self::BadSignature
            | Self::WrongName
            | Self::WrongPurpose
            | Self::Revoked
            | Self::Unusable
            | Self::IdentityRequired
            | Self::IdentityRefused => true,
            Self::Incompatible | Self::NoCommonProtocol | Self::UnknownName | Self::NotTls | Self::Other => false,
        }
    }
}

/// What the connection was like that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Setting {
    /// Only the configured roots count.
    pub(super) only_extra_roots: bool,
    /// We have a certificate.
    pub(super) identity: bool,
    /// The upstream asked for it.
    pub(super) asked: bool,
    /// The handshake was over.
    pub(super) established: bool,
}

impl TlsFailure {
    pub(super) fn new(error: RustlsError, setting: Setting) -> Self {
        Self { kind: kind(&error, setting), error, setting }
    }

    /// What it is.
    pub fn kind(&self) -> TlsFailureKind {
        self.kind
    }

    pub(crate) fn fault(&self) -> Fault {
        if self.kind.is_permanent() { Fault::Certificate } else { Fault::Tls }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sentence::write(f, self.kind, &self.error, self.setting)
    }
}

impl StdError for TlsFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}

fn kind(error: &RustlsError, setting: Setting) -> TlsFailureKind {
    match error {
        RustlsError::InvalidCertificate(error) => of_certificate(error),
        RustlsError::NoCertificatesPresented => TlsFailureKind::Unusable,
        RustlsError::AlertReceived(alert) => of_alert(*alert, setting),
        RustlsError::PeerIncompatible(_) => TlsFailureKind::Incompatible,
        RustlsError::NoApplicationProtocol
        | RustlsError::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
            TlsFailureKind::NoCommonProtocol
        }
        // Later it is a record that was damaged on its way.
        RustlsError::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion)
            if !setting.established =>
        {
            TlsFailureKind::NotTls
        }
        _ => TlsFailureKind::Other,
    }
}

fn of_certificate(error: &CertificateError) -> TlsFailureKind {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailureKind::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFailureKind::NotYetValid,
        CertificateError::UnknownIssuer => TlsFailureKind::UnknownIssuer,
        CertificateError::BadSignature => TlsFailureKind::BadSignature,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFailureKind::WrongName
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            TlsFailureKind::WrongPurpose
        }
        CertificateError::Revoked => TlsFailureKind::Revoked,
        _ => TlsFailureKind::Unusable,
    }
}

fn of_alert(alert: AlertDescription, setting: Setting) -> TlsFailureKind {
    // Where nobody asked for ours none was given, and what the alert says is about something else.
    let about_ours = match alert {
        AlertDescription::CertificateRequired => true,
        _ if !setting.asked => false,
        AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::HandshakeFailure => true,
        // What the proof of our key fails with, once one was given.
        AlertDescription::DecryptError => setting.identity,
        _ => false,
    };
    match alert {
        _ if about_ours && setting.identity => TlsFailureKind::IdentityRefused,
        _ if about_ours => TlsFailureKind::IdentityRequired,
        AlertDescription::ProtocolVersion
        | AlertDescription::HandshakeFailure
        | AlertDescription::InsufficientSecurity => TlsFailureKind::Incompatible,
        AlertDescription::NoApplicationProtocol => TlsFailureKind::NoCommonProtocol,
        AlertDescription::UnrecognisedName => TlsFailureKind::UnknownName,
        _ => TlsFailureKind::Other,
    }
}
