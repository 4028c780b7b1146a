//! Steadfast with everything on: deadline, retries, budget, breaker, bulkhead, a rate limit, headers that travel with
//! the call, the report.

use std::net::SocketAddr;
use std::time::Duration;

use ::steadfast::{CallContext, ServiceClient};

use super::{Client, PATH};
use crate::Failure;

/// A clone of the one client, and the request that is being served.
#[derive(Clone)]
pub struct Steadfast {
    client: ServiceClient,
    context: CallContext,
}

impl Client for Steadfast {
    const NAME: &'static str = "steadfast";

    async fn workers(server: SocketAddr, count: usize) -> Result<Vec<Self>, Failure> {
        let client = ServiceClient::builder(&format!("http://{server}"))
            .name("orders")
            .max_concurrent(64)
            // An exact window that is never reached.
            .rate_limit(10_000)
            .rate_limit_period(Duration::from_millis(10))
            .build()?;
        let context = CallContext::new().with_request_id("7b1f0c9e-2d4a-4c58-9f0e-5f6a1c2d3e4f");
        Ok(vec![Self { client, context }; count])
    }

    async fn get(&mut self) -> Result<(u16, usize), Failure> {
        let response = self.client.get(PATH).context(&self.context).send().await?;
        Ok((response.status().as_u16(), response.bytes().len()))
    }
}
