//! The headers of a call, put together.
//!
//! Decides which of several sources a header comes from. Weakest first (contract 8.1): the configured headers, the
//! request id, the forwarded bearer, the idempotency key, the trace, and the call's own headers. A header is
//! replaced, never doubled; a name that one source gives twice is sent twice.
//!
//! What belongs to one connection and not to the message is dropped, from the configured and from the call's own
//! headers: the hop-by-hop names, and those that `Connection` names in the same source (RFC 9110 7.6.1). So is
//! `Content-Length`, which follows from the body, and a `Host` of the call's own, since a request always goes to the
//! configured upstream. They are dropped and not refused, because they come with headers copied from a request being
//! served; [`CallHeaders::dropped`] names them. A configured header is nobody's copy, so there [`configured`]
//! refuses them.
//!
//! Values of headers that carry secrets are marked sensitive: their `Debug` is masked, and HTTP/2 does not index
//! them. The tracing pair is one thing: it never mixes one source's `traceparent` with another's `tracestate`,
//! unless the call's own headers ask for just that.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::repeat::IDEMPOTENCY_KEY;
use crate::time_left;
use crate::trace::{TRACEPARENT, TRACESTATE, TraceContext};

#[cfg(test)]
mod tests;

/// `X-Request-ID`: the id under which everything that belongs to one request is found.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// More header lines than any server takes, and fewer than make a [`HeaderMap`] panic (2^15).
const MAX_LINES: usize = 10_000;

/// The longest request id that is forwarded.
const MAX_REQUEST_ID: usize = 128;

/// What a call's headers are made from, weakest first. It has no `Debug`, as its secrets are not marked yet.
#[derive(Clone, Copy, Default)]
pub struct Layers<'a> {
    /// `User-Agent` where nothing else sets one.
    pub user_agent: Option<&'a HeaderValue>,
    /// The upstream's configured headers.
    pub configured: Option<&'a HeaderMap>,
    /// The body's `Content-Type`.
    pub content_type: Option<&'a HeaderValue>,
    /// `X-Request-ID`, as [`request_id`] lets it through.
    pub request_id: Option<&'a HeaderValue>,
    /// `Authorization` of the request being served, where it is to be forwarded.
    pub bearer: Option<&'a HeaderValue>,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<&'a HeaderValue>,
    /// The header that tells the upstream how much time is left. Its value is set for each attempt.
    pub deadline_header: Option<&'a HeaderName>,
    /// The headers that the call itself sets.
    pub call: Option<&'a HeaderMap>,
    /// Whether they are those of a request that goes where it would have gone without us, as in a stack of layers: then
    /// nothing of them is dropped, `Host`, `Content-Length` and what belongs to a connection included.
    pub passed_on: bool,
}

/// The headers of a call: the same on each attempt, but for the span and the time that is left.
#[derive(Clone, Debug)]
pub struct CallHeaders {
    headers: HeaderMap,
    dropped: Vec<HeaderName>,
    own_traceparent: bool,
    own_tracestate: bool,
    deadline_header: Option<HeaderName>,
}

/// Puts the headers of a call together.
///
/// # Errors
///
/// [`InvalidHeader::TooMany`], if the sources have more than 10 000 lines together.
pub fn compose(layers: &Layers<'_>) -> Result<CallHeaders, InvalidHeader> {
    CallHeaders::of_upstream(layers)?.with(layers)
}

impl CallHeaders {
    /// What every call to an upstream has: its user agent, its configured headers, its deadline header.
    ///
    /// # Errors
    ///
    /// [`InvalidHeader::TooMany`], if there are more than 10 000 lines.
    pub fn of_upstream(layers: &Layers<'_>) -> Result<Self, InvalidHeader> {
        let mut all = Self {
            headers: HeaderMap::new(),
            dropped: Vec::new(),
            own_traceparent: false,
            own_tracestate: false,
            deadline_header: layers.deadline_header.cloned(),
        };
        all.set(USER_AGENT, layers.user_agent);
        if let Some(configured) = layers.configured {
            all.merge(configured, Origin::Configured)?;
        }
        Ok(all)
    }

    /// The headers of one call: these, and over them what the call adds. Of `layers` only that is looked at.
    ///
    /// # Errors
    ///
    /// [`InvalidHeader::TooMany`], if there are more than 10 000 lines together.
    pub fn with(&self, layers: &Layers<'_>) -> Result<Self, InvalidHeader> {
        let mut all = self.clone();
        all.set(CONTENT_TYPE, layers.content_type);
        all.set(X_REQUEST_ID, layers.request_id);
        all.set(AUTHORIZATION, layers.bearer);
        all.set(IDEMPOTENCY_KEY, layers.idempotency_key);
        if let Some(call) = layers.call {
            let origin = if layers.passed_on { Origin::PassedOn } else { Origin::Call };
            let own = all.merge(call, origin)?;
            all.own_traceparent = own.contains(&&TRACEPARENT);
            all.own_tracestate = own.contains(&&TRACESTATE);
            all.deadline_header = all.deadline_header.filter(|name| !own.contains(&name));
        }
        Ok(all)
    }

    fn set(&mut self, name: HeaderName, value: Option<&HeaderValue>) {
        if let Some(value) = value {
            let value = marked(&name, value);
            self.headers.insert(name, value);
        }
    }

    /// Puts one source over what weaker ones gave; returns the names that it set.
    fn merge<'a>(&mut self, source: &'a HeaderMap, origin: Origin) -> Result<Vec<&'a HeaderName>, InvalidHeader> {
        if self.headers.len() + source.len() > MAX_LINES {
            return Err(InvalidHeader::TooMany);
        }
        let named = named_by_connection(source);
        let of_connection = |name: &&HeaderName| {
            let client = **name == CONTENT_LENGTH || (origin == Origin::Call && **name == HOST);
            origin != Origin::PassedOn && (client || is_hop_by_hop(name) || named.contains(*name))
        };
        let (drop, keep): (Vec<_>, Vec<_>) = source.keys().partition(of_connection);
        self.dropped.extend(drop.into_iter().cloned());
        // A traceparent without a tracestate must not meet the one of a weaker source.
        if keep.contains(&&TRACEPARENT) {
            self.headers.remove(TRACESTATE);
        }
        for name in &keep {
            self.headers.remove(*name);
            for value in source.get_all(*name) {
                self.headers.append(*name, marked(name, value));
            }
        }
        Ok(keep)
    }

    /// All but what changes with the attempt. The method and these decide whether the request may be repeated.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The names that were given and are not sent, because they belong to one connection or to the client. A name
    /// that two sources gave is here twice.
    pub fn dropped(&self) -> &[HeaderName] {
        &self.dropped
    }

    /// The headers of one attempt: with its span, if there is a trace, and with the time that is left to it, if the
    /// upstream is to be told. Headers of the call's own stay as they are.
    pub fn for_attempt(&self, trace: Option<&TraceContext>, time_left: Duration) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(trace) = trace.filter(|_| !self.own_traceparent) {
            headers.insert(TRACEPARENT, trace.traceparent());
            if !self.own_tracestate {
                match trace.state() {
                    Some(state) => headers.insert(TRACESTATE, state.clone()),
                    None => headers.remove(TRACESTATE),
                };
            }
        }
        if let Some(name) = &self.deadline_header {
            headers.insert(name, time_left::write(name, time_left));
        }
        headers
    }
}

/// Where headers come from, which decides what of them is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Configured,
    Call,
    PassedOn,
}

/// A value that says itself whether it is a secret.
fn marked(name: &HeaderName, value: &HeaderValue) -> HeaderValue {
    let mut value = value.clone();
    if is_secret(name) {
        value.set_sensitive(true);
    }
    value
}

/// The names that `Connection` lists; what is no name is no header either.
fn named_by_connection(headers: &HeaderMap) -> HashSet<HeaderName> {
    let tokens = headers.get_all(CONNECTION).into_iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    tokens.filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok()).collect()
}

/// Whether a header is about one connection instead of the message (RFC 9110 7.6.1, and those that it inherited).
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "http2-settings"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Takes out of a response's headers what is about the connection it came on, so that it can be sent on: the hop-by-hop
/// headers, those that `Connection` names (RFC 9110 7.6.1), and beside a `Transfer-Encoding`, which overrides it, the
/// `Content-Length` (RFC 9112 6.3).
pub fn keep_end_to_end(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    let framed = headers.contains_key(TRANSFER_ENCODING);
    let of_connection =
        |name: &HeaderName| is_hop_by_hop(name) || named.contains(name) || (framed && *name == CONTENT_LENGTH);
    let drop: Vec<_> = headers.keys().filter(|name| of_connection(name)).cloned().collect();
    for name in drop {
        headers.remove(name);
    }
}

/// Whether a header's value is a secret by its name: it is one of `authorization`, `cookie`, `key`, `token`, … or has
/// such a word between dashes (`x-api-key`, `x-auth-token`).
pub fn is_secret(name: &HeaderName) -> bool {
    name.as_str().split(['-', '_', '.']).any(|word| {
        matches!(
            word,
            "apikey"
                | "auth"
                | "authorization"
                | "cookie"
                | "credential"
                | "credentials"
                | "key"
                | "passwd"
                | "password"
                | "secret"
                | "session"
                | "signature"
                | "token"
        )
    })
}

/// A request id as it may be forwarded: 1 to 128 visible ASCII characters (contract 8.2). Anything else is none.
pub fn request_id(id: &[u8]) -> Option<HeaderValue> {
    let visible = id.iter().all(u8::is_ascii_graphic);
    if visible && (1..=MAX_REQUEST_ID).contains(&id.len()) { HeaderValue::from_bytes(id).ok() } else { None }
}

/// Reads a header of the configuration.
///
/// # Errors
///
/// If name or value cannot be sent, or if it is one that may not be configured: a hop-by-hop header,
/// `Content-Length`, or `Idempotency-Key`, which would give every request the same key. The message never repeats the
/// value.
pub fn configured(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), InvalidHeader> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| InvalidHeader::Name)?;
    if is_hop_by_hop(&name) || name == CONTENT_LENGTH {
        return Err(InvalidHeader::OfConnection);
    }
    if name == IDEMPOTENCY_KEY {
        return Err(InvalidHeader::SharedKey);
    }
    let value = value.trim_matches([' ', '\t']);
    if !value.is_ascii() {
        // The library would send it as UTF-8; what the upstream reads is anyone's guess (RFC 9110 5.5).
        return Err(InvalidHeader::Value);
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| InvalidHeader::Value)?;
    value.set_sensitive(is_secret(&name));
    Ok((name, value))
}

/// Why headers cannot be sent, or configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidHeader {
    /// The name is no token (RFC 9110 5.1).
    Name,
    /// The value has a line break, another control character, or is not ASCII (RFC 9110 5.5).
    Value,
    /// The client sets it, or it is about one connection.
    OfConnection,
    /// An idempotency key must be new for every request.
    SharedKey,
    /// There are more than 10 000 lines.
    TooMany,
}

impl fmt::Display for InvalidHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "expected a header name of letters, digits and `-`",
            Self::Value => "expected a header value of visible ASCII characters and spaces, without line breaks",
            Self::OfConnection => {
                "expected a header of the message: this one belongs to the connection, which is the client's"
            }
            Self::SharedKey => "expected no Idempotency-Key: every request would share it, so set it on the call",
            Self::TooMany => "expected at most 10000 header lines",
        })
    }
}

impl std::error::Error for InvalidHeader {}
