//! How an attempt can end without a response, and what that proves about the request.

use std::fmt;

/// Whether any of the request can have reached the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// It was sent whole and answered.
    Yes,
    /// Proof that the upstream never processed it: any method may be sent again.
    No,
    /// Some of it was written, or may have been.
    Unknown,
}

impl Sent {
    /// The word used in reports and by the command's JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// Why an attempt got no (whole) response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The name did not resolve.
    Dns,
    /// The TCP connection was refused, reset while connecting, or unreachable.
    Connect,
    /// Resolving, TCP, the proxy or TLS took longer than `connect_timeout`.
    ConnectTimeout,
    /// The TLS handshake failed for a reason that may pass (reset, closed, protocol alert).
    Tls,
    /// The upstream's certificate does not verify, or it does not accept ours. Permanent.
    Certificate,
    /// The proxy could not reach the upstream.
    Proxy,
    /// The proxy wants credentials, or other ones (407). Permanent, and a fault of ours.
    ProxyRefused,
    /// The connection was reset or closed before a whole response head came.
    Reset,
    /// HTTP/2: the stream was refused before it was processed.
    RefusedStream,
    /// HTTP/2: the connection went away before this stream was processed.
    GoAway,
    /// The bytes that came are not HTTP.
    Protocol,
    /// The request could not be expressed by our own side. A fault of ours.
    LocalProtocol,
    /// The request's body could not be read from where it comes, or is not as long as it was announced. A fault of ours.
    RequestBody,
    /// The response's body does not decode (gzip, br, zstd), or ends before it is whole.
    Decode,
    /// The response was cut short.
    Incomplete,
    /// The response is larger than `max_response_bytes`. Permanent; the upstream is up.
    TooLarge,
    /// No piece of the response came within `read_timeout`.
    ReadTimeout,
    /// No piece of the request could be written within `write_timeout`.
    WriteTimeout,
    /// The attempt took longer than `attempt_timeout`.
    AttemptTimeout,
    /// The call's deadline passed while the attempt ran.
    Deadline,
    /// No pooled connection became free within `pool_timeout`: our own limit.
    PoolTimeout,
}

impl Fault {
    /// The word used in reports and by the command's JSON (`outcome`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls | Self::Certificate => "tls",
            Self::Proxy | Self::ProxyRefused => "proxy",
            Self::Reset => "reset",
            Self::RefusedStream => "refused_stream",
            Self::GoAway => "goaway",
            Self::Protocol | Self::LocalProtocol => "protocol",
            Self::RequestBody => "request_body",
            Self::Decode => "decode",
            Self::Incomplete => "incomplete",
            Self::TooLarge => "too_large",
            Self::ReadTimeout => "read_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::AttemptTimeout => "attempt_timeout",
            Self::Deadline => "deadline",
            Self::PoolTimeout => "pool_timeout",
        }
    }

    /// Whether it is a timeout: what it costs the budget, and evidence of its own for the breaker.
    pub const fn is_timeout(self) -> bool {
        matches!(
            self,
            Self::ConnectTimeout | Self::ReadTimeout | Self::WriteTimeout | Self::AttemptTimeout | Self::Deadline
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
