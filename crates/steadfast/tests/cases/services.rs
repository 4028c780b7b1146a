//! tower services as transports: what their errors mean, and what is asked of them.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Pending, Ready, pending, ready};
use std::io::{self, ErrorKind as Io};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use steadfast::testing::VirtualClock;
use steadfast::transport::{RequestBody, ServiceTransport, TransportError};
use steadfast::{BoxError, ErrorKind, Fault, Sent, ServiceClient};
use tower::{Service, service_fn};

use crate::harness::{CallResult, kind, outcomes, report, secs, status};

/// One POST through this transport; a POST is repeated only where nothing was sent.
fn post(transport: impl steadfast::transport::Exchange) -> CallResult {
    let clock = VirtualClock::new();
    let builder = ServiceClient::builder("http://billing.test").name("billing").clock(clock.clone()).retries(1);
    let client = builder.transport(transport).build().unwrap();
    clock.run(client.post("/x").body("abc").send()).unwrap()
}

/// What a failed call says of its first attempt, and how many there were.
fn first(result: &CallResult) -> (String, Sent, u32) {
    let attempt = report(result).attempts().next().expect("an attempt");
    (attempt.outcome.name().into_owned(), attempt.sent, report(result).attempt_count())
}

/// A service whose every call fails like this.
fn failing<E: Into<BoxError> + Send + 'static>(
    error: impl Fn() -> E + Clone + Send + 'static,
) -> impl Service<Request<RequestBody>, Response = Response<Full<Bytes>>, Error = E, Future: Send> + Clone + Send + 'static
{
    service_fn(move |_| ready(Err::<Response<Full<Bytes>>, E>(error())))
}

/// Makes an error.
type Make = fn() -> BoxError;

#[derive(Debug)]
struct Wrapped(BoxError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("something failed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// An error whose source is itself, for ever.
#[derive(Debug)]
struct Circle;

impl std::fmt::Display for Circle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("round and round")
    }
}

impl std::error::Error for Circle {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

/// What hyper says of a request that it never began with, as its connection was gone.
fn never_begun() -> BoxError {
    futures_executor::block_on(async {
        let (io, _other_side) = tokio::io::duplex(64);
        let handshake = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(io)).await;
        let (mut sender, connection) = handshake.unwrap();
        drop(connection);
        sender.send_request(Request::new(Full::new(Bytes::from("abc")))).await.unwrap_err().into()
    })
}

#[test]
fn c2_3_what_a_services_error_says_of_what_was_sent() {
    let cases: [(Make, &str, Sent, u32); 15] = [
        (never_begun, "reset", Sent::No, 2),
        (|| Wrapped(never_begun()).into(), "reset", Sent::No, 2),
        (|| TransportError::new(Fault::Dns, Sent::No).into(), "dns", Sent::No, 2),
        (|| Wrapped(TransportError::new(Fault::Tls, Sent::No).into()).into(), "tls", Sent::No, 2),
        (|| TransportError::new(Fault::Protocol, Sent::Unknown).into(), "protocol", Sent::Unknown, 1),
        // An io::Error hides what it wraps from `source`; it is found all the same, and comes second.
        (|| io::Error::other(TransportError::new(Fault::GoAway, Sent::No)).into(), "goaway", Sent::No, 2),
        (
            || io::Error::new(Io::BrokenPipe, TransportError::new(Fault::GoAway, Sent::No)).into(),
            "reset",
            Sent::Unknown,
            1,
        ),
        (|| io::Error::from(Io::ConnectionRefused).into(), "connect", Sent::Unknown, 1),
        (|| Wrapped(io::Error::from(Io::ConnectionReset).into()).into(), "reset", Sent::Unknown, 1),
        (|| io::Error::from(Io::TimedOut).into(), "read_timeout", Sent::Unknown, 1),
        (|| io::Error::from(Io::InvalidData).into(), "protocol", Sent::Unknown, 1),
        (|| h2::Error::from(h2::Reason::PROTOCOL_ERROR).into(), "protocol", Sent::Unknown, 1),
        (|| "no idea".into(), "reset", Sent::Unknown, 1),
        (|| Wrapped("no idea".into()).into(), "reset", Sent::Unknown, 1),
        (|| Circle.into(), "reset", Sent::Unknown, 1),
    ];
    for (make, outcome, sent, attempts) in cases {
        let result = post(ServiceTransport::new(failing(make)));
        assert_eq!(kind(&result), ErrorKind::Unreachable);
        assert_eq!(first(&result), (outcome.to_owned(), sent, attempts), "{}", make());
    }
}

#[test]
fn c2_3_the_user_says_what_errors_mean_before_anybody_else() {
    let refused = || io::Error::from(Io::ConnectionRefused);
    let means = |fault, sent| {
        post(ServiceTransport::new(failing(refused)).with_errors(move |error| {
            (error.downcast_ref::<io::Error>()?.kind() == Io::ConnectionRefused).then_some((fault, sent))
        }))
    };
    assert_eq!(first(&means(Fault::Connect, Sent::No)), ("connect".to_owned(), Sent::No, 2));
    assert_eq!(first(&means(Fault::Protocol, Sent::Unknown)), ("protocol".to_owned(), Sent::Unknown, 1));
    let silent = post(ServiceTransport::new(failing(refused)).with_errors(|_| None));
    assert_eq!(first(&silent), ("connect".to_owned(), Sent::Unknown, 1));
}

/// A service that is never ready, or is and then never answers.
#[derive(Clone)]
struct Stuck {
    ready: bool,
}

impl Service<Request<RequestBody>> for Stuck {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pending<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        assert!(self.ready, "a service may be called only when it is ready");
        pending()
    }
}

/// 1.5, 2.3: what was never called was never sent, and the wait for it is the attempt's.
#[test]
fn c2_3_a_timeout_before_the_call_has_sent_nothing() {
    for (ready, sent, attempts) in [(false, Sent::No, 2), (true, Sent::Unknown, 1)] {
        let clock = VirtualClock::new();
        let client = ServiceClient::builder("http://billing.test").clock(clock.clone()).retries(1);
        let client = client.attempt_timeout(secs(1)).service(Stuck { ready }).build().unwrap();
        let result = clock.run(client.post("/x").send()).unwrap();
        assert_eq!(kind(&result), ErrorKind::Unreachable);
        assert_eq!(first(&result), ("attempt_timeout".to_owned(), sent, attempts));
        assert_eq!(clock.armed_timers(), 0);
    }
}

/// A service whose readiness fails, and which counts its clones' calls.
#[derive(Clone)]
struct Unready(Arc<AtomicU32>);

impl Service<Request<RequestBody>> for Unready {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Err("its worker is gone".into()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        self.0.fetch_add(1, Ordering::SeqCst);
        ready(Ok(Response::default()))
    }
}

#[test]
fn c2_3_a_service_that_fails_to_be_ready_is_not_called() {
    let calls = Arc::new(AtomicU32::new(0));
    let result = post(ServiceTransport::new(Unready(Arc::clone(&calls))));
    assert_eq!(first(&result), ("connect".to_owned(), Sent::No, 2));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// 2.8: each attempt sends the whole request, with its bytes; a body in pieces too.
#[test]
fn c2_8_each_attempt_sends_the_same_request() {
    let service = |seen: Arc<std::sync::Mutex<Vec<(String, Bytes)>>>| {
        service_fn(move |request: Request<RequestBody>| {
            let seen = Arc::clone(&seen);
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await?.to_bytes();
                let mut seen = seen.lock().unwrap();
                seen.push((format!("{} {} {:?}", head.method, head.uri, head.headers.get("x-own")), bytes));
                let status = if seen.len() < 3 { 503 } else { 200 };
                let mut response = Response::new(Full::new(Bytes::from(format!("answer {}", seen.len()))));
                *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
                Ok::<_, BoxError>(response)
            }
        })
    };
    let pieces = || {
        let pieces = [Ok::<_, io::Error>(Frame::data(Bytes::from("ab"))), Ok(Frame::data(Bytes::from("c")))];
        RequestBody::pieces(StreamBody::new(futures_util::stream::iter(pieces)))
    };
    for body in [RequestBody::from("abc"), pieces()] {
        let (clock, seen) = (VirtualClock::new(), Arc::default());
        let client = ServiceClient::builder("http://billing.test/api").clock(clock.clone());
        let client = client.service(service(Arc::clone(&seen))).build().unwrap();
        let result = clock.run(client.put("/x?y=1").header("x-own", "1").body(body).send()).unwrap();
        assert_eq!((status(&result), outcomes(&result)), (200, ["503", "503", "200"].map(str::to_owned).to_vec()));
        assert_eq!(result.unwrap().text(), "answer 3");
        let expected = ("PUT http://billing.test/api/x?y=1 Some(\"1\")".to_owned(), Bytes::from("abc"));
        assert_eq!(*seen.lock().unwrap(), vec![expected; 3]);
    }
}

/// A body that is `Send` and not `Sync`, and that fails after its first piece.
struct Cut<E> {
    not_sync: Cell<u32>,
    error: fn() -> E,
}

impl<E> Body for Cut<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let polled = self.not_sync.replace(self.not_sync.get() + 1);
        Poll::Ready(Some(if polled == 0 { Ok(Frame::data(Bytes::from("half"))) } else { Err((self.error)()) }))
    }
}

/// 2.4: a body that is cut is repaired by another attempt, whatever cut it.
#[test]
fn c2_4_a_body_that_fails_says_how() {
    let cases: [(Make, &str); 4] = [
        (|| io::Error::from(Io::ConnectionReset).into(), "incomplete"),
        (|| "no idea".into(), "incomplete"),
        (|| io::Error::from(Io::TimedOut).into(), "read_timeout"),
        (|| TransportError::new(Fault::Decode, Sent::Yes).into(), "decode"),
    ];
    for (error, outcome) in cases {
        let cut = service_fn(move |_: Request<RequestBody>| {
            ready(Ok::<_, Infallible>(Response::new(Cut { not_sync: Cell::new(0), error })))
        });
        let result = post(ServiceTransport::new(cut));
        assert_eq!(first(&result), (outcome.to_owned(), Sent::Yes, 1));
    }
}

/// 2.12, 11.3: what a client or guard of ours further in refuses is no failure of the upstream, and is not retried.
#[test]
fn c2_12_a_refusal_further_in_is_not_retried() {
    let clock = VirtualClock::new();
    let inner = ServiceClient::builder("http://inner.test").clock(clock.clone()).service(Stuck { ready: true });
    let inner = inner.name("inner").build().unwrap();
    inner.force_open();
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let outer = service_fn(move |_: Request<RequestBody>| {
        count.fetch_add(1, Ordering::SeqCst);
        let call = inner.get("/").send();
        async move { call.await.map(|_| Response::new(Full::new(Bytes::new()))) }
    });
    let client = ServiceClient::builder("http://outer.test").clock(clock.clone()).service(outer).build().unwrap();
    let result = clock.run(client.get("/").send()).unwrap();
    // Its word is the answer: which breaker, and when to come back.
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.upstream(), error.attempts()), (ErrorKind::CircuitOpen, "inner", 0));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(client.snapshot().breaker.failures, 0);
}

#[test]
fn a_service_need_not_be_sync() {
    fn is_exchange<T: steadfast::transport::Exchange>(_: &T) {}
    let not_sync = Cell::new(Duration::ZERO);
    let service = service_fn(move |_: Request<RequestBody>| {
        not_sync.set(secs(1));
        ready(Ok::<_, Infallible>(Response::new(Full::new(Bytes::new()))))
    });
    let transport = ServiceTransport::new(service);
    is_exchange(&transport);
    assert_eq!(status(&post(transport)), 200);
}
