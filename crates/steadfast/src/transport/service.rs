//! Any tower service that speaks HTTP, as a transport (feature `tower`).
//!
//! A client over such a service keeps everything that lies above the wire: deadline, retries, budget, breaker, bulkhead,
//! rate limit, report. What it loses is the pool's knowledge of the wire. The pool proves that no byte of a request was
//! written; here the errors of the service have to say it.
//!
//! # What is "sent"?
//!
//! A request that may be repeated (by its method, a key, or the caller's word) is retried either way. The question
//! decides about all others: they are retried only after [`Sent::No`].
//!
//! | the service | fault | sent |
//! |---|---|---|
//! | `poll_ready` fails | that of the error, else `Connect` | no |
//! | is dropped in `poll_ready` (a timeout, the deadline) | `AttemptTimeout`, `Deadline` | no |
//! | is dropped after `call` | the same | unknown |
//! | `call` fails | see below | see below |
//! | the response's body fails | that of the error; a closed connection is `Incomplete` | yes |
//!
//! The error of a `call` and all its sources are looked at, from the outside in, and the first of these decides. What
//! [`with_errors`](ServiceTransport::with_errors) says comes before all of them.
//!
//! | error | fault | sent |
//! |---|---|---|
//! | [`TransportError`](super::TransportError) | as it says | as it says |
//! | [`Error`](crate::Error) of a client or layer of ours further in: it refused the call | `LocalProtocol`: no retry, no verdict | no |
//! | … its deadline passed | `AttemptTimeout` | no if all its attempts say so |
//! | … it could not reach the upstream | that of its last attempt | no if all its attempts say so |
//! | hyper-util's client, `is_connect` | `Connect`, `ConnectTimeout`, `Tls` or `Certificate` | no |
//! | hyper, `is_canceled`: the request was not begun | `Reset` | no |
//! | hyper, `is_parse` | `Protocol` | unknown |
//! | hyper, `is_incomplete_message`, `is_closed` | `Reset` | unknown |
//! | hyper, `is_user` without a source | `LocalProtocol` | unknown |
//! | HTTP/2: the upstream refused the stream | `RefusedStream` | no |
//! | HTTP/2: the upstream went away before it | `GoAway` | no |
//! | HTTP/2: anything else of the upstream's; of our own side's | `Reset`; `Protocol` | unknown |
//! | rustls | `Certificate` or `Tls` | unknown |
//! | `io::Error`: refused | `Connect` | unknown: it may be any connection behind the service |
//! | … reset, aborted, broken pipe, unexpected end | `Reset` | unknown |
//! | … timed out | `ReadTimeout` | unknown |
//! | … invalid data | `Protocol` | unknown |
//! | anything else | `Reset` | unknown |
//!
//! # Which limits apply
//!
//! The deadline and `attempt_timeout`, to everything, queueing in the service included. The limits of single phases
//! (`connect_timeout`, `read_timeout`, `write_timeout`, `pool_timeout`, `idle_timeout`, `max_connection_age`) and the keys of
//! TLS and proxies are the pool's; a service has its own. Without a `read_timeout` a response that stalls is waited for
//! until `attempt_timeout` or the deadline. So set `attempt_timeout`; and for responses that are read as they come, which
//! it covers only to their head, [`with_read_timeout`](ServiceTransport::with_read_timeout).
//!
//! The service must not retry, follow redirects, or keep cookies by itself. Two layers that retry multiply their attempts,
//! and the outer one's budget does not see the inner one's.
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use steadfast::ServiceClient;
//! use steadfast::transport::RequestBody;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Any stack of services and layers that takes requests of this kind.
//! let service = tower::service_fn(|request: http::Request<RequestBody>| async move {
//!     assert_eq!(request.uri(), "http://billing.internal/invoices/7");
//!     Ok::<_, std::io::Error>(http::Response::new(Full::new(Bytes::from("paid"))))
//! });
//! let billing = ServiceClient::builder("http://billing.internal").service(service).build()?;
//! assert_eq!(billing.get("/invoices/7").send().await?.text(), "paid");
//! # Ok(())
//! # }
//! ```

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use steadfast_http::{Fault, Sent};
use tower_service::Service;

use super::foreign::{self, ForeignBody, Meaning};
use super::{Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ResponseBody};
use crate::error::BoxError;

/// A tower service as a transport. See the [module](self) for what its errors mean.
///
/// Each attempt has a clone of the service of its own, waits for it to be ready, and calls it; a clone that is ready is
/// used at once or not at all. Dropping a call drops the service's future, which must close its connection.
pub struct ServiceTransport<S> {
    /// Only to be cloned: services are often not `Sync`.
    service: Mutex<S>,
    known: Option<Arc<Meaning>>,
    read_timeout: Option<Duration>,
}

impl<S> ServiceTransport<S> {
    /// A transport that sends through this service.
    pub fn new(service: S) -> Self {
        Self { service: Mutex::new(service), known: None, read_timeout: None }
    }

    /// Says what errors of this service mean, its bodies' among them: in which phase it failed, and whether anything was
    /// sent. `None` leaves it to the table. It is given the outermost error, and looks for sources itself.
    ///
    /// [`Sent::No`] is a promise that the upstream has not seen the request: a POST is sent again then.
    ///
    /// ```
    /// use std::io;
    /// use steadfast::transport::ServiceTransport;
    /// use steadfast::{Fault, Sent};
    ///
    /// # fn transport<S>(service: S) -> ServiceTransport<S> {
    /// // This service talks to nobody but the upstream, so a refused connection is the upstream's.
    /// ServiceTransport::new(service).with_errors(|error| {
    ///     let refused = error.downcast_ref::<io::Error>()?.kind() == io::ErrorKind::ConnectionRefused;
    ///     refused.then_some((Fault::Connect, Sent::No))
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn with_errors(
        mut self,
        meaning: impl Fn(&(dyn StdError + 'static)) -> Option<(Fault, Sent)> + Send + Sync + 'static,
    ) -> Self {
        self.known = Some(Arc::new(meaning));
        self
    }

    /// The longest wait for the next piece of a response's body, while somebody reads it. Unset: none. It is for responses
    /// that are read as they come: `attempt_timeout` covers the head, and the body of one that is read whole.
    ///
    /// It runs on tokio's clock, like the pool's.
    #[must_use]
    pub fn with_read_timeout(mut self, timeout: Duration) -> Self {
        self.read_timeout = Some(timeout);
        self
    }
}

impl<S, B> Exchange for ServiceTransport<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = self.known.as_deref();
        Box::pin(async move {
            let ready = poll_fn(|cx| service.poll_ready(cx)).await;
            ready.map_err(|error| foreign::before_call(error.into(), known))?;
            progress.hand_over();
            let future = service.call(outgoing.request);
            // What a clone holds on to is for its next call, and there is none.
            drop(service);
            let response = future.await.map_err(|error| foreign::of_call(error.into(), known))?;
            let known = self.known.clone();
            Ok(response.map(|body| ResponseBody::boxed(ForeignBody::new(body, known, self.read_timeout))))
        })
    }
}

impl<S> fmt::Debug for ServiceTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceTransport").field("with_errors", &self.known.is_some()).finish_non_exhaustive()
    }
}
