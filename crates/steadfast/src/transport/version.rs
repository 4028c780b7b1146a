//! Which HTTP is spoken.

/// Which HTTP is spoken to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// Over TLS the upstream chooses between HTTP/2 and HTTP/1.1 (ALPN, RFC 7301); without TLS it is HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone; without TLS by prior knowledge (RFC 9113 section 3.3).
    Http2,
}
