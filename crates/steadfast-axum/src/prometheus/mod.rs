//! `/metrics`: what the process counted, in the text format of Prometheus.
//!
//! A recorder of our own behind the facade, and not the usual exporter: that one keeps every value of a histogram until
//! somebody scrapes, allocates for it, and grows for as long as nobody does. Here a histogram is its buckets, a handle is a
//! few atomics, and the number of time series has a bound.
//!
//! Everything that goes through the facade is shown, the service's own metrics included. A service that has a recorder
//! already keeps it, and calls [`steadfast::metrics::refresh`] before each scrape.

mod series;
mod text;

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use steadfast::metrics::AlreadyInstalled;
use tower_service::Service;

pub use series::MOST_SERIES;
use series::{Kind, Registry};

/// The text format that every version of Prometheus reads.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Keeps what is counted, and answers `/metrics` with it. Clones are the same.
///
/// ```
/// use axum::Router;
/// use steadfast::ServiceClient;
/// use steadfast_axum::Prometheus;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Before the clients are built, so that nothing is missed.
/// let prometheus = Prometheus::new().install()?;
/// let invoices = ServiceClient::builder("http://localhost:8011").name("invoices").build()?;
///
/// let service: Router = Router::new().route_service("/metrics", prometheus.clone());
/// # let _ = service;
/// assert!(prometheus.render().contains("steadfast_circuit_breaker_state{state=\"closed\",upstream=\"invoices\"} 1"));
/// # drop(invoices);
/// # Ok(())
/// # }
/// ```
///
/// Names are made from those of the facade: `_` for what Prometheus does not take, the unit behind it (`_seconds`), and
/// `_total` behind a counter. At most [`MOST_SERIES`] time series are kept; those that come later are not counted, and the
/// log says so once.
///
/// Whoever can reach the route reads the names of upstreams and how they fare: leave it out of what is public.
#[derive(Clone, Default)]
pub struct Prometheus(Arc<Registry>);

impl Prometheus {
    /// One that has nothing counted. Histograms have the bounds [`steadfast::metrics::SECONDS`], unless told otherwise.
    pub fn new() -> Self {
        Self::default()
    }

    /// Other bounds for the histogram of this name, in its unit: for those of the service's own that do not count
    /// seconds. To be said before it is first used. Order does not matter; what is no finite number is left out.
    #[must_use]
    pub fn buckets(self, name: &str, bounds: &[f64]) -> Self {
        self.0.set_bounds(name, bounds);
        self
    }

    /// Makes it the recorder of the process: from here on whatever is counted through the facade is kept here. Clients that
    /// were built before count from now on.
    ///
    /// # Errors
    /// The process has a recorder already; it can have no second one.
    pub fn install(self) -> Result<Self, AlreadyInstalled> {
        steadfast::metrics::install(self.clone())?;
        Ok(self)
    }

    /// Everything as text, with gauges as they are now.
    pub fn render(&self) -> String {
        metrics::with_local_recorder(self, steadfast::metrics::refresh);
        text::write(&self.0)
    }

    /// The answer, for a handler of one's own.
    pub fn respond(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.render())));
        response.headers_mut().insert(CONTENT_TYPE, TEXT);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl<B> Service<Request<B>> for Prometheus {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(self.respond()))
    }
}

impl Recorder for Prometheus {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.0.describe(Kind::Counter, name.as_str(), unit, &help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.0.describe(Kind::Gauge, name.as_str(), unit, &help);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.0.describe(Kind::Histogram, name.as_str(), unit, &help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.0.counter(key).map_or(Counter::noop(), Counter::from_arc)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.0.gauge(key).map_or(Gauge::noop(), Gauge::from_arc)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.0.histogram(key).map_or(Histogram::noop(), Histogram::from_arc)
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus").field("series", &self.0.len()).finish()
    }
}
