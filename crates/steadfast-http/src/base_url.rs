//! The address of an upstream.
//!
//! Decides which text is a base URL. The rule is narrow on purpose, and asked when the configuration is read: a
//! client that is built has an address that it can call. An address is an absolute `http` or `https` URL with a
//! host, perhaps a port, and perhaps a path that is a prefix of every request's. Nothing may follow the path, and
//! no user name or password may stand before the host: they would take the place of the caller's own credentials.
//!
//! Invariants: scheme and host are lower case, the host is a name, an IPv4 address, or an IPv6 address in brackets,
//! the port is never 0, and the prefix holds no dot segment and no empty one. No error repeats any of the text,
//! because a mistyped URL may hold a password.
//!
//! Limit: international names must be given in their `xn--` form; an IPv6 zone (`%eth0`) cannot be given.
//!
//! Joining a request's path to it is in [`target`].

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::uri::Authority;

use crate::target::{self, TargetError};

#[cfg(test)]
mod tests;

/// An absolute http(s) URL with a host, and a path that is a prefix of every request's.
///
/// Two of them are equal if they lead to the same place by the same text: scheme and host are compared without case.
///
/// ```
/// use steadfast_http::BaseUrl;
///
/// let base = BaseUrl::parse("http://billing.internal:8010/api/").unwrap();
/// assert_eq!(base.host(), "billing.internal");
/// assert_eq!(base.port(), 8010);
/// assert_eq!(base.join("/invoices", Some("page=2")).unwrap(), "http://billing.internal:8010/api/invoices?page=2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    https: bool,
    authority: Authority,
    /// Without brackets.
    host: String,
    port: u16,
    /// Empty, or `/a/b` without the slash at its end.
    prefix: String,
    /// Whether the prefix was written with a slash at its end; only a request for `""` can tell.
    slash: bool,
}

impl BaseUrl {
    /// Reads a base URL.
    ///
    /// # Errors
    ///
    /// Says what was expected, and never repeats what was given.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        if text.is_empty() {
            return Err(BaseUrlError::Empty);
        }
        let (scheme, rest) = split_scheme(text)?;
        let https = if scheme.eq_ignore_ascii_case("https") {
            true
        } else if scheme.eq_ignore_ascii_case("http") {
            false
        } else {
            return Err(BaseUrlError::OtherScheme);
        };

        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // First of all: whatever else is wrong, the text before an `@` is a secret.
        if authority.contains('@') {
            return Err(BaseUrlError::UserInfo);
        }
        if path.contains('?') {
            return Err(BaseUrlError::Query);
        }
        if path.contains('#') {
            return Err(BaseUrlError::Fragment);
        }

        let authority = authority.to_ascii_lowercase();
        let (host, port) = split_port(&authority)?;
        let host = check_host(host)?.to_owned();
        let port = port.unwrap_or(if https { 443 } else { 80 });
        let authority = Authority::try_from(authority).map_err(|_| BaseUrlError::BadHost)?;
        let prefix = check_prefix(path)?;
        let slash = !prefix.is_empty() && path.ends_with('/');
        Ok(Self { https, authority, host, port, prefix, slash })
    }

    /// Whether requests travel over TLS.
    pub const fn is_https(&self) -> bool {
        self.https
    }

    /// The host in lower case; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 80 or 443 where none is given.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as they belong into `Host` and `:authority`: brackets kept, the port only where it was given
    /// (RFC 9110 7.2, RFC 3986 3.2.2).
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The path that every request's begins with: empty, or `/a/b` without a slash at its end.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the host is this machine by its name or address alone: `localhost` and names below it (RFC 6761 6.3),
    /// 127.0.0.0/8, `::1`. Nothing is resolved.
    pub fn is_loopback(&self) -> bool {
        if let Ok(address) = self.host.parse::<Ipv4Addr>() {
            return address.is_loopback();
        }
        if let Ok(address) = self.host.parse::<Ipv6Addr>() {
            return address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback());
        }
        let name = self.host.strip_suffix('.').unwrap_or(&self.host);
        name == "localhost" || name.ends_with(".localhost")
    }

    /// The path of a request for `""`: the prefix as it was written.
    pub(crate) const fn has_slash(&self) -> bool {
        self.slash
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        let slash = if self.slash { "/" } else { "" };
        write!(f, "{scheme}://{}{}{slash}", self.authority, self.prefix)
    }
}

impl std::str::FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Why a text is no base URL. Its message says what was expected and repeats nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// There is no text.
    Empty,
    /// It does not begin with `http://` or `https://`, nor with another scheme.
    NoScheme,
    /// Its scheme is neither `http` nor `https`.
    OtherScheme,
    /// Nothing stands between the scheme and the path.
    NoHost,
    /// The host is neither a name nor an IPv4 address nor an IPv6 address in brackets.
    BadHost,
    /// The port is not a number between 1 and 65535.
    BadPort,
    /// A user name or password stands before the host.
    UserInfo,
    /// A query follows the path.
    Query,
    /// A fragment follows the path.
    Fragment,
    /// The path has an empty segment.
    EmptySegment,
    /// The path cannot be sent.
    BadPath(TargetError),
}

impl fmt::Display for BaseUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "expected an absolute URL such as http://billing.internal:8010, found no text",
            Self::NoScheme => "expected an absolute URL that begins with http:// or https://",
            Self::OtherScheme => "expected the scheme http or https",
            Self::NoHost => "expected a host after the scheme",
            Self::BadHost => {
                "expected a host that is a name of letters, digits, `-`, `_` and `.`, an IPv4 address, \
                 or an IPv6 address in brackets"
            }
            Self::BadPort => "expected a port between 1 and 65535 after the host",
            Self::UserInfo => {
                "expected no user name or password before the host: credentials travel in the Authorization header"
            }
            Self::Query => "expected nothing after the path, found a query",
            Self::Fragment => "expected nothing after the path, found a fragment",
            Self::EmptySegment => "expected a path without `//`",
            Self::BadPath(why) => return write!(f, "expected a path that can be sent: {why}"),
        })
    }
}

impl std::error::Error for BaseUrlError {}

/// Splits `scheme://rest`. What has no such shape has no scheme, however it looks: `localhost:80` is a host and port.
fn split_scheme(text: &str) -> Result<(&str, &str), BaseUrlError> {
    let (scheme, rest) = text.split_once("://").ok_or(BaseUrlError::NoScheme)?;
    if target::is_scheme(scheme) { Ok((scheme, rest)) } else { Err(BaseUrlError::NoScheme) }
}

/// Splits the port off; a colon within brackets is part of the address.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), BaseUrlError> {
    let bracket = match authority.rfind(']') {
        Some(at) => at + 1,
        None if authority.starts_with('[') => return Err(BaseUrlError::BadHost),
        None => 0,
    };
    let Some(colon) = authority[bracket..].find(':') else {
        return Ok((authority, None));
    };
    let (host, port) = (&authority[..bracket + colon], &authority[bracket + colon + 1..]);
    if port.contains(':') {
        // Most likely an IPv6 address without its brackets.
        return Err(BaseUrlError::BadHost);
    }
    if host.is_empty() {
        return Err(BaseUrlError::NoHost);
    }
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        // A leading zero would travel in `Host`, and it is a mistake more often than not.
        Ok(port) if digits && !authority[bracket + colon..].starts_with(":0") => Ok((host, Some(port))),
        _ => Err(BaseUrlError::BadPort),
    }
}

/// Checks the host and takes the brackets of an IPv6 address off.
fn check_host(host: &str) -> Result<&str, BaseUrlError> {
    if host.is_empty() {
        return Err(BaseUrlError::NoHost);
    }
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.strip_suffix(']').ok_or(BaseUrlError::BadHost)?;
        return if address.parse::<Ipv6Addr>().is_ok() { Ok(address) } else { Err(BaseUrlError::BadHost) };
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let label = |label: &str| !label.is_empty() && label.len() <= 63 && label.bytes().all(known);
    // A name that ends in a number is an address that some resolvers read in their own way (`127.1`, `010.0.0.1`).
    let number = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let valid = name.len() <= 253 && name.split('.').all(label) && (!number || name.parse::<Ipv4Addr>().is_ok());
    if valid { Ok(host) } else { Err(BaseUrlError::BadHost) }
}

/// The path as it is sent, without the slash at its end.
fn check_prefix(path: &str) -> Result<String, BaseUrlError> {
    if path.contains("//") {
        return Err(BaseUrlError::EmptySegment);
    }
    if path.len() > target::MAX_LEN {
        return Err(BaseUrlError::BadPath(TargetError::TooLong));
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut prefix = String::with_capacity(path.len());
    target::push_path(&mut prefix, path).map_err(BaseUrlError::BadPath)?;
    Ok(prefix)
}
