//! Why a client cannot be made, or be given other settings.

use std::error::Error as StdError;
use std::fmt;

use steadfast_http::headers::InvalidHeader;

use crate::config::{Origin, Place, Problem, Problems};
use crate::transport::{PoolConfigError, TlsConfigError};

/// A client that cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// Settings outside their bounds, or set over those of a configuration: all of them at once.
    Settings(Problems),
    /// The roots of trust cannot be loaded.
    Tls {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with them.
        source: TlsConfigError,
    },
    /// The proxy cannot be used.
    Proxy {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with it.
        source: PoolConfigError,
    },
    /// The settings are those of another upstream.
    Name {
        /// The upstream's name.
        upstream: String,
        /// The name in the settings.
        found: String,
    },
    /// The clients were closed.
    Closed,
    /// The configured headers are more than a request can carry.
    Headers {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with them.
        source: InvalidHeader,
    },
}

impl BuildError {
    /// Keys that were set on a builder whose settings come from a configuration.
    pub(super) fn of_fixed(upstream: &str, keys: Vec<&'static str>) -> Self {
        let problem = |key| {
            let message = format!("the settings of upstream '{upstream}' come from a configuration, which fixes it");
            Problem::new(Place::At(Origin::Builder), key, message)
        };
        Self::Settings(keys.into_iter().map(problem).collect())
    }

    pub(super) fn of_pool(upstream: &str, error: PoolConfigError) -> Self {
        let upstream = upstream.to_owned();
        match error {
            PoolConfigError::Tls(source) => Self::Tls { upstream, source },
            source => Self::Proxy { upstream, source },
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(problems) => problems.fmt(f),
            Self::Tls { upstream, source } => write!(f, "upstream '{upstream}': {source}"),
            Self::Proxy { upstream, source } => write!(f, "upstream '{upstream}': {source}"),
            Self::Name { upstream, found } => {
                write!(f, "upstream '{upstream}': the settings are those of upstream '{found}'")
            }
            Self::Closed => f.write_str("the clients are closed"),
            Self::Headers { upstream, source } => write!(f, "upstream '{upstream}': headers: {source}"),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Settings(_) | Self::Name { .. } | Self::Closed => None,
            Self::Tls { source, .. } => Some(source),
            Self::Proxy { source, .. } => Some(source),
            Self::Headers { source, .. } => Some(source),
        }
    }
}
