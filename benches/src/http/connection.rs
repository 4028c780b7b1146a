//! hyper's connection without a pool: the least that a request can cost.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{Client, PATH};
use crate::Failure;

/// One connection of its own per worker.
pub struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    uri: Uri,
    host: HeaderValue,
}

impl Client for Connection {
    const NAME: &'static str = "hyper connection";

    async fn workers(server: SocketAddr, count: usize) -> Result<Vec<Self>, Failure> {
        let mut workers = Vec::with_capacity(count);
        for _ in 0..count {
            let socket = TcpStream::connect(server).await?;
            socket.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(socket)).await?;
            tokio::spawn(connection);
            let host = HeaderValue::try_from(server.to_string())?;
            workers.push(Self { sender, uri: Uri::from_static(PATH), host });
        }
        Ok(workers)
    }

    async fn get(&mut self) -> Result<(u16, usize), Failure> {
        let request = Request::get(self.uri.clone()).header(HOST, self.host.clone()).body(Empty::new())?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await?.to_bytes().len()))
    }
}
