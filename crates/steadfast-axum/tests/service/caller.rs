//! A caller of a service, on hyper-util's client.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: String,
    client: Client<HttpConnector, Empty<Bytes>>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Caller {
    pub(crate) fn of(address: String) -> Self {
        Self { address, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.client.request(request.body(Empty::new()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        Answer { status: head.status.as_u16(), headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
    }
}
