//! The service with its own configuration, its two upstreams, and somebody who calls it. The ports are the system's choice.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use orders::upstreams::{self, Upstream};
use serde_json::Value;
use steadfast::Clients;
use steadfast::config::Loader;
use steadfast_axum::Prometheus;
use tokio::net::TcpListener;

pub(crate) struct Setting {
    pub(crate) billing: Upstream,
    pub(crate) catalog: Upstream,
    addresses: [String; 3],
    caller: Client<HttpConnector, Full<Bytes>>,
}

/// An answer of the service.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Setting {
    pub(crate) async fn start() -> Self {
        let (billing, catalog) = (Upstream::new(), Upstream::new());
        let at_billing = serve(upstreams::billing(&billing)).await;
        let at_catalog = serve(upstreams::catalog(&catalog)).await;
        let env = [
            ("STEADFAST_UPSTREAMS__BILLING__BASE_URL", at_billing.as_str()),
            ("STEADFAST_UPSTREAMS__CATALOG__BASE_URL", at_catalog.as_str()),
        ];
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/steadfast.toml");
        // A process has one recorder, whatever the number of services in it.
        static PROMETHEUS: OnceLock<Prometheus> = OnceLock::new();
        let prometheus = PROMETHEUS.get_or_init(|| Prometheus::new().install().unwrap()).clone();
        let clients = Clients::new(&Loader::new().file(file).env(env).load().unwrap()).unwrap();
        let service = serve(orders::service(&clients, prometheus).unwrap()).await;
        let caller = Client::builder(TokioExecutor::new()).build_http();
        Self { billing, catalog, addresses: [service, at_billing, at_catalog], caller }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, &format!("{}{path}", self.addresses[0]), headers, "").await
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], json: &'static str) -> Answer {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.send(Method::POST, &format!("{}{path}", self.addresses[0]), &headers, json).await
    }

    /// Tells billing how to behave.
    pub(crate) async fn billing_is(&self, mode: &'static str) {
        self.mode(1, mode).await;
    }

    /// The same for catalog.
    pub(crate) async fn catalog_is(&self, mode: &'static str) {
        self.mode(2, mode).await;
    }

    async fn mode(&self, upstream: usize, mode: &'static str) {
        let answer = self.send(Method::PUT, &format!("{}/mode", self.addresses[upstream]), &[], mode).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }

    async fn send(&self, method: Method, url: &str, headers: &[(&str, &str)], body: &'static str) -> Answer {
        let request = headers.iter().fold(Request::builder().method(method).uri(url), |r, (n, v)| r.header(*n, *v));
        let response = self.caller.request(request.body(Full::from(body)).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        Answer { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
    }
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}
