//! What spans and metrics say of an HTTP request: the attributes of the conventions.
//!
//! Decides what is shown, and so what is not: no header, no path, no query, no user-info. `url.full`, which the conventions
//! want and contract 8.5 does not, is there where `record_url` is on, without user-info and without the query's values.
//! Methods that the conventions do not know are `_OTHER`, so that a metric has few series whatever is called.
//!
//! Limits: text is cut at 256 bytes, `url.full` at 1024.

use std::env;
use std::fmt::Write as _;
use std::sync::LazyLock;

use http::header::HOST;
use http::uri::Authority;
use http::{Method, Uri, Version};
use opentelemetry::KeyValue;

use super::super::Shown;
use crate::config::Settings;
use crate::report::Outcome;

/// The longest text of an attribute, in bytes.
pub(super) const LONGEST: usize = 256;
/// The longest `url.full`.
const LONGEST_URL: usize = 1024;
/// What stands in the place of a secret.
const REDACTED: &str = "REDACTED";

/// The methods that the conventions know: those of RFC 9110, and PATCH and QUERY.
const METHODS: &str = "CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,QUERY,TRACE";
/// A service can name others, by the conventions' own variable; then only those are known.
static KNOWN_METHODS: LazyLock<String> = LazyLock::new(|| {
    env::var("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS").ok().filter(|list| !list.is_empty()).unwrap_or(METHODS.into())
});

/// A request as the conventions see it.
pub(super) struct Request {
    /// The method, where it is a known one.
    method: Option<String>,
    original: Option<String>,
    address: String,
    port: u16,
    url: Option<String>,
}

impl Request {
    pub(super) fn new(shown: &Shown<'_>) -> Self {
        let (known, original) = method(shown.method, &KNOWN_METHODS);
        let (address, port) = server(shown);
        let url = shown.settings.record_url.then(|| url(shown.uri, shown.settings, &address, port));
        Self { method: known, original, address: cut(&address, LONGEST).to_owned(), port, url }
    }

    /// The name of a span of it: never with a path.
    pub(super) fn name(&self) -> String {
        self.method.as_deref().unwrap_or("HTTP").to_owned()
    }

    /// What a span says from its beginning, when samplers see it.
    pub(super) fn attributes(&self) -> Vec<KeyValue> {
        let mut attributes = self.labels();
        attributes
            .extend(self.original.clone().map(|original| KeyValue::new("http.request.method_original", original)));
        attributes.extend(self.url.clone().map(|url| KeyValue::new("url.full", url)));
        attributes
    }

    /// What the histogram tells requests apart by.
    pub(super) fn labels(&self) -> Vec<KeyValue> {
        vec![
            KeyValue::new("http.request.method", self.method.clone().unwrap_or_else(|| "_OTHER".to_owned())),
            KeyValue::new("server.address", self.address.clone()),
            KeyValue::new("server.port", i64::from(self.port)),
        ]
    }
}

/// The method where it is known, and what it was where it is not.
fn method(method: &Method, known: &str) -> (Option<String>, Option<String>) {
    let method = method.as_str();
    if known.split(',').any(|known| known.trim() == method) {
        return (Some(method.to_owned()), None);
    }
    (None, Some(cut(method, LONGEST).to_owned()))
}

/// Host and port: of the URL, else of `Host`, else of the configuration, which is what a request in a layer may lack.
fn server(shown: &Shown<'_>) -> (String, u16) {
    let base = &shown.settings.base_url;
    let of_host = || shown.headers.get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let Some(authority) = shown.uri.authority().cloned().or_else(of_host) else {
        return (base.host().to_owned(), base.port());
    };
    let is_https = shown.uri.scheme_str().map_or(base.is_https(), |scheme| scheme.eq_ignore_ascii_case("https"));
    let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    (authority.host().trim_matches(['[', ']']).to_owned(), port)
}

/// The URL, without what may be a secret in it.
fn url(uri: &Uri, settings: &Settings, address: &str, port: u16) -> String {
    let scheme = uri.scheme_str().unwrap_or(if settings.base_url.is_https() { "https" } else { "http" });
    let brackets = if address.contains(':') { ("[", "]") } else { ("", "") };
    let mut url = format!("{scheme}://{}{address}{}", brackets.0, brackets.1);
    if port != if scheme == "https" { 443 } else { 80 } {
        // Cannot fail: it is a string.
        let _ = write!(url, ":{port}");
    }
    url.push_str(uri.path());
    for (index, pair) in uri.query().into_iter().flat_map(|query| query.split('&')).enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        // `c2VjcmV0=` is no name, but padded base64.
        if let Some((name, value)) = pair.split_once('=')
            && !value.trim_matches('=').is_empty()
        {
            url.push_str(name);
            url.push('=');
        }
        // What has no name may be a value as well.
        url.push_str(if pair.is_empty() { "" } else { REDACTED });
    }
    cut(&url, LONGEST_URL).to_owned()
}

/// The text, or so much of its beginning as whole characters allow.
pub(super) fn cut(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// What an outcome adds to span and histogram, and whether it is an error (status 400 and above, or no response).
pub(super) fn of_outcome(outcome: Outcome, into: &mut Vec<KeyValue>) -> bool {
    if let Outcome::Status(status) = outcome {
        into.push(KeyValue::new("http.response.status_code", i64::from(status)));
    }
    let error = error_type(outcome);
    let is_error = error.is_some();
    into.extend(error.map(|error| KeyValue::new("error.type", error)));
    is_error
}

/// The word for what went wrong, from a closed list: a status in digits, or the fault's name; `_OTHER` is the conventions'
/// word for an error that says no more, as an operation's own.
pub(super) fn error_type(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Status(status) if status < 400 => None,
        Outcome::Error => Some("_OTHER".to_owned()),
        Outcome::Status(_) | Outcome::Fault(_) => Some(outcome.name().into_owned()),
    }
}

/// The version of the protocol that was spoken.
pub(super) fn version(version: Version) -> Option<KeyValue> {
    let version = match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_11 => "1.1",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => return None,
    };
    Some(KeyValue::new("network.protocol.version", version))
}

#[cfg(test)]
mod tests;
