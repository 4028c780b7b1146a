//! The URL of a proxy: what is accepted, and what of it may be seen.
//!
//! The rule is that of RFC 3986 for an authority, with three habits of the proxy variables: a text without a scheme is
//! an `http` proxy, a slash may follow, and the last `@` ends the user-info. Whatever is refused, the error quotes
//! nothing that could be part of a password.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// A proxy's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    /// HTTP over TLS: the way to the proxy is encrypted too.
    Https,
    /// SOCKS5 (RFC 1928) with the upstream's address, found here.
    Socks5,
    /// SOCKS5 with the upstream's name, for the proxy to resolve.
    Socks5h,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Socks5, Self::Socks5h];

    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 | Self::Socks5h => 1080,
        }
    }

    pub(crate) const fn is_socks(self) -> bool {
        matches!(self, Self::Socks5 | Self::Socks5h)
    }
}

/// What a proxy is told about us.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// The URL of a proxy: `scheme://user:password@host:port`.
///
/// The scheme is `http` (the default), `https`, `socks5` or `socks5h`; the SOCKS ones need the cargo feature `socks`. The
/// port is 80, 443, or 1080 unless it is given. User and password are optional, and percent-encoded where they hold
/// anything but letters, digits and `-._~` (RFC 3986 section 2.1). Neither `Display` nor `Debug` shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    scheme: Scheme,
    /// IPv6 without brackets.
    host: String,
    port: u16,
    credentials: Option<Credentials>,
}

impl ProxyUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`InvalidProxy`], whose text never quotes the credentials.
    pub fn parse(url: &str) -> Result<Self, InvalidProxy> {
        let url = url.trim();
        if url.is_empty() {
            return Err(InvalidProxy(What::Empty));
        }
        if url.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(InvalidProxy(What::Character));
        }
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (read_scheme(scheme)?, rest),
            None => (Scheme::Http, url),
        };
        let (authority, after) = match rest.find(['/', '?', '#']) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        if !matches!(after, "" | "/") {
            return Err(InvalidProxy(What::After));
        }
        let (credentials, place) = match authority.rsplit_once('@') {
            Some((user_info, place)) => (read_credentials(scheme, user_info)?, place),
            None => (None, authority),
        };
        let (host, port) = read_place(place)?;
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.default_port()), credentials })
    }

    /// The same, if this build can use it.
    pub(super) fn supported(self) -> Result<Self, InvalidProxy> {
        let is_missing = self.scheme.is_socks() && !cfg!(feature = "socks");
        if is_missing { Err(InvalidProxy(What::SocksFeature)) } else { Ok(self) }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host; IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

impl FromStr for ProxyUrl {
    type Err = InvalidProxy;

    fn from_str(url: &str) -> Result<Self, InvalidProxy> {
        Self::parse(url)
    }
}

impl fmt::Display for ProxyUrl {
    /// With `***` in the place of the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = if self.credentials.is_some() { "***@" } else { "" };
        write!(f, "{}://{credentials}{}", self.scheme.name(), authority(&self.host, self.port))
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// `host:port`, with brackets where the host needs them.
pub(crate) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn read_scheme(text: &str) -> Result<Scheme, InvalidProxy> {
    let known = Scheme::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(text));
    known.ok_or(InvalidProxy(What::Scheme))
}

/// An empty user-info is none.
fn read_credentials(scheme: Scheme, user_info: &str) -> Result<Option<Credentials>, InvalidProxy> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let decoded = |text| percent_encoding::percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
    let (Ok(user), Ok(password)) = (decoded(user), decoded(password)) else {
        return Err(InvalidProxy(What::Encoding));
    };
    if user.is_empty() && password.is_empty() {
        return Ok(None);
    }
    if user.chars().chain(password.chars()).any(char::is_control) {
        return Err(InvalidProxy(What::Control));
    }
    if scheme.is_socks() {
        // RFC 1929: one byte for each length, and neither is zero.
        if [&user, &password].iter().any(|text| !(1..=255).contains(&text.len())) {
            return Err(InvalidProxy(What::SocksLength));
        }
    } else if user.contains(':') {
        // RFC 7617 section 2: the first colon ends the user.
        return Err(InvalidProxy(What::Colon));
    }
    Ok(Some(Credentials { user, password }))
}

/// Host and port; an empty port is none (RFC 3986 section 3.2.3).
fn read_place(place: &str) -> Result<(String, Option<u16>), InvalidProxy> {
    let (host, port) = if let Some(rest) = place.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or(InvalidProxy(What::Host))?;
        let host: Ipv6Addr = host.parse().map_err(|_| InvalidProxy(What::Host))?;
        let port = if after.is_empty() { Some("") } else { after.strip_prefix(':') };
        (host.to_string(), port.ok_or(InvalidProxy(What::Port))?)
    } else {
        let (host, port) = place.split_once(':').unwrap_or((place, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        // 255 is the longest name there can be (RFC 1035 section 2.3.4).
        if !(1..=255).contains(&host.len()) || !host.bytes().all(is_name) {
            return Err(InvalidProxy(What::Host));
        }
        (host.to_ascii_lowercase(), port)
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    // `parse` alone would take a sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok((host, Some(port))),
        _ => Err(InvalidProxy(What::Port)),
    }
}

/// A text that is no proxy's URL, or one of a kind that this build cannot use. The message says what was expected, and
/// quotes nothing, as a part of a password can stand anywhere in a text that is not well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidProxy(pub(super) What);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Empty,
    Character,
    Scheme,
    After,
    Encoding,
    Control,
    Colon,
    SocksLength,
    Host,
    Port,
    /// Without the feature that it needs.
    SocksFeature,
}

impl fmt::Display for InvalidProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            What::Empty => "it is empty; expected the URL of a proxy, such as http://proxy.internal:3128",
            What::Character => {
                "it holds a character that a URL cannot; expected percent-encoding, such as %20 for a space"
            }
            What::Scheme => "its scheme is not known; expected http, https, socks5 or socks5h",
            What::After => {
                "something follows the host and port; expected scheme://user:password@host:port, and in a password %2F for \
                 '/', %3F for '?', %23 for '#'"
            }
            What::Encoding => "its user or password is not UTF-8 once the percent-encoding is undone",
            What::Control => "its user or password holds a control character",
            What::Colon => "its user holds a colon, which HTTP's Basic credentials cannot carry (RFC 7617)",
            What::SocksLength => "its user or password cannot be sent: SOCKS5 takes 1 to 255 bytes for each (RFC 1929)",
            What::Host => "its host is not a name or an IP address; expected host:port, with IPv6 as in [::1]:3128",
            What::Port => "its port is not a number from 1 to 65535",
            What::SocksFeature => "it is a SOCKS5 proxy; expected a build with the cargo feature `socks`, or an http proxy",
        })
    }
}

impl std::error::Error for InvalidProxy {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> (Scheme, String, u16, Option<(String, String)>) {
        let url = ProxyUrl::parse(url).unwrap();
        (url.scheme, url.host, url.port, url.credentials.map(|credentials| (credentials.user, credentials.password)))
    }

    fn pair(user: &str, password: &str) -> Option<(String, String)> {
        Some((user.to_owned(), password.to_owned()))
    }

    #[test]
    fn a_url_has_a_scheme_a_host_and_a_port_or_their_defaults() {
        for (url, scheme, host, port) in [
            ("http://proxy:3128", Scheme::Http, "proxy", 3128),
            ("http://proxy", Scheme::Http, "proxy", 80),
            ("HTTPS://Proxy.Internal/", Scheme::Https, "proxy.internal", 443),
            ("socks5://localhost", Scheme::Socks5, "localhost", 1080),
            ("socks5h://10.0.0.1:9050", Scheme::Socks5h, "10.0.0.1", 9050),
            ("proxy.internal:8080", Scheme::Http, "proxy.internal", 8080),
            ("proxy_1", Scheme::Http, "proxy_1", 80),
            ("http://[::1]:8080/", Scheme::Http, "::1", 8080),
            ("http://[0:0::1]", Scheme::Http, "::1", 80),
            ("  http://proxy:\n", Scheme::Http, "proxy", 80),
        ] {
            assert_eq!(read(url), (scheme, host.to_owned(), port, None), "{url}");
        }
    }

    #[test]
    fn credentials_are_percent_decoded() {
        for (url, expected) in [
            ("http://user:pass@proxy", pair("user", "pass")),
            ("user:pass@proxy:1", pair("user", "pass")),
            ("http://user@proxy", pair("user", "")),
            ("http://:pass@proxy", pair("", "pass")),
            ("http://a%40b:p%3A%2f%C3%A9%25@proxy", pair("a@b", "p:/\u{e9}%")),
            ("http://user:p@ss:w@proxy", pair("user", "p@ss:w")),
            ("http://@proxy", None),
            ("http://:@proxy", None),
            ("socks5://a%3Ab:c@proxy", pair("a:b", "c")),
        ] {
            assert_eq!(read(url).3, expected, "{url}");
        }
    }

    /// 8.6: what a refusal says, and that it quotes nothing.
    #[test]
    fn c8_6_a_refusal_says_what_was_expected_and_never_quotes_a_secret() {
        let long = format!("socks5://s3cret:{}@proxy", "x".repeat(256));
        for (url, expected) in [
            ("", "such as http://proxy.internal:3128"),
            ("  ", "is empty"),
            ("ftp://s3cret:s3cret@proxy", "expected http, https, socks5 or socks5h"),
            ("socks4://s3cret@proxy", "expected http, https"),
            ("s3cret:s3cret://proxy", "scheme"),
            ("http://s3cret:s3/cret@proxy:80", "%2F"),
            ("http://proxy:80/s3cret", "follows the host"),
            ("http://proxy?s3cret", "follows the host"),
            ("http://s3cret:#s3cret@proxy", "follows the host"),
            ("http://s3cret: s3cret@proxy", "percent-encoding"),
            ("http://s3cret:\u{e9}@proxy", "percent-encoding"),
            ("http://s3cret:%ff@proxy", "not UTF-8"),
            ("http://s3cret:%0d%0a@proxy", "control character"),
            ("http://s3cret%3a:x@proxy", "colon"),
            ("socks5://s3cret@proxy", "1 to 255"),
            (&long, "1 to 255"),
            ("http://s3cret@", "host"),
            ("http://", "host"),
            ("http://pro%78y", "host"),
            ("http://[s3cret", "host"),
            ("http://[fe80::1%25eth0]", "host"),
            ("http://s3cret:x:y", "port"),
            ("http://proxy:s3cret", "port"),
            ("http://proxy:0", "port"),
            ("http://proxy:+80", "port"),
            ("http://proxy:65536", "port"),
            ("http://[::1]s3cret", "port"),
            ("http://::1", "host"),
        ] {
            let error = ProxyUrl::parse(url).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected), "{url}: {text}");
            assert!(!format!("{text}{error:?}").contains("s3"), "{url}: {text}");
        }
    }

    /// 8.6, 8.7
    #[test]
    fn c8_7_credentials_are_shown_nowhere() {
        let url: ProxyUrl = "http://s3user:s3cret@proxy".parse().unwrap();
        assert_eq!(
            (url.to_string(), format!("{url:?}")),
            ("http://***@proxy:80".to_owned(), "ProxyUrl(http://***@proxy:80)".to_owned())
        );
        let config = format!("{:?}", super::super::Proxy::Url(url.clone()));
        assert_eq!(config, "Url(ProxyUrl(http://***@proxy:80))");
        assert_eq!(ProxyUrl::parse("https://[::1]").unwrap().to_string(), "https://[::1]:443");
        assert_ne!(url, ProxyUrl::parse("http://s3user:other@proxy").unwrap());
    }
}
