//! hyper-util's pooled client: the baseline. No timeout, no policy.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client as Legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::{Client, PATH};
use crate::Failure;

/// A clone of the one pooled client.
#[derive(Clone)]
pub struct HyperUtil {
    client: Legacy<HttpConnector, Empty<Bytes>>,
    uri: Uri,
}

impl Client for HyperUtil {
    const NAME: &'static str = "hyper-util";

    async fn workers(server: SocketAddr, count: usize) -> Result<Vec<Self>, Failure> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Legacy::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let uri = format!("http://{server}{PATH}").parse()?;
        Ok(vec![Self { client, uri }; count])
    }

    async fn get(&mut self) -> Result<(u16, usize), Failure> {
        let request = Request::get(self.uri.clone()).body(Empty::new())?;
        let response = self.client.request(request).await?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().collect().await?.to_bytes().len()))
    }
}
