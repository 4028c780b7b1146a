//! Which proxy stands before an upstream.

mod url;

pub use url::{InvalidProxy, ProxyUrl};

/// Which proxy stands before an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proxy {
    /// The one that the environment names for it: `HTTPS_PROXY` or `HTTP_PROXY`, else `ALL_PROXY`, unless `NO_PROXY` covers
    /// its host.
    #[default]
    Environment,
    /// None.
    Off,
    /// This one.
    Url(ProxyUrl),
}
