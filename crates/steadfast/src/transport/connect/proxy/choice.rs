//! Which proxy the environment names for one upstream.
//!
//! The variables come in through a function, so that no test touches those of the process.

use std::net::IpAddr;

use super::no_proxy;
use super::url::ProxyUrl;
use crate::transport::connect::PoolConfigError;

/// The proxy for this upstream, if there is one. `host`: IPv6 without brackets.
///
/// Only what decides is read: a faulty variable for another scheme, or for an upstream that `NO_PROXY` covers, is none of
/// its business.
pub(super) fn choose(
    variable: impl Fn(&str) -> Option<String>,
    https: bool,
    host: &str,
    port: u16,
) -> Result<Option<ProxyUrl>, PoolConfigError> {
    if is_loopback(host) {
        return Ok(None);
    }
    let set = |names: &[&'static str]| {
        names.iter().find_map(|name| Some((*name, variable(name).filter(|value| !value.trim().is_empty())?)))
    };
    let own: &[&str] = match (https, variable("REQUEST_METHOD").is_some()) {
        (true, _) => &["https_proxy", "HTTPS_PROXY"],
        (false, false) => &["http_proxy", "HTTP_PROXY"],
        // A CGI script has each header of its request in a variable `HTTP_…`, and Windows does not tell the case.
        (false, true) if cfg!(windows) => &[],
        (false, true) => &["http_proxy"],
    };
    let Some((name, url)) = set(own).or_else(|| set(&["all_proxy", "ALL_PROXY"])) else { return Ok(None) };
    if set(&["no_proxy", "NO_PROXY"]).is_some_and(|(_, list)| no_proxy::covers(&list, host, port)) {
        return Ok(None);
    }
    let invalid = |source| PoolConfigError::Proxy { variable: Some(name), source };
    ProxyUrl::parse(&url).and_then(ProxyUrl::supported).map(Some).map_err(invalid)
}

/// Whether it is the machine itself: no other machine's proxy reaches that.
fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// A variable of the process. What is not UTF-8 becomes what no URL and no name holds.
pub(super) fn of_process(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], https: bool, host: &str) -> Option<String> {
        try_choose(variables, https, host).unwrap().map(|url| url.to_string())
    }

    fn try_choose(variables: &[(&str, &str)], https: bool, host: &str) -> Result<Option<ProxyUrl>, PoolConfigError> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        choose(variable, https, host, if https { 443 } else { 80 })
    }

    /// 8.7
    #[test]
    fn c8_7_each_scheme_has_its_variable_and_all_proxy_stands_in() {
        let all = [("HTTP_PROXY", "http://plain"), ("HTTPS_PROXY", "http://secure"), ("ALL_PROXY", "http://all")];
        assert_eq!(chosen(&all, false, "a.test").unwrap(), "http://plain:80");
        assert_eq!(chosen(&all, true, "a.test").unwrap(), "http://secure:80");
        assert_eq!(chosen(&all[2..], true, "a.test").unwrap(), "http://all:80");
        assert_eq!(chosen(&all[2..], false, "a.test").unwrap(), "http://all:80");
        assert_eq!(chosen(&all[..1], true, "a.test"), None);
        assert_eq!(chosen(&[("all_proxy", "socks5://here")], true, "a.test").unwrap(), "socks5://here:1080");
        assert_eq!(chosen(&[], true, "a.test"), None);
    }

    #[test]
    fn lower_case_wins_and_an_empty_variable_is_none() {
        for (https, lower, upper) in [(false, "http_proxy", "HTTP_PROXY"), (true, "https_proxy", "HTTPS_PROXY")] {
            let both = [(upper, "http://upper"), (lower, "http://lower")];
            assert_eq!(chosen(&both, https, "a.test").unwrap(), "http://lower:80");
            let emptied = [(upper, "http://upper"), (lower, " ")];
            assert_eq!(chosen(&emptied, https, "a.test").unwrap(), "http://upper:80");
            assert_eq!(chosen(&[(upper, "")], https, "a.test"), None);
        }
        let both = [("http_proxy", "http://p"), ("NO_PROXY", "a.test"), ("no_proxy", "b.test")];
        assert!(chosen(&both, false, "a.test").is_some());
        assert_eq!(chosen(&both, false, "b.test"), None);
    }

    /// A118: a header `Proxy: …` reaches a CGI script as `HTTP_PROXY`.
    #[test]
    #[cfg(not(windows))]
    fn a118_a_request_header_cannot_name_the_proxy() {
        let method = ("REQUEST_METHOD", "GET");
        assert_eq!(chosen(&[method, ("HTTP_PROXY", "http://evil")], false, "a.test"), None);
        let lower = [method, ("HTTP_PROXY", "http://evil"), ("http_proxy", "http://good")];
        assert_eq!(chosen(&lower, false, "a.test").unwrap(), "http://good:80");
        let all = [method, ("HTTP_PROXY", "http://evil"), ("ALL_PROXY", "http://all")];
        assert_eq!(chosen(&all, false, "a.test").unwrap(), "http://all:80");
        assert_eq!(chosen(&[method, ("HTTPS_PROXY", "http://good")], true, "a.test").unwrap(), "http://good:80");
    }

    #[test]
    fn the_machine_itself_is_reached_directly() {
        let proxy = ("ALL_PROXY", "http://p");
        for host in ["localhost", "LocalHost.", "api.localhost", "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(chosen(&[proxy], false, host), None, "{host}");
        }
        for host in ["localhost.test", "notlocalhost", "128.0.0.1", "::2", "10.0.0.1"] {
            assert!(chosen(&[proxy], false, host).is_some(), "{host}");
        }
        // Not even a faulty variable matters there.
        assert_eq!(chosen(&[("HTTP_PROXY", "ftp://p")], false, "localhost"), None);
    }

    /// 8.6: the variable is named, and nothing of its value.
    #[test]
    fn c8_6_a_faulty_variable_is_named_where_it_counts() {
        let faulty = ("HTTPS_PROXY", "http://s3user:s3cret@:x");
        let text = try_choose(&[faulty], true, "a.test").unwrap_err().to_string();
        assert!(text.starts_with("HTTPS_PROXY ") && text.contains("host") && !text.contains("s3"), "{text}");
        assert_eq!(chosen(&[faulty], false, "a.test"), None);
        assert_eq!(chosen(&[faulty, ("NO_PROXY", "a.test")], true, "a.test"), None);
    }
}
