//! The client to compare with: three blind retries, at once, of whatever failed, and nothing else.
//!
//! It gives each try the same time as Steadfast's client does, and its upstream meets it with the same luck. It opens a
//! connection for each try, which costs it a fraction of a millisecond on loopback; the comparison is one of requests
//! and results.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::scenario::{BLIND_RETRIES, Call, Form};

/// The blind client of one upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blind {
    address: SocketAddr,
    try_timeout: Duration,
}

impl Blind {
    /// For the upstream at this address.
    pub(crate) fn new(address: SocketAddr, try_timeout: Duration) -> Self {
        Self { address, try_timeout }
    }

    /// One call: up to four tries. The last status, or what went wrong last.
    pub(crate) async fn call(self, call: Call) -> Result<u16, &'static str> {
        let mut last = self.one_try(call).await;
        for _ in 0..BLIND_RETRIES {
            match last {
                Ok(status) if status < 500 && status != 429 => break,
                _ => last = self.one_try(call).await,
            }
        }
        last
    }

    async fn one_try(self, call: Call) -> Result<u16, &'static str> {
        match tokio::time::timeout(self.try_timeout, exchange(self.address, call)).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(match error.kind() {
                io::ErrorKind::ConnectionRefused => "connect",
                io::ErrorKind::InvalidData => "protocol",
                _ => "reset",
            }),
            Err(_) => Err("timeout"),
        }
    }
}

/// Sends the request and reads the whole answer, to the end of the connection.
async fn exchange(address: SocketAddr, call: Call) -> io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(request(call).as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The answers of the embedded upstreams end so; waiting for the end of the connection would add its latency.
        if answer.ends_with(b"\r\n\r\ndemo\n") {
            return status(&answer).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
    }
}

fn request(call: Call) -> String {
    let key = call.key().map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
    let (method, body) = match call.form {
        Form::Get => ("GET", String::new()),
        Form::PostWithKey | Form::PostWithoutKey => ("POST", format!("{{\"call\":{}}}", call.id)),
    };
    format!(
        "{method} /demo HTTP/1.1\r\nHost: localhost\r\nX-Call-Id: {}\r\n{key}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        call.id,
        body.len(),
    )
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.strip_prefix(b"HTTP/1.1 ")?;
    std::str::from_utf8(line.get(..3)?).ok()?.parse().ok()
}
