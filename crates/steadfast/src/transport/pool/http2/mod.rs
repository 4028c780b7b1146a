//! HTTP/2: connections that many exchanges share, on the `h2` crate.
//!
//! Why on `h2` and not on hyper's client over it: hyper starts a task for each request and keeps the stream's handles
//! to itself. Here the connection's one task ([`driver`]) is all there is; the handles of a stream lie in a cell
//! ([`stream`]) that its user and that task share, so that a deadline ends the stream even if nobody polls it; and an
//! error says without detour what the upstream meant.
//!
//! - [`link`] is the connection as its users share it: who may open a stream is the stock's to decide.
//! - [`upload`] sends the request's body piece by piece, as the upstream's windows allow.
//! - [`body`] is the response's body.
//!
//! Limits: no server push (it is switched off), no CONNECT, no priorities.

mod body;
mod driver;
mod faults;
mod incoming;
pub(super) mod link;
mod pings;
mod registry;
mod stream;
mod upload;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::Builder;
use http::{Request, Response};
use http_body::Body;
use steadfast_http::{Fault, Sent};
use tokio::runtime::Handle;
use tokio::time::Instant;

pub(crate) use body::StreamBody;
pub(super) use faults::is_left_out;
pub(super) use link::Share;

use self::driver::Driver;
use self::link::{Link, UNSETTLED};
use self::pings::Pings;
use self::stream::Stream;
use self::upload::Upload;
use super::connection::Unanswered;
use super::stock::Room;
use super::target::Target;
use crate::transport::connect::Opened;
use crate::transport::{Progress, RequestBody, ResponseBody, TransportError};

/// What the upstream may send of one response before it is read: a slow reader holds so much at most.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// The same for all responses of a connection: room for 1024 unread ones, so that those do not hold up the others.
const CONNECTION_WINDOW: u32 = 1024 * STREAM_WINDOW;
/// What the pieces of unread responses may cost beyond their bytes, on one connection: h2 counts 256 bytes for each, less
/// its length. Its own bound is half the connection's window, which is made for long pieces and not for those of a byte.
const SMALL_PIECES: usize = 64 * 1024 * 1024;
/// The largest head of a response.
const MAX_HEAD: u32 = 256 * 1024;
/// Streams that we reset are remembered for so long, and so many of them at most, as the upstream may still answer: what
/// comes for one that was forgotten counts against the upstream.
const REMEMBERED_RESETS: usize = 1024;
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// When a connection is asked whether it is still there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingPlan {
    /// After so long without a byte while a stream is open.
    pub(crate) interval: Duration,
    /// How long it may take to answer.
    pub(crate) timeout: Duration,
}

/// Begins to speak HTTP/2 on a new connection, and takes the first share of it.
pub(super) async fn start(
    opened: Opened,
    mut room: Room,
    pings: Option<PingPlan>,
    runtime: &Handle,
) -> Result<Share, TransportError> {
    let tls = opened.stream.tls_state();
    let started = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(UNSETTLED)
        .data_frame_budget(SMALL_PIECES)
        .max_header_list_size(MAX_HEAD)
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        .reset_stream_duration(REMEMBERED_FOR)
        .enable_push(false)
        .handshake::<_, Bytes>(opened.stream)
        .await;
    let (sender, mut wire) = match started {
        Ok(started) => started,
        Err(error) => {
            room.failed();
            return Err(TransportError::new(Fault::Reset, Sent::No).with_source(error));
        }
    };
    let pings = pings.and_then(|plan| Some(Pings::new(wire.ping_pong()?, plan)));
    let link = Arc::new(Link::new(sender, opened.meter, tls, runtime.clone(), pings.as_ref().map(Pings::interval)));
    let share = room.adopt(&link);
    runtime.spawn(Driver::new(wire, link, pings, room));
    share.ok_or_else(|| TransportError::new(Fault::LocalProtocol, Sent::No))
}

/// Sends a request on its share of a connection, and waits for the head.
pub(super) async fn send(
    share: Share,
    request: Request<RequestBody>,
    target: &Target,
    (now, deadline): (Instant, Option<Instant>),
    progress: &mut Progress,
) -> Result<Response<ResponseBody>, Unanswered> {
    let link = Arc::clone(share.link());
    // Asked beforehand, as h2 does not give back what it refuses.
    let mut sender = match link.sender() {
        Ok(sender) => sender,
        Err(error) => {
            share.on_refused(error.reason());
            let error = TransportError::new(faults::before_stream(&error), Sent::No).with_source(error);
            return Err(Unanswered { error, given_back: Some(Box::new(request)), was_dead: true });
        }
    };
    let unsent = |error: TransportError| Unanswered { error, given_back: None, was_dead: false };
    let request = target.prepare_http2(request).map_err(unsent)?;
    let (parts, body) = request.into_parts();
    let mark = link.meter().writes();
    if share.is_stale(now) {
        // Its first write looks at the socket before, as it may have been given up.
        link.meter().gate().close(true);
    }
    progress.hand_over();
    let is_whole = body.is_end_stream();
    let (answer, outlet) = match sender.send_request(Request::from_parts(parts, ()), is_whole) {
        Ok(handles) => handles,
        Err(error) => {
            // The connection has ended since it was asked, or the request is not one.
            let fault = faults::before_stream(&error);
            let was_dead = fault != Fault::LocalProtocol;
            if was_dead {
                share.on_refused(error.reason());
            }
            let error = TransportError::new(fault, Sent::No).with_source(error);
            return Err(Unanswered { error, given_back: None, was_dead });
        }
    };
    drop(sender);
    let stream = Stream::begin(share, answer, Some(outlet).filter(|_| !is_whole), now, deadline);
    let mut upload = Some(Upload::new(body)).filter(|_| !is_whole);
    let answered = poll_fn(|cx| {
        if let Some(running) = &mut upload
            && let Poll::Ready(ended) = running.poll(&stream, cx)
        {
            upload = None;
            if let Err(error) = ended {
                let error = TransportError::new(Fault::LocalProtocol, Sent::Unknown).with_source(error);
                return Poll::Ready(Err(Failed::Local(error)));
            }
        }
        stream.poll_head(cx).map(|answered| answered.map_err(Failed::Remote))
    })
    .await;
    let wire = match answered {
        Ok(response) => return Ok(answer_with(stream, response, upload)),
        Err(Failed::Local(error) | Failed::Remote(stream::Failure::Limit(error))) => return Err(unsent(error)),
        Err(Failed::Remote(stream::Failure::Wire(error))) => error,
    };
    if wire.reason() == Some(Reason::HTTP_1_1_REQUIRED) && wire.is_remote() {
        stream.on_http1_required();
    }
    let (mut fault, mut sent) = faults::before_head(&wire);
    let failure = link.tls_failure();
    if let Some(failure) = &failure {
        fault = failure.fault();
    }
    if wire.is_io() && link.meter().writes() == mark {
        // Proof that nothing went out: nothing was written since, and nothing can be any more.
        link.cut().await;
        if link.meter().writes() == mark {
            sent = Sent::No;
        }
    }
    let was_dead = wire.is_io() && sent == Sent::No;
    let error = TransportError::new(fault, sent);
    let error = match failure {
        Some(failure) => error.with_source(failure),
        None => error.with_source(wire),
    };
    Err(Unanswered { error, given_back: None, was_dead })
}

enum Failed {
    Local(TransportError),
    Remote(stream::Failure),
}

/// The head is there. A stream without a body is over; one whose request is still under way goes on with it on its own.
fn answer_with(stream: Stream, response: Response<stream::Head>, upload: Option<Upload>) -> Response<ResponseBody> {
    response.map(|head| {
        if head.is_over {
            return ResponseBody::full(Bytes::new());
        }
        if let Some(upload) = upload {
            stream.detach(upload);
        }
        ResponseBody::pooled(super::PooledBody::Http2(StreamBody::new(stream, head.length)))
    })
}
