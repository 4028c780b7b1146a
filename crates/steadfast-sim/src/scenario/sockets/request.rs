//! Reading a request off a connection, as far as a scripted server has to: HTTP/1.1, with a body whose length is said.

use std::io;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest head, and the longest body. What a scenario sends is written in its file.
const LONGEST_HEAD: usize = 64 * 1024;
const LONGEST_BODY: u64 = 16 * 1024 * 1024;
const MOST_HEADERS: usize = 100;

/// The head of a request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
}

/// Bytes that came after what was read so far.
#[derive(Debug, Default)]
pub(super) struct Buffer(Vec<u8>);

/// Reads a head. `None`: the connection ended before one began.
pub(super) async fn head(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Buffer) -> io::Result<Option<Head>> {
    loop {
        if let Some((length, head)) = parse(&buffer.0)? {
            buffer.0.drain(..length);
            return Ok(Some(head));
        }
        if buffer.0.len() > LONGEST_HEAD {
            return Err(malformed("the head is too long"));
        }
        if stream.read_buf(&mut buffer.0).await? == 0 {
            return if buffer.0.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<(usize, Head)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes).map_err(|error| malformed(&error.to_string()))? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) => length,
    };
    let method = request.method.and_then(|method| method.parse().ok()).ok_or_else(|| malformed("no method"))?;
    let path = request.path.unwrap_or("/").to_owned();
    let mut map = HeaderMap::new();
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|error| malformed(&error.to_string()))?;
        let value = HeaderValue::from_bytes(header.value).map_err(|error| malformed(&error.to_string()))?;
        map.append(name, value);
    }
    Ok(Some((length, Head { method, path, headers: map })))
}

/// Reads the body that follows this head.
pub(super) async fn body(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Buffer,
    head: &Head,
) -> io::Result<Vec<u8>> {
    if head.headers.contains_key(http::header::TRANSFER_ENCODING) {
        return Err(malformed("a body without a length"));
    }
    let length = match head.headers.get(http::header::CONTENT_LENGTH) {
        None => 0,
        Some(value) => value.to_str().ok().and_then(|value| value.parse().ok()).unwrap_or(u64::MAX),
    };
    let length = usize::try_from(length).ok().filter(|_| length <= LONGEST_BODY);
    let length = length.ok_or_else(|| malformed("the body is too long"))?;
    while buffer.0.len() < length {
        if stream.read_buf(&mut buffer.0).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.0.drain(..length).collect())
}

fn malformed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(mut bytes: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let (mut buffer, mut requests) = (Buffer::default(), Vec::new());
        while let Some(head) = head(&mut bytes, &mut buffer).await? {
            let body = body(&mut bytes, &mut buffer, &head).await?;
            requests.push((format!("{} {}", head.method, head.path), body));
        }
        Ok(requests)
    }

    #[tokio::test]
    async fn requests_follow_one_another_on_a_connection() {
        let bytes = b"GET /a?b HTTP/1.1\r\nhost: x\r\n\r\nPOST /c HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
        let expected: [(&str, &[u8]); 3] = [("GET /a?b", b""), ("POST /c", b"abc"), ("GET /", b"")];
        let expected = expected.map(|(what, body)| (what.to_owned(), body.to_vec()));
        assert_eq!(read(bytes).await.unwrap(), expected);
        assert!(read(b"").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_is_no_request_is_an_error() {
        for bytes in [
            "GET / HTTP/1.1\r\nhost",
            "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nab",
            "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\nab",
            "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\nab",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "\u{0}",
        ] {
            assert!(read(bytes.as_bytes()).await.is_err(), "{bytes:?}");
        }
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2 * LONGEST_HEAD));
        assert!(read(long.as_bytes()).await.is_err());
    }
}
