//! The service that a layer makes: one call of the loop for each request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use steadfast_http::headers::Layers;
use steadfast_http::{CallContext, Repeat};
use tower_service::Service;

use super::{CallOptions, Manner};
use crate::call::Options;
use crate::client::exchange::{Prepared, Reading};
use crate::client::request::Ready;
use crate::client::{Shared, StreamingBody};
use crate::context;
use crate::error::Error;
use crate::transport::RequestBody;

/// A call of a layered service on its way.
///
/// Cancel safe: dropping it sends nothing further, drops the inner service's future, gives slot, place and budget back at
/// once, and is no verdict for the circuit breaker.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Response<StreamingBody>, Error>> + Send>>;

/// A service with Steadfast's policies around it. Clones, and all services of one layer, share the policies' state.
///
/// It is always ready: whether a call may go is decided in the call, where waiting can be measured, reported, and
/// dropped, and where nothing is reserved for a call that is never made. Each attempt asks a clone of the inner service
/// whether it is ready.
///
/// The response comes as soon as its head is there, with the [`Report`](crate::Report) among its extensions (that of the
/// outermost layer, where several are stacked); the deadline and the slot cover its body, as with
/// [`send_streaming`](crate::RequestBuilder::send_streaming).
#[derive(Clone)]
pub struct ClientService {
    shared: Arc<Shared>,
    manner: Manner,
}

impl ClientService {
    pub(super) fn new(shared: Arc<Shared>, manner: Manner) -> Self {
        Self { shared, manner }
    }

    /// The call as it is about to be made, or the first mistake in it.
    fn ready(&self, request: Request<RequestBody>) -> Result<Ready, Error> {
        let (mut head, body) = request.into_parts();
        let mut own = head.extensions.remove::<CallOptions>().unwrap_or_default();
        // A single policy adds nothing: it takes over the deadline alone.
        let adds = self.manner.decodes;
        let of_task = own.context.is_none() && !adds;
        if own.context.is_none() && adds {
            own.context = context::current();
        }
        let shared = Arc::clone(&self.shared);
        let mistaken = |mistake: String| Error::invalid_request(&self.shared.upstream.name, mistake);
        let context = own.context.as_ref();
        let layers = Layers {
            request_id: context.and_then(CallContext::request_id_header),
            bearer: context.and_then(CallContext::bearer).filter(|_| shared.settings.forward_authorization),
            call: Some(&head.headers),
            passed_on: true,
            ..Layers::default()
        };
        let headers = shared.plain_headers.with(&layers).map_err(|error| mistaken(error.to_string()))?;
        let retry = if self.manner.retries { own.retry } else { Some(false) };
        let repeat = Repeat::of(&head.method, headers.headers(), retry).map_err(|error| mistaken(error.to_string()))?;
        let options = Options {
            bell: None,
            key: "",
            timeout: own.timeout,
            deadline: None,
            inherited: own.inherited().map(|left| shared.upstream.clock.now() + left),
            of_task,
            timeout_is_evidence: own.timeout_is_evidence,
        };
        let prepared = Prepared {
            method: head.method,
            uri: head.uri,
            version: head.version,
            extensions: head.extensions,
            headers: Arc::new(headers),
            body,
            repeat,
            trace: context.and_then(CallContext::trace).cloned(),
            reading: if self.manner.decodes { Reading::AsItComes } else { Reading::Untouched },
        };
        Ok(Ready { shared, options, prepared })
    }
}

impl<B> Service<Request<B>> for ClientService
where
    B: Into<RequestBody>,
{
    type Response = Response<StreamingBody>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> CallFuture {
        let ready = self.ready(request.map(Into::into));
        Box::pin(async move {
            let streaming = ready?.stream().await?;
            let report = streaming.report().clone();
            // As it came, as if the layer were not there.
            let (head, body) = streaming.into_parts();
            let mut response = Response::from_parts(head, body);
            response.extensions_mut().insert(report);
            Ok(response)
        })
    }
}

impl fmt::Debug for ClientService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientService").field("upstream", &self.shared.upstream.name).finish_non_exhaustive()
    }
}
