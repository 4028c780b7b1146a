//! reqwest with a timeout, as services use it: the address is text, the path is put behind it for each request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Client, PATH};
use crate::Failure;

/// A clone of the one client.
#[derive(Clone)]
pub struct Reqwest {
    client: ::reqwest::Client,
    base_url: Arc<str>,
}

impl Client for Reqwest {
    const NAME: &'static str = "reqwest";

    async fn workers(server: SocketAddr, count: usize) -> Result<Vec<Self>, Failure> {
        let client = ::reqwest::Client::builder().tcp_nodelay(true).timeout(Duration::from_secs(30)).build()?;
        Ok(vec![Self { client, base_url: format!("http://{server}").into() }; count])
    }

    async fn get(&mut self) -> Result<(u16, usize), Failure> {
        let response = self.client.get(format!("{}{PATH}", self.base_url)).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.bytes().await?.len()))
    }
}
