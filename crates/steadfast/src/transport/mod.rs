//! One attempt's bytes: a request goes out, a response or a typed fault comes back.
//!
//! The [`Pool`] for one upstream is the transport that a client has unless it is given another. Whatever the
//! transport, its errors say in which phase the attempt failed and whether anything was sent, because that decides
//! what may be repeated.
//!
//! Others are a tower service (`service`, feature `tower`), a reqwest client (`reqwest`, feature of that name), and
//! whatever implements [`Exchange`]. Where they differ from the pool is in `docs/transports.md`, from one script that runs over
//! all of them.

pub(crate) mod body;
mod connect;
pub mod decode;
mod error;
#[cfg(any(feature = "tower", feature = "reqwest"))]
mod foreign;
mod pool;
mod progress;
pub(crate) mod request_body;
#[cfg(feature = "reqwest")]
pub mod reqwest;
#[cfg(feature = "tower")]
pub mod service;
mod version;

#[cfg(feature = "reqwest")]
pub use self::reqwest::ReqwestTransport;
pub use body::ResponseBody;
pub(crate) use connect::RenewedTls;
pub use connect::{InvalidProxy, PoolConfigError, Proxy, ProxyUrl, Resolve, ResolveFuture, SystemResolver};
pub use connect::{TlsConfigError, TlsFailure, TlsFailureKind, TlsOptions};
pub use error::TransportError;
pub use pool::{Pool, PoolConfig, PoolSnapshot};
pub use progress::Progress;
pub use request_body::{KEPT_BYTES, RequestBody, UploadHook, Uploaded};
#[cfg(feature = "tower")]
pub use service::ServiceTransport;
pub use version::HttpVersion;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use pin_project_lite::pin_project;

/// One attempt on its way to the upstream.
#[non_exhaustive]
pub struct Outgoing {
    /// The request, with an absolute URI.
    pub request: Request<RequestBody>,
    /// Whether the request may be sent twice (by its method, key, or the caller's word). False.
    pub repeatable: bool,
    /// What is left of the call's deadline when the attempt starts. `Duration::MAX`: no deadline.
    pub time_left: Duration,
}

impl Outgoing {
    /// A request that may not be sent twice, without a deadline.
    pub fn new(request: Request<RequestBody>) -> Self {
        Self { request, repeatable: false, time_left: Duration::MAX }
    }
}

impl fmt::Debug for Outgoing {
    /// Without the URI, the headers, and the body, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("method", self.request.method())
            .field("repeatable", &self.repeatable)
            .field("time_left", &self.time_left)
            .finish_non_exhaustive()
    }
}

/// Marks, among a response's extensions, a 408 that was probably meant for an idle connection and not for the request
/// that met it. It says nothing about the upstream.
///
/// The pool sends a repeatable request to a fresh connection instead, once, unless the connection was in use a moment
/// (10 ms) before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale408;

/// A boxed future of a custom transport.
pub type ExchangeFuture<'a> = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, TransportError>> + Send + 'a>>;

/// A transport of one's own (tests, a proxy, another client).
pub trait Exchange: Send + Sync + 'static {
    /// Sends one request and returns the response's head with its body to come. Dropping the future must close or
    /// otherwise settle the connection; what is done before the future is returned, is done even if nobody polls it.
    /// `progress` says whether anything was handed over, should the future be dropped.
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a>;
}

/// What carries an upstream's requests.
#[derive(Clone)]
#[non_exhaustive]
pub enum Transport {
    /// The pool.
    Pool(Pool),
    /// A transport of one's own.
    Custom(Arc<dyn Exchange>),
}

impl Transport {
    /// Sends one request and returns the response's head with its body to come. A transport of one's own is called at once;
    /// the pool begins when the future is first polled.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub fn exchange<'a>(
        &'a self,
        outgoing: Outgoing,
        progress: &'a mut Progress,
    ) -> impl Future<Output = Result<Response<ResponseBody>, TransportError>> + Send + 'a {
        match self {
            Self::Pool(pool) => Exchanging::Pool { exchange: pool.exchange(outgoing, progress) },
            Self::Custom(custom) => Exchanging::Custom { exchange: custom.exchange(outgoing, progress) },
        }
    }

    /// The `Host` of every request, where the transport is ours to know it.
    pub(crate) fn host(&self) -> Option<&HeaderValue> {
        match self {
            Self::Pool(pool) => pool.host(),
            Self::Custom(_) => None,
        }
    }

    /// Closes what the pool holds; a transport of one's own is not told.
    pub fn close(&self) {
        if let Self::Pool(pool) = self {
            pool.close();
        }
    }

    /// The pool's numbers, where there is one.
    pub fn snapshot(&self) -> Option<PoolSnapshot> {
        match self {
            Self::Pool(pool) => Some(pool.snapshot()),
            Self::Custom(_) => None,
        }
    }
}

pin_project! {
    /// One exchange by either. No `async fn` around the pool's, which would hold and move the request once more.
    #[project = Either]
    enum Exchanging<'a, P> {
        Pool { #[pin] exchange: P },
        Custom { exchange: ExchangeFuture<'a> },
    }
}

impl<P> Future for Exchanging<'_, P>
where
    P: Future<Output = Result<Response<ResponseBody>, TransportError>>,
{
    type Output = P::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<P::Output> {
        match self.project() {
            Either::Pool { exchange } => exchange.poll(cx),
            Either::Custom { exchange } => exchange.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(pool) => pool.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}
