//! The sentence for each [`TlsFailureKind`]: what is wrong, and the keys that bear on it.
//!
//! Names out of a certificate are a stranger's text: a few, each short, and without control characters.

use std::fmt::{self, Formatter, Write as _};

use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as RustlsError};

use super::failure::{Setting, TlsFailureKind};

/// How many of a certificate's names are told.
const NAMES: usize = 4;
/// How much of each.
const NAME_CHARS: usize = 100;

pub(super) fn write(f: &mut Formatter<'_>, kind: TlsFailureKind, error: &RustlsError, setting: Setting) -> fmt::Result {
    let plain = match kind {
        TlsFailureKind::Expired | TlsFailureKind::NotYetValid => return validity(f, kind, error),
        TlsFailureKind::WrongName => return wrong_name(f, error),
        TlsFailureKind::UnknownIssuer if setting.only_extra_roots => {
            "the upstream's certificate was issued by none of the authorities in tls_roots, and no others count \
             (tls_roots_only)"
        }
        TlsFailureKind::UnknownIssuer => {
            "the upstream's certificate was issued by no authority that is trusted here; a private authority's \
             certificate can be named in tls_roots, and tls_platform_roots adds those of the operating system"
        }
        TlsFailureKind::BadSignature => {
            "a signature in the upstream's certificate chain does not verify: an authority may have a new key under its \
             old name, and the file in tls_roots be out of date"
        }
        TlsFailureKind::WrongPurpose => "the upstream's certificate was not issued for servers",
        TlsFailureKind::Revoked => "the upstream's certificate has been revoked",
        TlsFailureKind::Unusable => return unusable(f, error),
        TlsFailureKind::IdentityRequired => {
            "the upstream requires a client certificate, and none is configured (tls_identity)"
        }
        TlsFailureKind::IdentityRefused => return refused(f, error),
        TlsFailureKind::Incompatible => {
            "the upstream and this client have no TLS version (1.2 or 1.3), cipher suite, or signature scheme in common"
        }
        TlsFailureKind::NoCommonProtocol => {
            "the upstream speaks none of the protocols that were offered to it; http_version chooses them"
        }
        TlsFailureKind::UnknownName => {
            "the upstream has no certificate for the name it was asked for; tls_server_name sets that name"
        }
        TlsFailureKind::NotTls => "the upstream does not speak TLS; is it http?",
        TlsFailureKind::Other => return other(f, error),
    };
    f.write_str(plain)
}

fn validity(f: &mut Formatter<'_>, kind: TlsFailureKind, error: &RustlsError) -> fmt::Result {
    match error {
        RustlsError::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
            write!(f, "the upstream's certificate expired at {}; it is {} now", Utc(*not_after), Utc(*time))
        }
        RustlsError::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
            write!(
                f,
                "the upstream's certificate is not valid before {}; it is {} now, unless this machine's clock is wrong",
                Utc(*not_before),
                Utc(*time)
            )
        }
        _ if kind == TlsFailureKind::Expired => f.write_str("the upstream's certificate has expired"),
        _ => f.write_str("the upstream's certificate is not valid yet"),
    }
}

fn wrong_name(f: &mut Formatter<'_>, error: &RustlsError) -> fmt::Result {
    let RustlsError::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) = error
    else {
        return f.write_str("the upstream's certificate is for another name; tls_server_name sets the name expected");
    };
    write!(f, "the upstream's certificate is not for '{}' but for ", expected.to_str())?;
    if presented.is_empty() {
        f.write_str("no name at all")?;
    }
    for (index, name) in presented.iter().take(NAMES).enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        f.write_char('\'')?;
        // rustls gives them as DnsName("a.b") or IpAddress(1.2.3.4).
        let name = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest.trim_end_matches(')').trim_matches('"'));
        for char in name.chars().take(NAME_CHARS) {
            f.write_char(if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })?;
        }
        f.write_char('\'')?;
    }
    if presented.len() > NAMES {
        write!(f, " and {} more", presented.len() - NAMES)?;
    }
    f.write_str("; tls_server_name sets the name expected")
}

fn unusable(f: &mut Formatter<'_>, error: &RustlsError) -> fmt::Result {
    f.write_str(match error {
        RustlsError::NoCertificatesPresented => "the upstream presented no certificate",
        RustlsError::InvalidCertificate(CertificateError::BadEncoding) => "the upstream's certificate is malformed",
        RustlsError::InvalidCertificate(
            CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => "the upstream's certificate is signed in a way that is not supported",
        // A root that names the host itself, most often one that was made for a test.
        RustlsError::InvalidCertificate(_) => {
            "the upstream's certificate cannot be used for a server, as an authority's own certificate cannot"
        }
        _ => "the upstream's certificate cannot be used",
    })
}

fn refused(f: &mut Formatter<'_>, error: &RustlsError) -> fmt::Result {
    let reason = match error {
        RustlsError::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::NoCertificate) => {
            "it did not get one that it can use"
        }
        RustlsError::AlertReceived(AlertDescription::UnknownCA) => "it does not know the authority that issued it",
        RustlsError::AlertReceived(AlertDescription::CertificateExpired) => "it is expired or not valid yet",
        RustlsError::AlertReceived(AlertDescription::CertificateRevoked) => "it has been revoked",
        RustlsError::AlertReceived(AlertDescription::UnsupportedCertificate) => "it is of a kind that is not supported",
        RustlsError::AlertReceived(AlertDescription::AccessDenied) => "it does not give access",
        RustlsError::AlertReceived(AlertDescription::DecryptError) => "a signature in its chain does not verify",
        _ => "no reason given",
    };
    write!(f, "the upstream refuses our client certificate (tls_identity): {reason}")
}

fn other(f: &mut Formatter<'_>, error: &RustlsError) -> fmt::Result {
    match error {
        RustlsError::AlertReceived(AlertDescription::AccessDenied) => f.write_str(
            "the upstream ended TLS with the alert AccessDenied; it may have no certificate for the name it was asked for \
             (tls_server_name)",
        ),
        RustlsError::AlertReceived(alert) => write!(f, "the upstream ended TLS with the alert {alert:?}"),
        RustlsError::FailedToGetCurrentTime => f.write_str("this machine's clock cannot be read"),
        RustlsError::FailedToGetRandomBytes => f.write_str("this machine has no random numbers"),
        _ => f.write_str("the upstream breaks the rules of TLS, or something between us changes the bytes"),
    }
}

/// A date and time in UTC, to the second.
struct Utc(UnixTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        let (time, days) = (secs % 86_400, secs / 86_400);
        // Days since 0000-03-01, so that a leap day is the last of its year; 146 097 days are 400 years.
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (year, month) = (era * 400 + year + u64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
        let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}
