//! One exchange: a connection from the pool, a share of one, or a fresh one; the request; the head of the response.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::sync::Arc;

use http::header::CONNECTION;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use steadfast_http::{Fault, Sent};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Inner;
use super::body::{Http1Body, PooledBody};
use super::connection::{Connection, Lease, Unanswered};
use super::driver::Driver;
use super::http2::{self, Share};
use super::stock::{Grant, Room};
use crate::transport::request_body::Spare;
use crate::transport::version::{Offer, Protocol};
use crate::transport::{Outgoing, Progress, RequestBody, ResponseBody, Stale408, TransportError};

type Answer = Result<Response<ResponseBody>, TransportError>;

/// Sends the request on the connection used last. If that proves to be dead, or answers with a 408 that was meant for
/// nobody, a fresh one is opened, once.
pub(crate) fn run(pool: &Inner, mut outgoing: Outgoing, progress: &mut Progress) -> impl Future<Output = Answer> {
    async move {
        let now = Instant::now();
        let deadline = now.checked_add(outgoing.time_left);
        let (grant, now) = match pool.stock.check_out(now) {
            Ok(grant) => (grant, now),
            Err(waiting) => (waiting.grant(pool.pool_timeout).await?, Instant::now()),
        };
        let connection = match grant {
            Grant::Connection(connection) => connection,
            // Boxed, as it is large and rare.
            Grant::Room(room) => return Box::pin(on_fresh(pool, room, outgoing.request, deadline, progress)).await,
            Grant::Share(share) => {
                return Box::pin(on_share(pool, share, outgoing.request, (now, deadline), progress)).await;
            }
        };
        pool.target.prepare(&mut outgoing.request);
        // hyper keeps what it began with, so a second try needs a copy. A connection that was in use a moment ago has hardly
        // been given up since, and what hyper had not begun with it gives back.
        let rested = connection.has_rested(now);
        let copy = rested.then(|| Box::new(Copy::of(&outgoing.request)));
        if rested {
            outgoing.request.body_mut().hesitate();
        }
        let mut lease = Lease::again(connection, &pool.stock, now, deadline, rested);
        attach(progress, &lease);
        match lease.send(outgoing.request).await {
            Ok(mut response) if is_stale_408(&response) => {
                match copy.filter(|_| outgoing.repeatable).and_then(|copy| copy.make()) {
                    Some(copy) => {
                        progress.hand_over();
                        drop((response, lease));
                        let second = Box::pin(again(pool, copy, deadline, progress)).await;
                        second.map_err(TransportError::sent_before)
                    }
                    None => {
                        response.extensions_mut().insert(Stale408);
                        answer(pool, lease, response, progress).await
                    }
                }
            }
            Ok(response) => answer(pool, lease, response, progress).await,
            Err(failed) if !failed.was_dead => Err(failed.error),
            Err(failed) => {
                match failed.given_back.map(|request| *request).or_else(|| copy.and_then(|copy| copy.make())) {
                    Some(request) => {
                        drop(lease);
                        Box::pin(again(pool, request, deadline, progress)).await
                    }
                    None => Err(failed.error),
                }
            }
        }
    }
}

/// Sends the request on an HTTP/2 connection that others use too. If that proves to be dead, it goes to a fresh one, once.
///
/// A connection that goes away in good order, as servers do with one that has carried its number of requests, leaves out
/// what it had not begun with, and that is nobody's failure. What was left out goes where others go now; if that goes
/// away too, to a fresh one, of which it is the first stream.
async fn on_share(
    pool: &Inner,
    mut share: Share,
    mut request: Request<RequestBody>,
    (mut now, deadline): (Instant, Option<Instant>),
    progress: &mut Progress,
) -> Answer {
    let mut has_moved = false;
    loop {
        // Always, as any connection may go away while the request is on its way.
        let copy = Copy::of(&request);
        let failed = match http2::send(share, request, &pool.target, (now, deadline), progress).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        if !failed.was_dead && !http2::is_left_out(&failed.error) {
            return Err(failed.error);
        }
        let Some(left_out) = failed.given_back.map(|request| *request).or_else(|| copy.make()) else {
            return Err(failed.error);
        };
        *progress = Progress::default();
        if failed.was_dead || has_moved {
            return again(pool, left_out, deadline, progress).await;
        }
        has_moved = true;
        let grant = match pool.stock.check_out(Instant::now()) {
            Ok(grant) => grant,
            Err(waiting) => waiting.grant(pool.pool_timeout).await?,
        };
        now = Instant::now();
        match grant {
            Grant::Share(next) => (share, request) = (next, left_out),
            Grant::Room(room) => return on_fresh(pool, room, left_out, deadline, progress).await,
            Grant::Connection(connection) => {
                let rested = connection.has_rested(now);
                let lease = Lease::again(connection, &pool.stock, now, deadline, rested);
                return on_lease(pool, lease, left_out, progress).await;
            }
        }
    }
}

/// The second try. It takes a fresh connection, as others from the pool may be as dead as the first; only of a full pool
/// it takes a share of a connection in use.
async fn again(
    pool: &Inner,
    request: Request<RequestBody>,
    deadline: Option<Instant>,
    progress: &mut Progress,
) -> Answer {
    let grant = match pool.stock.check_out_room() {
        Ok(room) => Grant::Room(room),
        Err(waiting) => waiting.grant(pool.pool_timeout).await?,
    };
    match grant {
        Grant::Room(room) => on_fresh(pool, room, request, deadline, progress).await,
        Grant::Share(share) => {
            let sent = http2::send(share, request, &pool.target, (Instant::now(), deadline), progress).await;
            sent.map_err(|failed| failed.error)
        }
        Grant::Connection(connection) => {
            let now = Instant::now();
            let rested = connection.has_rested(now);
            let lease = Lease::again(connection, &pool.stock, now, deadline, rested);
            on_lease(pool, lease, request, progress).await
        }
    }
}

/// Opens a connection and sends the request on it. Whatever happens then is the answer.
async fn on_fresh(
    pool: &Inner,
    room: Room,
    request: Request<RequestBody>,
    deadline: Option<Instant>,
    progress: &mut Progress,
) -> Answer {
    match open(pool, room).await? {
        Fresh::Http1(connection) => {
            let lease = Lease::first(connection, &pool.stock, Instant::now(), deadline);
            on_lease(pool, lease, request, progress).await
        }
        Fresh::Http2(share) => {
            let sent = http2::send(share, request, &pool.target, (Instant::now(), deadline), progress).await;
            sent.map_err(|failed: Unanswered| failed.error)
        }
    }
}

async fn on_lease(
    pool: &Inner,
    mut lease: Lease,
    mut request: Request<RequestBody>,
    progress: &mut Progress,
) -> Answer {
    pool.target.prepare(&mut request);
    attach(progress, &lease);
    match lease.send(request).await {
        Ok(response) => answer(pool, lease, response, progress).await,
        Err(failed) => Err(failed.error),
    }
}

/// A connection that was just opened, by what it speaks.
enum Fresh {
    Http1(Connection),
    Http2(Share),
}

async fn open(pool: &Inner, mut room: Room) -> Result<Fresh, TransportError> {
    let local =
        |error: Box<dyn StdError + Send + Sync>| TransportError::new(Fault::LocalProtocol, Sent::No).with_source(error);
    let runtime = Handle::try_current().map_err(|error| local(error.into()))?;
    let offer = pool.stock.offer();
    let opened = match pool.connector.open(offer).await {
        Ok(opened) => opened,
        Err(error) => {
            room.failed();
            return Err(error);
        }
    };
    match opened.protocol {
        Protocol::Http2 => return http2::start(opened, room, pool.pings, &runtime).await.map(Fresh::Http2),
        Protocol::Http1 if offer == Offer::Http2 => {
            // The socket first, as the room says that it is closed.
            drop(opened);
            room.failed();
            let error = "the upstream did not choose HTTP/2, and nothing else is allowed (http_version)";
            return Err(TransportError::new(Fault::Tls, Sent::No).with_source(error));
        }
        Protocol::Http1 => room.speaks_http1(),
    }
    let tls = opened.stream.tls_state();
    let (sender, wire) = http1::Builder::new()
        .handshake(TokioIo::new(opened.stream))
        .await
        .map_err(|error: hyper::Error| local(error.into()))?;
    let driver = Driver::new(wire, Arc::clone(&opened.meter), room);
    Ok(Fresh::Http1(Connection::new(sender, opened.meter, runtime.spawn(driver), tls)))
}

/// The same request, for a second try.
struct Copy {
    head: Request<()>,
    body: Spare,
}

impl Copy {
    fn of(request: &Request<RequestBody>) -> Self {
        let mut head = Request::new(());
        *head.method_mut() = request.method().clone();
        *head.uri_mut() = request.uri().clone();
        *head.version_mut() = request.version();
        *head.headers_mut() = request.headers().clone();
        Self { head, body: request.body().spare() }
    }

    /// The request, where its body can be sent once more. The first try's reads no further then.
    fn make(self) -> Option<Request<RequestBody>> {
        let body = self.body.again()?;
        Some(self.head.map(|()| body))
    }
}

fn attach(progress: &mut Progress, lease: &Lease) {
    if let Some(meter) = lease.meter() {
        progress.attach(meter);
    }
}

/// The head is there. A response without a body gives its connection back before it is returned.
fn answer(
    pool: &Inner,
    mut lease: Lease,
    response: Response<Incoming>,
    progress: &mut Progress,
) -> impl Future<Output = Answer> {
    async move {
        progress.hand_over();
        if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
            && let Some(refusal) = pool.connector.refusal()
        {
            // From a proxy that was to pass the request on: not the upstream's answer.
            return Err(refusal);
        }
        let mut lease = if response.body().is_end_stream() {
            poll_fn(|cx| lease.poll_settle(cx)).await;
            None
        } else {
            Some(lease)
        };
        Ok(response.map(|incoming| ResponseBody::pooled(PooledBody::Http1(Http1Body::new(incoming, lease.take())))))
    }
}

/// A server that gives an idle connection up may say so with a 408 that crosses our request (RFC 9110 section 15.5.9).
fn is_stale_408(response: &Response<Incoming>) -> bool {
    response.status() == StatusCode::REQUEST_TIMEOUT && says_close(response.headers())
}

fn says_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}
