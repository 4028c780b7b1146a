//! As much HTTP/1.1 as the embedded upstreams need, by hand: they must be able to answer late, or not at all, at any
//! byte, which a server library rightly makes hard.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::scenario::RETRY_AFTER;

/// The largest head that is read.
const MAX_HEAD: usize = 16 * 1024;

/// What an upstream wants to know of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// `X-Call-Id`: which call of the traffic this is.
    pub(crate) call: u64,
    /// Neither safe, nor idempotent, nor carrying a key: it may not be sent twice.
    pub(crate) unrepeatable: bool,
    /// The connection ends after the answer.
    close: bool,
    content_length: usize,
}

/// A connection of an embedded upstream.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    close: bool,
}

impl Connection {
    /// A fresh one.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new(), close: false }
    }

    /// The next whole request; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Head>> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if self.close || self.buffer.len() > MAX_HEAD || self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let Some(head) = std::str::from_utf8(&self.buffer[..end]).ok().and_then(Head::parse) else {
            return Ok(None);
        };
        self.close = head.close;
        let whole = end + head.content_length;
        while self.buffer.len() < whole {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        self.buffer.drain(..whole);
        Ok(Some(head))
    }

    /// Answers with this status and a short body.
    pub(crate) async fn answer(&mut self, status: u16) -> io::Result<()> {
        let retry_after = if status == 429 { format!("Retry-After: {RETRY_AFTER}\r\n") } else { String::new() };
        let answer = format!("HTTP/1.1 {status} Demo\r\n{retry_after}Content-Length: 5\r\n\r\ndemo\n");
        self.stream.write_all(answer.as_bytes()).await
    }

    /// Ends the connection with a reset instead of an answer.
    pub(crate) fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}

impl Head {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split("\r\n");
        let method = lines.next()?.split(' ').next()?;
        let mut head =
            Self { call: 0, unrepeatable: matches!(method, "POST" | "PATCH"), close: false, content_length: 0 };
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "x-call-id" => head.call = value.parse().ok()?,
                "idempotency-key" => head.unrepeatable = false,
                "content-length" => head.content_length = value.parse().ok().filter(|length| *length <= MAX_HEAD)?,
                "connection" => head.close |= value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_which_call_it_is_and_whether_it_may_be_sent_twice() {
        let head = |text: &str| Head::parse(text);
        let get = head("GET / HTTP/1.1\r\nHost: x\r\nX-Call-Id: 41\r\n\r\n");
        assert_eq!(get, Some(Head { call: 41, unrepeatable: false, close: false, content_length: 0 }));
        let post = head("POST / HTTP/1.1\r\nx-call-id: 3\r\ncontent-length: 7\r\nconnection: Close\r\n\r\n");
        assert_eq!(post, Some(Head { call: 3, unrepeatable: true, close: true, content_length: 7 }));
        let keyed = head("POST / HTTP/1.1\r\nIdempotency-Key: demo-7\r\n\r\n");
        assert_eq!(keyed.map(|head| head.unrepeatable), Some(false));
        assert_eq!(head("GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n"), None);
        assert_eq!(head("GET / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n"), None);
    }
}
