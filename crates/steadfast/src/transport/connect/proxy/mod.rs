//! Which proxy stands before an upstream, and how a connection goes through it.

mod basic;
mod choice;
mod no_proxy;
#[cfg(feature = "socks")]
mod socks;
mod tunnel;
mod url;
mod via;

use std::collections::HashMap;

use super::PoolConfigError;
pub use url::{InvalidProxy, ProxyUrl};
pub(crate) use via::{Forwarding, Via};

/// Which proxy stands before an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proxy {
    /// The one that the environment names. Its variables are read once, when the pool is made.
    ///
    /// - For an https upstream `https_proxy`, else `HTTPS_PROXY`; for an http one `http_proxy`, else `HTTP_PROXY`; if there
    ///   is none, `all_proxy`, else `ALL_PROXY`. An empty variable is none. Each holds a [`ProxyUrl`].
    /// - Where `REQUEST_METHOD` is set, the process is a CGI script, and anybody can set `HTTP_PROXY` with the header `Proxy`:
    ///   it is not read then. `http_proxy` still is, except on Windows, where the two are one.
    /// - `no_proxy`, else `NO_PROXY`, names the upstreams that are reached directly. Its entries are separated by commas or
    ///   white space:
    ///   - a domain, which covers itself and every name that ends with a dot and it. A dot before or after it changes
    ///     nothing, nor does upper case: `example.com` and `.Example.com.` both cover `example.com` and `api.example.com`,
    ///     and neither covers `notexample.com`.
    ///   - an IP address, or a range such as `10.0.0.0/8` or `fd00::/8`. They cover upstreams that are configured by address;
    ///     no name is resolved for them.
    ///   - either with a port, `example.com:8080` or `[::1]:8080`: it covers that port alone.
    ///   - `*`, which covers everything. There is no other pattern: `*.example.com` covers nothing.
    /// - An upstream on the machine itself is reached directly, whatever the variables say: `localhost`, names that end with
    ///   `.localhost` (RFC 6761 section 6.3), 127.0.0.0/8 and `::1`. Another machine's proxy would look for it at home.
    ///
    /// A variable that counts and names no usable proxy is an error of [`Pool::new`](crate::transport::Pool::new).
    #[default]
    Environment,
    /// None.
    Off,
    /// This one, whatever the environment says; `NO_PROXY` is not asked.
    Url(ProxyUrl),
}

impl Proxy {
    /// What [`Environment`](Self::Environment) would come to for this upstream if these were the process's variables: a URL,
    /// or [`Off`](Self::Off). `host`: a name, or an IP literal (IPv6 without brackets).
    ///
    /// # Errors
    /// [`PoolConfigError::Proxy`]: the variable that counts names no usable proxy.
    ///
    /// ```
    /// use steadfast::transport::Proxy;
    ///
    /// let set = [("HTTPS_PROXY", "http://proxy.internal:3128"), ("NO_PROXY", "internal")];
    /// let chosen = |host| Proxy::from_variables(set, true, host, 443);
    /// assert_eq!(chosen("api.example.com")?, Proxy::Url("http://proxy.internal:3128".parse()?));
    /// assert_eq!(chosen("billing.internal")?, Proxy::Off);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_variables<K: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (K, V)>,
        https: bool,
        host: &str,
        port: u16,
    ) -> Result<Self, PoolConfigError> {
        let variables: HashMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let chosen = choice::choose(|name| variables.get(name).cloned(), https, host, port)?;
        Ok(chosen.map_or(Self::Off, Self::Url))
    }

    /// The proxy for this upstream, if there is one.
    pub(super) fn of_upstream(&self, https: bool, host: &str, port: u16) -> Result<Option<ProxyUrl>, PoolConfigError> {
        match self {
            Self::Environment => choice::choose(choice::of_process, https, host, port),
            Self::Off => Ok(None),
            Self::Url(url) => {
                let invalid = |source| PoolConfigError::Proxy { variable: None, source };
                url.clone().supported().map(Some).map_err(invalid)
            }
        }
    }
}
