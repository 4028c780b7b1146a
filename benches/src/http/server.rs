//! The server of the HTTP benchmark: a process of its own that does as little as it can.
//!
//! It looks for the end of each request's head and answers with prepared bytes. It understands no more of HTTP than the
//! clients here need (no request bodies), so that the client is the slower side.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;

/// The body of every response: 100 bytes of JSON.
pub const BODY: &str =
    r#"{"id":42,"status":"paid","customer":"c-10017","total":"129.90","currency":"EUR","items":[101,102,1]}"#;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Serves until the process is ended; prints the address first. What `--serve` does.
///
/// # Errors
///
/// The system refuses a socket, or a core that was asked for.
pub fn serve(core: Option<usize>) -> Result<(), Failure> {
    if let Some(core) = core {
        crate::machine::pin(core)?;
    }
    super::runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (socket, _) = listener.accept().await?;
            tokio::spawn(answer(socket));
        }
    })
}

/// Answers one connection's requests until the client closes it.
async fn answer(mut socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let length = BODY.len();
    let response =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}");
    let mut received = Vec::with_capacity(4096);
    loop {
        if socket.read_buf(&mut received).await? == 0 {
            return Ok(());
        }
        while let Some(end) = received.windows(END_OF_HEAD.len()).position(|bytes| bytes == END_OF_HEAD) {
            received.drain(..end + END_OF_HEAD.len());
            socket.write_all(response.as_bytes()).await?;
        }
    }
}

/// The server's process; ends when this is dropped.
pub struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts this very program again as the server.
    ///
    /// # Errors
    ///
    /// The program does not start, or prints no address.
    pub fn start(pin: Option<(usize, usize)>) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--serve").stdout(Stdio::piped());
        if let Some((client, server)) = pin {
            command.args(["--pin", &format!("{client},{server}")]);
        }
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let Ok(address) = line.trim().parse() else {
            process.kill()?;
            process.wait()?;
            return Err(format!("the server printed {line:?} in place of its address").into());
        };
        Ok(Self { process, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save; a failure means that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_a_hundred_bytes_of_json() {
        assert_eq!(BODY.len(), 100);
        serde_json::from_str::<serde_json::Value>(BODY).unwrap();
    }
}
