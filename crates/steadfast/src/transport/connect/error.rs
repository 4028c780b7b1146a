//! Why a pool cannot be made.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

use super::{InvalidProxy, TlsConfigError};

/// A pool that cannot be made from its configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum PoolConfigError {
    /// TLS cannot be set up: to the upstream, or to a proxy that is itself reached over TLS.
    Tls(TlsConfigError),
    /// The proxy cannot be used.
    Proxy {
        /// The environment's variable that names it; `None`: the configuration.
        variable: Option<&'static str>,
        /// What is wrong with it.
        source: InvalidProxy,
    },
    /// The upstream's host is one that cannot be told to a proxy.
    Host(String),
}

impl PoolConfigError {
    /// The file that cannot be used, where it is a file's fault.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Tls(error) => error.path(),
            Self::Proxy { .. } | Self::Host(_) => None,
        }
    }
}

impl From<TlsConfigError> for PoolConfigError {
    fn from(error: TlsConfigError) -> Self {
        Self::Tls(error)
    }
}

impl fmt::Display for PoolConfigError {
    /// Without the proxy's URL, which may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(error) => error.fmt(f),
            Self::Proxy { variable: Some(variable), source } => write!(f, "{variable} names no usable proxy: {source}"),
            Self::Proxy { variable: None, source } => write!(f, "the proxy cannot be used: {source}"),
            Self::Host(host) => write!(f, "'{}' is not a host name or an IP address", host.escape_debug()),
        }
    }
}

impl StdError for PoolConfigError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // Its text is this one's; what lies behind it comes next.
            Self::Tls(error) => error.source(),
            Self::Proxy { source, .. } => Some(source),
            Self::Host(_) => None,
        }
    }
}
