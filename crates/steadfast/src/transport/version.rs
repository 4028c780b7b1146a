//! Which HTTP is spoken: what is configured, what is offered, what came of it.

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

/// What the next connection may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Http1,
    Http2,
    /// Whichever the upstream chooses.
    Both,
}

impl Offer {
    /// The protocols by name, the preferred one first (RFC 7301 section 6).
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
            Self::Both => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        }
    }
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}
