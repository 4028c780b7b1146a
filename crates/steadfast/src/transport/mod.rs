//! One attempt's bytes: a request goes out, a response or a typed fault comes back.
//!
//! The pool for one upstream is the transport that a client has unless it is given another. Whatever the transport,
//! its errors say in which phase the attempt failed and whether anything was sent, because that decides what may be
//! repeated.

mod error;

pub use error::TransportError;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

/// One attempt on its way to the upstream.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// The request, with an absolute URI.
    pub request: http::Request<Bytes>,
    /// Whether the request may be sent twice (by its method, key, or the caller's word).
    pub repeatable: bool,
    /// What is left of the call's deadline when the attempt starts.
    pub time_left: Duration,
}

/// A boxed future of a custom transport.
pub type ExchangeFuture<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<ResponseBody>, TransportError>> + Send + 'a>>;

/// A transport of one's own (tests, a proxy, another client).
pub trait Exchange: Send + Sync + 'static {
    /// Sends one request and returns the response's head with its body to come. Dropping the future must close or
    /// otherwise settle the connection. `progress` says whether anything was handed over, should the future be dropped.
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a>;
}

/// How far an attempt has got; read after its future was dropped.
#[derive(Debug, Default)]
pub struct Progress {
    handed_over: bool,
}

impl Progress {
    /// From here on the upstream may have seen some of the request.
    pub fn hand_over(&mut self) {
        self.handed_over = true;
    }

    /// Whether anything can have reached the upstream.
    pub fn sent(&self) -> steadfast_http::Sent {
        if self.handed_over { steadfast_http::Sent::Unknown } else { steadfast_http::Sent::No }
    }
}

/// A response's body on its way in.
#[derive(Debug)]
pub struct ResponseBody(Inner);

#[derive(Debug)]
enum Inner {
    Full(Option<Bytes>),
}

impl ResponseBody {
    /// A body that is there already.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Full(Some(bytes.into())))
    }
}
