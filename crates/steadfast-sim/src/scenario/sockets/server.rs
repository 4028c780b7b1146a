//! A scripted server: it reads a request, and does with it what its script says, byte by byte.
//!
//! Written on plain sockets, since a server library does not let one answer badly. A reply ends early when its client hangs
//! up, so that nothing is in flight that nobody waits for. Every task belongs to the stage and ends with it.

use std::io;
use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::request::{self, Buffer, Head};
use crate::scenario::model::{Act, Respond};
use crate::scenario::upstream::{Taken, Upstream, headers_at};

/// Accepts connections for as long as the stage is there.
pub(super) async fn serve(listener: TcpListener, upstream: Upstream) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let upstream = upstream.clone();
                tokio::task::spawn_local(async move {
                    if let Err(error) = connection(stream, &upstream).await
                        && error.kind() == io::ErrorKind::InvalidData
                    {
                        upstream.note(format!("a request that cannot be read: {error}"));
                    }
                });
            }
            // Of this one connection, or because there are too many: the next may do better.
            Err(error) => {
                upstream.note(format!("no connection: {error}"));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// What becomes of a connection after a reply.
#[derive(PartialEq, Eq)]
enum Then {
    Goes,
    Closes,
}

async fn connection(mut stream: TcpStream, upstream: &Upstream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Buffer::default();
    while let Some(head) = request::head(&mut stream, &mut buffer).await? {
        let taken = upstream.take(&head.method, &head.path);
        if taken.reply.refuses() || taken.reply.act == (Act::Reset { read: false }) {
            // A connection that is open cannot be refused any more; its request is not read.
            wait(&mut stream, taken.reply.after).await?;
            return reset(&stream);
        }
        let body = request::body(&mut stream, &mut buffer, &head).await?;
        let method = head.method.clone();
        let Head { method: read, path, headers } = head;
        upstream.read(read, path, headers, body);
        if reply(&mut stream, upstream, &method, taken).await? == Then::Closes {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

async fn reply(stream: &mut TcpStream, upstream: &Upstream, method: &Method, taken: Taken) -> io::Result<Then> {
    wait(stream, taken.reply.after).await?;
    match &taken.reply.act {
        Act::Respond(respond) => {
            let closes = upstream.may_refuse();
            respond_with(stream, respond, method, closes).await?;
            let is_whole = respond.cut.is_none() && !closes;
            Ok(if is_whole { Then::Goes } else { Then::Closes })
        }
        Act::Hang => {
            gone(stream).await?;
            Ok(Then::Closes)
        }
        Act::Reset { .. } | Act::Refuse => {
            reset(stream)?;
            Ok(Then::Closes)
        }
    }
}

/// Waits, unless the client hangs up first.
async fn wait(stream: &mut TcpStream, after: Duration) -> io::Result<()> {
    if after.is_zero() {
        return Ok(());
    }
    match tokio::time::timeout(after, gone(stream)).await {
        Err(_passed) => Ok(()),
        Ok(Ok(())) => Err(io::ErrorKind::ConnectionAborted.into()),
        Ok(Err(error)) => Err(error),
    }
}

/// Waits until the client hangs up. It sends nothing while it waits for an answer.
async fn gone(stream: &mut TcpStream) -> io::Result<()> {
    let mut nothing = [0_u8; 64];
    while stream.read(&mut nothing).await? > 0 {}
    Ok(())
}

/// The connection ends with a reset once it is dropped.
fn reset(stream: &TcpStream) -> io::Result<()> {
    stream.set_zero_linger()
}

async fn respond_with(stream: &mut TcpStream, respond: &Respond, method: &Method, closes: bool) -> io::Result<()> {
    let status = StatusCode::from_u16(respond.status).map_err(io::Error::other)?;
    let mut bytes =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or("")).into_bytes();
    for (name, value) in headers_at(respond, SystemTime::now()) {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    if closes {
        bytes.extend_from_slice(b"connection: close\r\n");
    }
    let has_body = *method != Method::HEAD && !matches!(respond.status, 100..=199 | 204 | 304);
    if respond.drip.is_some() {
        bytes.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
    } else if matches!(respond.status, 100..=199 | 204) {
        bytes.extend_from_slice(b"\r\n");
    } else {
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", respond.body.len()).as_bytes());
    }
    if has_body && respond.drip.is_none() {
        let length = respond.cut.unwrap_or(respond.body.len()).min(respond.body.len());
        bytes.extend_from_slice(&respond.body[..length]);
    }
    stream.write_all(&bytes).await?;
    match respond.drip {
        Some(every) if has_body => drip(stream, every).await,
        _ => Ok(()),
    }
}

/// A byte of the body each so often, until nobody takes it any more.
async fn drip(stream: &mut TcpStream, every: Duration) -> io::Result<()> {
    loop {
        wait(stream, every).await?;
        stream.write_all(b"1\r\n.\r\n").await?;
    }
}
