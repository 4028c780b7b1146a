//! From a request with an absolute URI to what HTTP/1.1 puts on the wire: the path (RFC 9112 section 3.2.1), or, for a
//! proxy that passes it on, the upstream and the path (section 3.2.2).

use http::header::{CONTENT_LENGTH, HOST, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

use crate::transport::RequestBody;
use crate::transport::connect::Forwarding;

/// What is the same in every request to one upstream.
#[derive(Debug)]
pub(crate) struct Target {
    host: Option<HeaderValue>,
    /// For a proxy that passes each request on.
    forwarding: Option<Forwarding>,
}

impl Target {
    /// `host` without brackets.
    pub(crate) fn new(https: bool, host: &str, port: u16) -> Self {
        let default_port = if https { 443 } else { 80 };
        let mut value = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if port != default_port {
            value = format!("{value}:{port}");
        }
        Self { host: HeaderValue::try_from(value).ok(), forwarding: None }
    }

    /// The same for requests that a proxy passes on.
    pub(crate) fn forwarded(self, forwarding: Option<&Forwarding>) -> Self {
        Self { forwarding: forwarding.cloned(), ..self }
    }

    /// The path and query as the target, the host in its header, and the length as the body has it.
    ///
    /// A `Host` of the caller's own is kept. Its `Content-Length` and `Transfer-Encoding` are not: a length that
    /// differs from the body's would let one request be read as two.
    pub(crate) fn prepare(&self, request: Request<RequestBody>) -> Request<RequestBody> {
        let (mut parts, body) = request.into_parts();
        parts.uri = match parts.uri.into_parts().path_and_query {
            Some(path) => Uri::from(path),
            None => Uri::from_static("/"),
        };
        parts.version = Version::HTTP_11;
        // One pass over the few names costs less than a look-up for each.
        let (mut has_host, mut has_framing) = (false, false);
        for name in parts.headers.keys() {
            has_host |= *name == HOST;
            has_framing |= *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING;
        }
        if has_framing {
            parts.headers.remove(CONTENT_LENGTH);
            parts.headers.remove(TRANSFER_ENCODING);
        }
        if let Some(host) = self.host.as_ref().filter(|_| !has_host) {
            parts.headers.insert(HOST, host.clone());
        }
        if let Some(forwarding) = &self.forwarding {
            parts.uri = absolute(forwarding, parts.uri);
            if let Some(authorization) = &forwarding.authorization {
                parts.headers.insert(PROXY_AUTHORIZATION, authorization.clone());
            }
        }
        if body.is_empty() && has_content(&parts.method) {
            // RFC 9110 section 8.6: a method that gives content a meaning says that there is none.
            parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Request::from_parts(parts, body)
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
        let request = Request::get("http://elsewhere/a/b?c=d").body(RequestBody::empty()).unwrap();
        let request = Target::new(https, host, port).prepare(request);
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
            let request = Request::get(uri).body(RequestBody::empty()).unwrap();
            let request = Target::new(false, "billing", 80).forwarded(Some(&forwarding)).prepare(request);
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
            target.prepare(request.unwrap())
        };
        let get = prepare(Method::GET, "");
        assert_eq!(get.uri(), "/");
        assert_eq!(get.headers().len(), 1);
        assert_eq!(get.headers()[HOST], "mine");
        let post = prepare(Method::POST, "");
        assert_eq!(post.headers()[CONTENT_LENGTH], "0");
        assert!(!prepare(Method::POST, "abc").headers().contains_key(CONTENT_LENGTH));
    }
}
