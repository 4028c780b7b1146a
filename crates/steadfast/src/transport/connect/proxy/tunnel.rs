//! A tunnel through an HTTP proxy: `CONNECT` (RFC 9110 section 9.3.6), by hand.
//!
//! What follows the head of the answer belongs to the tunnel, so not one byte beyond it is read: the head is read byte
//! by byte. That is a few hundred short reads once per connection, beside a TLS handshake, and there is nothing to be
//! put back. The head is bounded, and the whole is under `connect_timeout`.

use std::fmt;
use std::io;

use http::{HeaderValue, uri::Authority};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a proxy may say before the tunnel is there.
const MAX_HEAD: usize = 16 * 1024;

/// The request, whole. `target` has the port (RFC 9112 section 3.2.3), and so has its `Host`.
pub(super) fn request(target: &Authority, authorization: Option<&HeaderValue>) -> Vec<u8> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(authorization) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

/// Why there is no tunnel.
#[derive(Debug)]
pub(super) enum NoTunnel {
    /// The proxy answered with this status.
    Status(u16),
    /// What came is no answer to CONNECT.
    NotHttp,
    /// [`MAX_HEAD`] was not enough.
    TooLong,
    Io(io::Error),
}

impl fmt::Display for NoTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "answered CONNECT with {status}"),
            Self::NotHttp => f.write_str("answered CONNECT with something that is not HTTP/1"),
            Self::TooLong => write!(f, "answered CONNECT with a head of more than {MAX_HEAD} bytes"),
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("closed the connection before it had answered CONNECT")
            }
            Self::Io(error) => write!(f, "did not answer CONNECT: {error}"),
        }
    }
}

/// Asks for the tunnel and waits for the answer. Then the stream is the tunnel.
pub(super) async fn open(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &[u8]) -> Result<(), NoTunnel> {
    stream.write_all(request).await.map_err(NoTunnel::Io)?;
    stream.flush().await.map_err(NoTunnel::Io)?;
    let mut left = MAX_HEAD;
    loop {
        match read_status(stream, &mut left).await? {
            // Whatever length a success names, it has no body.
            200..=299 => return Ok(()),
            // 101 is an answer, and not to this request; the others only come before one (RFC 9110 section 15.2).
            100 | 102..=199 => {}
            status => return Err(NoTunnel::Status(status)),
        }
    }
}

/// Reads one head, to its empty line; returns the status.
async fn read_status(stream: &mut (impl AsyncRead + Unpin), left: &mut usize) -> Result<u16, NoTunnel> {
    let mut status = None;
    let mut line = Vec::new();
    loop {
        *left = left.checked_sub(1).ok_or(NoTunnel::TooLong)?;
        match stream.read_u8().await.map_err(NoTunnel::Io)? {
            // A line may end with a bare LF (RFC 9112 section 2.2).
            b'\n' => {}
            byte => {
                line.push(byte);
                continue;
            }
        }
        match (status, line.trim_ascii_end()) {
            (Some(status), []) => return Ok(status),
            (Some(_), _) => {}
            (None, first) => status = Some(parse_status(first).ok_or(NoTunnel::NotHttp)?),
        }
        line.clear();
    }
}

/// The status of `HTTP/1.1 200 whatever`.
fn parse_status(line: &[u8]) -> Option<u16> {
    let (minor, rest) = line.strip_prefix(b"HTTP/1.")?.split_first()?;
    let (status, reason) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
    let is_well_formed = minor.is_ascii_digit() && status[0] != b'0' && matches!(reason, [] | [b' ', ..]);
    let number = status
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u16::from(*digit - b'0')));
    number.filter(|_| is_well_formed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_names_the_target_twice_and_has_nothing_else() {
        let target = Authority::from_static("[::1]:443");
        assert_eq!(request(&target, None), b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
        let secret = HeaderValue::from_static("Basic eDp5");
        let request = String::from_utf8(request(&target, Some(&secret))).unwrap();
        assert!(request.ends_with("443\r\nProxy-Authorization: Basic eDp5\r\n\r\n"), "{request}");
    }

    #[test]
    fn a_status_line_is_read_strictly() {
        for (line, status) in [
            ("HTTP/1.1 200 OK", Some(200)),
            ("HTTP/1.0 200 Connection established", Some(200)),
            ("HTTP/1.1 407", Some(407)),
            ("HTTP/1.1 502 ", Some(502)),
            ("HTTP/2 200", None),
            ("HTTP/1.x 200", None),
            ("HTTP/1.1  200", None),
            ("HTTP/1.1 20", None),
            ("HTTP/1.1 2000", None),
            ("HTTP/1.1 099 x", None),
            ("HTTP/1.1 -20 x", None),
            ("HTTP/1.1 \u{e9}0 x", None),
            ("SSH-2.0-OpenSSH", None),
            ("HTTP/1.", None),
            ("", None),
        ] {
            assert_eq!(parse_status(line.as_bytes()), status, "{line}");
        }
    }

    async fn opened(answer: &[u8]) -> (Result<(), NoTunnel>, Vec<u8>) {
        let mut stream = tokio::io::join(answer, tokio::io::sink());
        let result = open(&mut stream, b"CONNECT").await;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        (result, rest)
    }

    #[tokio::test]
    async fn what_follows_the_head_is_the_tunnels() {
        for head in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.0 200 OK\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
        ] {
            let (result, rest) = opened(format!("{head}hello\r\n").as_bytes()).await;
            assert!(result.is_ok() && rest == b"hello\r\n", "{head}: {result:?}");
        }
    }

    #[tokio::test]
    async fn every_other_answer_says_what_it_was() {
        let endless = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; MAX_HEAD]].concat();
        let hints = "HTTP/1.1 103 Early\r\n\r\n".repeat(MAX_HEAD / 20);
        for (answer, expected) in [
            (&b"HTTP/1.1 502 Bad Gateway\r\n\r\nno"[..], "with 502"),
            (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "with 101"),
            (b"HTTP/1.1 301 Moved\r\nLocation: http://x\r\n\r\n", "with 301"),
            (b"\x05\x00\n", "not HTTP"),
            (b"\r\nHTTP/1.1 200 OK\r\n\r\n", "not HTTP"),
            (b"HTTP/1.1 200 OK\r\nContent", "closed the connection"),
            (b"", "closed the connection"),
            (&endless, "more than 16384 bytes"),
            (hints.as_bytes(), "more than 16384 bytes"),
        ] {
            let text = opened(answer).await.0.unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
