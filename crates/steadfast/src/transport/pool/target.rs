//! From a request with an absolute URI to what is put on the wire: the path and a `Host` in HTTP/1.1 (RFC 9112 section
//! 3.2.1), or, for a proxy that passes it on, the upstream and the path (section 3.2.2); the parts of the URI in HTTP/2,
//! and nothing that is about the connection there (RFC 9113 section 8.2.2).

use std::mem;

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
    UPGRADE,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};
use http_body::Body;
use steadfast_http::{Fault, Sent};

use crate::transport::connect::Forwarding;
use crate::transport::{RequestBody, TransportError};

/// What is the same in every request to one upstream.
#[derive(Debug)]
pub(crate) struct Target {
    host: Option<HeaderValue>,
    /// For a proxy that passes each request on.
    forwarding: Option<Forwarding>,
    scheme: Scheme,
    authority: Option<Authority>,
}

/// What RFC 9110 section 7.6.1 names besides `Connection`, and `HTTP2-Settings` (RFC 9113 section 3.1): about the
/// connection, and not sent over HTTP/2.
static ABOUT_THE_CONNECTION: [HeaderName; 5] = [
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    TRANSFER_ENCODING,
    UPGRADE,
];

impl Target {
    /// `host` without brackets.
    pub(crate) fn new(https: bool, host: &str, port: u16) -> Self {
        let default_port = if https { 443 } else { 80 };
        let mut value = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if port != default_port {
            value = format!("{value}:{port}");
        }
        let scheme = if https { Scheme::HTTPS } else { Scheme::HTTP };
        let authority = Authority::try_from(value.as_str()).ok();
        Self { authority, host: HeaderValue::try_from(value).ok(), scheme, forwarding: None }
    }

    pub(crate) fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// The same for requests that a proxy passes on.
    pub(crate) fn forwarded(self, forwarding: Option<&Forwarding>) -> Self {
        Self { forwarding: forwarding.cloned(), ..self }
    }

    /// The path and query as the target, the host in its header, and the length as the body has it.
    ///
    /// A `Host` of the caller's own is kept. Its `Content-Length` and `Transfer-Encoding` are not: a length that
    /// differs from the body's would let one request be read as two.
    pub(crate) fn prepare(&self, request: &mut Request<RequestBody>) {
        let uri = mem::take(request.uri_mut());
        *request.uri_mut() = match uri.into_parts().path_and_query {
            Some(path) => Uri::from(path),
            None => Uri::from_static("/"),
        };
        *request.version_mut() = Version::HTTP_11;
        // One pass over the few names costs less than a look-up for each.
        let (mut has_host, mut has_framing) = (false, false);
        for name in request.headers().keys() {
            has_host |= *name == HOST;
            has_framing |= *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING;
        }
        if has_framing {
            request.headers_mut().remove(CONTENT_LENGTH);
            request.headers_mut().remove(TRANSFER_ENCODING);
        }
        if let Some(host) = self.host.as_ref().filter(|_| !has_host) {
            request.headers_mut().insert(HOST, host.clone());
        }
        if let Some(forwarding) = &self.forwarding {
            let path = mem::take(request.uri_mut());
            *request.uri_mut() = absolute(forwarding, path);
            if let Some(authorization) = &forwarding.authorization {
                request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
            }
        }
        if request.body().is_empty() && has_content(request.method()) {
            // RFC 9110 section 8.6: a method that gives content a meaning says that there is none.
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
    }

    /// Scheme, authority, path and query in the URI, the length as the body has it, and nothing about the connection.
    ///
    /// A `Host` of the caller's own becomes the authority.
    pub(crate) fn prepare_http2(&self, request: Request<RequestBody>) -> Result<Request<RequestBody>, TransportError> {
        let invalid = |source: http::Error| TransportError::new(Fault::LocalProtocol, Sent::No).with_source(source);
        let (mut parts, body) = request.into_parts();
        let authority = match parts.headers.remove(HOST) {
            Some(host) if Some(&host) != self.host.as_ref() => {
                Some(Authority::try_from(host.as_bytes()).map_err(|error| invalid(error.into()))?)
            }
            _ => self.authority.clone(),
        };
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = authority;
        uri.path_and_query = parts.uri.into_parts().path_and_query.or_else(|| Some(PathAndQuery::from_static("/")));
        parts.uri = Uri::from_parts(uri).map_err(|error| invalid(error.into()))?;
        parts.version = Version::HTTP_2;
        strip_connection(&mut parts.headers);
        parts.headers.remove(CONTENT_LENGTH);
        if let Some(length) = body.size_hint().exact().filter(|length| *length > 0 || has_content(&parts.method)) {
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok(Request::from_parts(parts, body))
    }
}

/// Takes out what is about the connection, and what `Connection` names. Of `TE` only `trailers` may stay.
fn strip_connection(headers: &mut HeaderMap) {
    let is_marked =
        headers.keys().any(|name| *name == CONNECTION || *name == TE || ABOUT_THE_CONNECTION.contains(name));
    if !is_marked {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != TE)
        .collect();
    headers.remove(CONNECTION);
    for name in ABOUT_THE_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
    let wants_trailers = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        value.split(',').any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
    };
    let trailers = headers.get_all(TE).iter().any(wants_trailers);
    headers.remove(TE);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// With the upstream before the path. A proxy goes by that, and ignores a `Host` of the caller's own.
fn absolute(forwarding: &Forwarding, path: Uri) -> Uri {
    let mut parts = path.into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(forwarding.authority.clone());
    // `*` has no absolute form.
    parts.path_and_query = parts.path_and_query.filter(|path| path != "*").or(Some(PathAndQuery::from_static("/")));
    // It has all three parts, so it is a URI.
    Uri::from_parts(parts).unwrap_or_default()
}

fn has_content(method: &Method) -> bool {
    *method == Method::POST || *method == Method::PUT || *method == Method::PATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(https: bool, host: &str, port: u16) -> String {
        let mut request = Request::get("http://elsewhere/a/b?c=d").body(RequestBody::empty()).unwrap();
        Target::new(https, host, port).prepare(&mut request);
        assert_eq!(request.uri(), "/a/b?c=d");
        request.headers()[HOST].to_str().unwrap().to_owned()
    }

    /// 8.4
    #[test]
    fn c8_4_host_has_brackets_and_no_default_port() {
        assert_eq!(host(false, "billing", 80), "billing");
        assert_eq!(host(true, "billing", 80), "billing:80");
        assert_eq!(host(true, "billing", 443), "billing");
        assert_eq!(host(false, "::1", 8080), "[::1]:8080");
        assert_eq!(host(false, "::1", 80), "[::1]");
    }

    /// RFC 9112 section 3.2.2
    #[test]
    fn a_proxy_is_told_the_upstream_and_the_path() {
        for (authority, uri, expected) in [
            ("billing", "http://elsewhere/a/b?c=d", "http://billing/a/b?c=d"),
            ("[::1]:8080", "http://elsewhere", "http://[::1]:8080/"),
            ("billing", "*", "http://billing/"),
        ] {
            let forwarding = Forwarding { authority: authority.parse().unwrap(), authorization: None };
            let mut request = Request::get(uri).body(RequestBody::empty()).unwrap();
            Target::new(false, "billing", 80).forwarded(Some(&forwarding)).prepare(&mut request);
            assert_eq!((request.uri().to_string(), request.headers().len()), (expected.to_owned(), 1));
        }
    }

    #[test]
    fn the_length_is_the_bodys() {
        let target = Target::new(false, "billing", 80);
        let prepare = |method: Method, body: &'static str| {
            let request = Request::builder()
                .method(method)
                .uri("http://billing")
                .header(CONTENT_LENGTH, "77")
                .header(TRANSFER_ENCODING, "chunked")
                .header(HOST, "mine")
                .body(RequestBody::from(body));
            let mut request = request.unwrap();
            target.prepare(&mut request);
            request
        };
        let get = prepare(Method::GET, "");
        assert_eq!(get.uri(), "/");
        assert_eq!(get.headers().len(), 1);
        assert_eq!(get.headers()[HOST], "mine");
        let post = prepare(Method::POST, "");
        assert_eq!(post.headers()[CONTENT_LENGTH], "0");
        assert!(!prepare(Method::POST, "abc").headers().contains_key(CONTENT_LENGTH));
    }

    fn over_http2(target: &Target, request: http::request::Builder, body: &'static str) -> Request<RequestBody> {
        target.prepare_http2(request.body(RequestBody::from(body)).unwrap()).unwrap()
    }

    #[test]
    fn http2_has_the_whole_uri_and_no_host() {
        let target = Target::new(true, "::1", 8443);
        let request = over_http2(&target, Request::get("http://elsewhere/a?b"), "");
        assert_eq!(request.uri(), "https://[::1]:8443/a?b");
        assert_eq!((request.version(), request.headers().len()), (Version::HTTP_2, 0));
        let request = over_http2(&target, Request::get("http://elsewhere").header(HOST, "mine:1"), "");
        assert_eq!(request.uri(), "https://mine:1/");
        assert!(request.headers().is_empty());
        // What was made ready for HTTP/1.1 can go over HTTP/2.
        let mut request = Request::get("http://elsewhere/a").body(RequestBody::empty()).unwrap();
        target.prepare(&mut request);
        assert_eq!(target.prepare_http2(request).unwrap().uri(), "https://[::1]:8443/a");
        let broken = Request::get("/").header(HOST, "a b").body(RequestBody::empty()).unwrap();
        assert_eq!(target.prepare_http2(broken).unwrap_err().fault(), Fault::LocalProtocol);
    }

    /// A141
    #[test]
    fn a141_what_is_about_the_connection_is_not_sent_over_http2() {
        let target = Target::new(false, "billing", 80);
        let request = Request::post("http://billing/")
            .header(CONNECTION, "keep-alive, X-Foo")
            .header(CONNECTION, "te")
            .header("x-foo", "1")
            .header("keep-alive", "timeout=5")
            .header("proxy-connection", "keep-alive")
            .header(TRANSFER_ENCODING, "chunked")
            .header(UPGRADE, "h2c")
            .header("http2-settings", "AAMAAABkAAQAAP__")
            .header(TE, "gzip, Trailers")
            .header(CONTENT_LENGTH, "77")
            .header("x-bar", "2");
        let request = over_http2(&target, request, "abc");
        let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-bar", "te", "content-length"]);
        assert_eq!(request.headers()[TE], "trailers");
        assert_eq!(request.headers()[CONTENT_LENGTH], "3");
        let request = over_http2(&target, Request::get("http://billing/").header(TE, "gzip"), "");
        assert!(request.headers().is_empty());
        assert_eq!(over_http2(&target, Request::put("http://billing/"), "").headers()[CONTENT_LENGTH], "0");
    }
}
