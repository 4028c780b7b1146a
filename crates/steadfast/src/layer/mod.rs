//! The client's policies as layers, for a stack of tower's (feature `tower`).
//!
//! | to | use |
//! |---|---|
//! | protect an HTTP service with everything at once | [`ClientLayer`] |
//! | add one policy to a stack that has its own | [`DeadlineLayer`], [`RetryLayer`], [`CircuitBreakerLayer`], [`BulkheadLayer`], [`RateLimitLayer`] |
//! | protect a service that does not speak HTTP | [`GuardLayer`] |
//! | send through a tower service, and call as with any client | [`ClientBuilder::service`] |
//!
//! [`ClientBuilder::service`] is the shortest way where nothing has to be put *around* the client: paths are joined to the
//! base URL, responses are read whole, and a cut body is retried. A layer is for code that has a `Service` and wants one.
//!
//! # Prefer the whole
//!
//! [`ClientLayer`] has one order for all policies, and each knows what the others decided: the breaker judges attempts, a
//! slot is free during a backoff, the deadline covers the queue and the body, a retry is not paid for while the breaker
//! will refuse it. A stack of single layers has the order that it was written in, and its faults. What holds between our
//! own layers, and clients further in: a refusal of an inner one passes through the outer ones as it is, is not retried,
//! and is no verdict; a deadline that passed inside is an attempt that took too long.
//!
//! Two layers that retry multiply: three by three attempts is what an outage gets, and neither budget sees the other's.
//! Have one, the outer; set `retries(0)` in the other.
//!
//! # What passes, and what is added
//!
//! The request's method, URI, version, headers and extensions reach the inner service as they are, on each attempt, with
//! the same body; the body is kept for that as long as it is within its bounds ([`RequestBody`]). [`ClientLayer`] adds
//! headers that the request does not have: `User-Agent`, the configured ones, `Accept-Encoding`, the deadline header, and
//! what a context in [`CallOptions`] brings along. `base_url` is not looked at: the inner service knows where it sends.
//! A single policy adds nothing, and decodes nothing. A layer keeps the settings that it was built with.
//!
//! The body of a response that is retried is read first, up to `max_response_bytes`, as it is what the call returns if no
//! better one comes (7.1). Any other is handed over as it comes.
//!
//! What the inner service's errors mean is the table of [`transport::service`](crate::transport::service).
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::{BodyExt, Full};
//! use steadfast::{Report, ServiceClient};
//! use steadfast::transport::RequestBody;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let upstream = service_fn(|_: http::Request<RequestBody>| async {
//!     Ok::<_, std::io::Error>(http::Response::new(Full::new(Bytes::from("paid"))))
//! });
//! let layer = ServiceClient::builder("http://billing.internal").name("billing").retries(3).build_layer()?;
//! let billing = ServiceBuilder::new().layer(layer.clone()).service(upstream);
//!
//! let request = http::Request::get("http://billing.internal/invoices/7").body(Bytes::new())?;
//! let response = billing.oneshot(request).await?;
//! assert_eq!(response.extensions().get::<Report>().unwrap().attempt_count(), 1);
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "paid");
//! assert_eq!(layer.snapshot().line.in_use, 0);
//! # Ok(())
//! # }
//! ```
//!
//! [`ClientBuilder::service`]: crate::ClientBuilder::service
//! [`RequestBody`]: crate::transport::RequestBody

mod bodies;
mod guard;
mod options;
mod service;
mod single;

pub use guard::{GuardLayer, GuardService};
pub use options::CallOptions;
pub use service::{CallFuture, ClientService};
pub use single::{
    BulkheadLayer, BulkheadLayerBuilder, CircuitBreakerLayer, CircuitBreakerLayerBuilder, DeadlineLayer,
    DeadlineLayerBuilder, RateLimitLayer, RateLimitLayerBuilder, RetryLayer, RetryLayerBuilder,
};

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::client::{BuildError, ClientBuilder, Shared};
use crate::snapshot::Snapshot;
use crate::transport::{
    Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ServiceTransport, Transport, TransportError,
};
use steadfast_http::{Fault, Sent};

/// The whole client of one upstream as a layer. Clones, and all services that it makes, share the circuit breaker, the
/// budget, the bulkhead and the rate limit.
///
/// Its service is a [`ClientService`], whatever is inside.
#[derive(Clone)]
pub struct ClientLayer {
    template: Arc<Shared>,
    manner: Manner,
}

/// What a layer does beside the policies.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Whether it retries at all; a response then has to be read whole before the next attempt.
    retries: bool,
    /// Whether compressed bodies are decoded.
    decodes: bool,
}

impl ClientBuilder {
    /// The same as a layer around a tower service, instead of a client with a transport of its own. `base_url` is not
    /// looked at, nor are the keys of the pool, of TLS, and of proxies. See [`layer`](crate::layer).
    ///
    /// # Errors
    /// [`BuildError`]: every setting outside its bounds.
    pub fn build_layer(self) -> Result<ClientLayer, BuildError> {
        let (template, _) = self.transport(Nowhere).assemble(|_| {})?;
        Ok(ClientLayer::new(template, Manner { retries: true, decodes: true }))
    }
}

impl ClientLayer {
    fn new(template: Shared, manner: Manner) -> Self {
        #[cfg(feature = "metrics")]
        crate::telemetry::metrics::observe(&template.upstream);
        Self { template: Arc::new(template), manner }
    }

    /// The upstream's name.
    pub fn name(&self) -> &str {
        &self.template.upstream.name
    }

    /// The state of the circuit breaker, the budget and the line. Taking it changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.template.upstream.snapshot()
    }

    /// Opens the breaker until [`reset_breaker`](Self::reset_breaker): for an operator who knows better.
    pub fn force_open(&self) {
        self.template.upstream.force_open();
    }

    /// Closes the breaker, and lets it ignore every verdict, until [`reset_breaker`](Self::reset_breaker).
    pub fn force_close(&self) {
        self.template.upstream.force_close();
    }

    /// A closed breaker that has seen nothing.
    pub fn reset_breaker(&self) {
        self.template.upstream.reset_breaker();
    }

    /// The service over this transport.
    fn over(&self, transport: impl Exchange) -> ClientService {
        let shared = Shared { transport: Transport::Custom(Arc::new(transport)), ..Shared::clone(&self.template) };
        ClientService::new(Arc::new(shared), self.manner)
    }
}

impl<S, B> Layer<S> for ClientLayer
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    ServiceTransport<S>: Exchange,
{
    type Service = ClientService;

    fn layer(&self, inner: S) -> ClientService {
        self.over(ServiceTransport::new(inner))
    }
}

impl<S> Layer<ServiceTransport<S>> for ClientLayer
where
    ServiceTransport<S>: Exchange,
{
    type Service = ClientService;

    /// Around a service whose errors were explained with [`ServiceTransport::with_errors`].
    fn layer(&self, inner: ServiceTransport<S>) -> ClientService {
        self.over(inner)
    }
}

impl fmt::Debug for ClientLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLayer").field("upstream", &self.name()).finish_non_exhaustive()
    }
}

/// What a layer has in a transport's place before it is put around a service: nothing is ever sent through it.
struct Nowhere;

impl Exchange for Nowhere {
    fn exchange<'a>(&'a self, _: Outgoing, _: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(std::future::ready(Err(TransportError::new(Fault::LocalProtocol, Sent::No))))
    }
}
