//! As much HTTP/1.1 as the server needs, by hand: it must be able not to answer.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads the next request, which has no body; false at the end of the connection.
    pub(crate) async fn next(&mut self) -> io::Result<bool> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                self.buffer.drain(..end + 4);
                return Ok(true);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(false);
            }
        }
    }

    pub(crate) async fn answer(&mut self, status: u16, retry_after: Option<Duration>) -> io::Result<()> {
        let retry_after = retry_after.map(|after| format!("Retry-After: {}\r\n", after.as_secs_f64().ceil()));
        let retry_after = retry_after.unwrap_or_default();
        let answer = format!("HTTP/1.1 {status} Played\r\n{retry_after}Content-Length: 0\r\n\r\n");
        self.stream.write_all(answer.as_bytes()).await
    }

    /// Until the client goes away.
    pub(crate) async fn hang(mut self) -> io::Result<()> {
        while self.stream.read_buf(&mut self.buffer).await? > 0 {}
        Ok(())
    }
}
