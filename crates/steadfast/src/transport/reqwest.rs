//! A [`reqwest::Client`] as a transport (feature `reqwest`).
//!
//! For services that must send through a client they have: its TLS, its proxies, its resolver. Everything above the wire
//! is Steadfast's.
//!
//! What a `reqwest::Client` does by itself must be off, because it would hide attempts from the budget, the breaker and
//! the report, or send what contract and caller do not expect: following redirects, retrying, decompressing, a
//! `Referer`. A client does not tell whether it is, so [`ReqwestTransport::configure`] builds one with all of it switched
//! off. A cookie jar (reqwest's feature `cookies`) is off unless the builder was given one; don't.
//!
//! # What is "sent"?
//!
//! | reqwest says | fault | sent |
//! |---|---|---|
//! | `is_builder` | `LocalProtocol` | no |
//! | `is_dns` | `Dns` | no |
//! | `is_connect` | `Connect`, `ConnectTimeout`, `Tls` or `Certificate` | no |
//! | `is_timeout`, of its own `timeout` or `read_timeout` | `ReadTimeout` | unknown |
//! | `is_redirect` | `LocalProtocol` | unknown |
//! | `is_decode` | `Decode` | unknown |
//! | anything else | as for any service (`transport::service`): the errors of hyper, h2 and io | the same |
//! | an error of the response's body | `ReadTimeout`, `Protocol`, `Decode`, else `Incomplete` | yes |
//!
//! A certificate is told apart from other TLS failures where reqwest uses the rustls that Steadfast uses.
//!
//! # Which limits apply
//!
//! The deadline and `attempt_timeout`. The limits of single phases, TLS and proxies are reqwest's own: set `connect_timeout`
//! and `read_timeout` on its builder, and leave its `timeout` alone, which Steadfast's `attempt_timeout` replaces.

use std::error::Error as StdError;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use reqwest::{Body, Client, ClientBuilder, redirect, retry};
use steadfast_http::{Fault, Sent};

use super::foreign::{self, ForeignBody, Meaning};
use super::{Exchange, ExchangeFuture, Outgoing, Progress, RequestBody, ResponseBody, TransportError};

/// A reqwest client as a transport. See the [module](self) for what must be off in it, and what its errors mean.
///
/// ```no_run
/// use std::time::Duration;
/// use steadfast::ServiceClient;
/// use steadfast::transport::ReqwestTransport;
///
/// # fn client() -> Result<ServiceClient, Box<dyn std::error::Error>> {
/// let reqwest = reqwest::Client::builder().connect_timeout(Duration::from_secs(2)).read_timeout(Duration::from_secs(10));
/// let billing = ServiceClient::builder("http://billing.internal")
///     .transport(ReqwestTransport::configure(reqwest)?)
///     .attempt_timeout(Duration::from_secs(10))
///     .build()?;
/// # Ok(billing)
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReqwestTransport(Client);

impl ReqwestTransport {
    /// A transport over this client, in which redirects, retries, decompression, `Referer` and cookies must be off.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// A transport over a client that is built with redirects, retries, decompression and `Referer` switched off.
    ///
    /// # Errors
    /// reqwest's own, where its client cannot be built.
    pub fn configure(builder: ClientBuilder) -> Result<Self, reqwest::Error> {
        let builder = builder.redirect(redirect::Policy::none()).retry(retry::never()).referer(false);
        builder.no_gzip().no_brotli().no_zstd().no_deflate().build().map(Self)
    }
}

impl Exchange for ReqwestTransport {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(outgoing.request.map(to_reqwest)).map_err(of_reqwest)?;
            progress.hand_over();
            let response = self.0.execute(request).await.map_err(of_reqwest)?;
            let known: Arc<Meaning> = Arc::new(meaning);
            let body = |body: Body| ForeignBody::new(body.map_err(reqwest::Error::without_url), Some(known), None);
            Ok(Response::<Body>::from(response).map(|received| ResponseBody::boxed(body(received))))
        })
    }
}

/// A whole body stays whole, so that reqwest knows its length.
fn to_reqwest(body: RequestBody) -> Body {
    match body.as_bytes() {
        Some(bytes) => Body::from(Bytes::clone(bytes)),
        None => Body::wrap(body),
    }
}

/// Without the URL, whose query may hold secrets.
fn of_reqwest(error: reqwest::Error) -> TransportError {
    foreign::of_call(error.without_url().into(), Some(&meaning))
}

/// What reqwest knows that the errors behind its own do not say.
fn meaning(error: &(dyn StdError + 'static)) -> Option<(Fault, Sent)> {
    let error = error.downcast_ref::<reqwest::Error>()?;
    if error.is_builder() {
        return Some((Fault::LocalProtocol, Sent::No));
    }
    if error.is_dns() {
        return Some((Fault::Dns, Sent::No));
    }
    if error.is_connect() {
        let fault = match foreign::of_connecting(foreign::chain(error)) {
            Fault::Connect if error.is_timeout() => Fault::ConnectTimeout,
            fault => fault,
        };
        return Some((fault, Sent::No));
    }
    if error.is_timeout() {
        return Some((Fault::ReadTimeout, Sent::Unknown));
    }
    if error.is_redirect() {
        return Some((Fault::LocalProtocol, Sent::Unknown));
    }
    // Its own decoders fail with an io::Error of their own; a body that was cut is hyper's.
    let of_hyper = foreign::chain(error).any(|error| error.is::<hyper::Error>());
    (error.is_decode() && !of_hyper).then_some((Fault::Decode, Sent::Unknown))
}
