//! Which proxy stands before an upstream.

use std::fmt;

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

/// The URL of a proxy: `http`, `https`, `socks5` or `socks5h`, a host, a port, and credentials where it asks for them.
///
/// Neither its `Display` nor its `Debug` shows the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    url: String,
}

impl ProxyUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`InvalidProxy`], whose text never quotes the credentials.
    pub fn parse(url: &str) -> Result<Self, InvalidProxy> {
        if url.is_empty() { Err(InvalidProxy) } else { Ok(Self { url: url.to_owned() }) }
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.url.len())
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// A text that is no proxy's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidProxy;

impl fmt::Display for InvalidProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected the URL of a proxy, such as http://proxy.internal:3128 or socks5://localhost:1080")
    }
}

impl std::error::Error for InvalidProxy {}
