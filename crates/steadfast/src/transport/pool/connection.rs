//! One connection as its user holds it.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use steadfast_http::{Fault, Sent};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::faults::before_head;
use super::meter::{Meter, Phase};
use super::stock::Stock;
use crate::transport::connect::TlsState;
use crate::transport::request_body::Spare;
use crate::transport::{RequestBody, TransportError};

/// An open connection. Dropped while idle it closes in good order; dropped in use it is cut off at once.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<RequestBody>,
    meter: Arc<Meter>,
    task: JoinHandle<()>,
    /// `None`: plain TCP. Boxed, as a connection is handed about with each request.
    tls: Option<Box<TlsState>>,
}

impl Connection {
    pub(crate) fn new(
        sender: SendRequest<RequestBody>,
        meter: Arc<Meter>,
        task: JoinHandle<()>,
        tls: Option<TlsState>,
    ) -> Self {
        Self { sender, meter, task, tls: tls.map(Box::new) }
    }

    /// Whether it was opened with other certificates than count now.
    pub(crate) fn is_outdated(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_outdated())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(crate) fn is_usable(&self, now: Instant) -> bool {
        self.sender.is_ready() && !self.meter.is_expired(now)
    }

    /// Whether it lay idle for long enough to have been given up by the upstream.
    pub(crate) fn has_rested(&self, now: Instant) -> bool {
        self.meter.has_rested(now)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.meter.is_idle() {
            self.meter.gate().cancel();
            self.task.abort();
        }
    }
}

/// The use of one connection for one request and its response.
#[derive(Debug)]
pub(crate) struct Lease {
    // `None` only once it was given back.
    connection: Option<Connection>,
    stock: Arc<Stock>,
    /// The request's body, if it comes in pieces and was still being sent when the head of the response came.
    upload: Option<Spare>,
}

/// A request that got no response head.
pub(crate) struct Unanswered {
    pub(crate) error: TransportError,
    /// The request, where hyper had not begun with it. Boxed, as a response is moved about in its place.
    pub(crate) given_back: Option<Box<Request<RequestBody>>>,
    /// Whether the connection was found closed before anything was sent.
    pub(crate) was_dead: bool,
}

impl Lease {
    /// The use of a connection from the pool; `rested`: it lay idle for a while, and is looked at before it is used.
    pub(crate) fn again(
        connection: Connection,
        stock: &Arc<Stock>,
        now: Instant,
        deadline: Option<Instant>,
        rested: bool,
    ) -> Self {
        connection.meter.begin(now, deadline, rested);
        Self { connection: Some(connection), stock: Arc::clone(stock), upload: None }
    }

    /// The first use of a connection.
    pub(crate) fn first(connection: Connection, stock: &Arc<Stock>, now: Instant, deadline: Option<Instant>) -> Self {
        connection.meter.begin(now, deadline, false);
        Self { connection: Some(connection), stock: Arc::clone(stock), upload: None }
    }

    pub(crate) fn meter(&self) -> Option<&Arc<Meter>> {
        self.connection.as_ref().map(|connection| &connection.meter)
    }

    /// Sends the request and waits for the head.
    pub(crate) fn send(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, Unanswered>> {
        async move {
            let Some(connection) = &mut self.connection else {
                let error = TransportError::new(Fault::LocalProtocol, Sent::No);
                return Err(Unanswered { error, given_back: Some(Box::new(request)), was_dead: false });
            };
            let upload = request.body().under_way();
            request.body_mut().watch_for(&connection.meter);
            let mut refused = match connection.sender.try_send_request(request).await {
                Ok(response) => {
                    connection.meter.pause();
                    self.upload = upload.filter(Spare::is_under_way);
                    return Ok(response);
                }
                Err(refused) => refused,
            };
            let given_back = refused.take_message().map(Box::new);
            // What hyper holds in its buffer may not follow after this has been said.
            let sent = match connection.meter.gate().cancel() {
                Sent::No => Sent::No,
                _ if given_back.is_some() => Sent::No,
                sent => sent,
            };
            if let Some(limit) = connection.meter.closed_by() {
                return Err(Unanswered { error: TransportError::new(limit, sent), given_back, was_dead: false });
            }
            let source = refused.into_error();
            let error = match connection.tls.as_ref().and_then(|tls| tls.failure()) {
                Some(failure) => TransportError::new(failure.fault(), sent).with_source(failure),
                None => TransportError::new(before_head(&source), sent).with_source(source),
            };
            Err(Unanswered { error, given_back, was_dead: sent == Sent::No })
        }
    }

    /// The user begins to wait for the next piece of the body.
    pub(crate) fn on_wait(&self) {
        if let Some(connection) = &self.connection {
            connection.meter.wait(Phase::Awaited);
        }
    }

    /// The user has got a piece.
    pub(crate) fn on_piece(&self) {
        if let Some(connection) = &self.connection {
            connection.meter.pause();
        }
    }

    /// Which limit closed the connection.
    pub(crate) fn closed_by(&self) -> Option<Fault> {
        self.connection.as_ref().and_then(|connection| connection.meter.closed_by())
    }

    /// After the end of the response: ready when the connection is back in the pool, or is closing.
    ///
    /// hyper makes a connection usable again a moment after it has delivered the end of the body. Waiting for that
    /// moment keeps a caller that sends one request after the other on one connection.
    pub(crate) fn poll_settle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(()) };
        match connection.sender.poll_ready(cx) {
            Poll::Ready(Ok(())) => {
                connection.meter.rest();
                if let Some(connection) = self.connection.take() {
                    self.stock.check_in(connection);
                }
                Poll::Ready(())
            }
            Poll::Ready(Err(_)) => {
                self.connection = None;
                Poll::Ready(())
            }
            Poll::Pending => {
                connection.meter.wait(Phase::Settling);
                // The upstream answered without taking the whole request, or before there was all of it: it is not made to
                // wait for a rest that it did not ask for, and neither is the caller.
                if connection.meter.is_blocked() || self.upload.as_ref().is_some_and(Spare::is_under_way) {
                    self.connection = None;
                    return Poll::Ready(());
                }
                Poll::Pending
            }
        }
    }
}
