//! Whole clients over real sockets and threads: under stress, from several runtimes, and at the edges of framing.

use std::collections::HashSet;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response};
use http_body::{Body, Frame};
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, ResponseBody, TransportError};
use steadfast::{ErrorKind, ServiceClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::server::*;

const SLOTS: usize = 4;

/// What the upstream of the stress test knows. An attempt whose call was dropped is not in flight any more, though its
/// server may not have heard of it yet.
#[derive(Default)]
struct Ledger {
    in_flight: HashSet<u64>,
    dropped: HashSet<u64>,
    peak: usize,
}

struct Upstream {
    ledger: Mutex<Ledger>,
    calm: AtomicBool,
    open: AtomicUsize,
}

impl Upstream {
    /// Serves one connection: each request is answered, refused with a 503, answered late, or met with a reset.
    async fn serve(&self, mut stream: TcpStream, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut buffer = vec![0; 4096];
        let mut filled = 0;
        loop {
            match stream.read(&mut buffer[filled..]).await {
                Ok(read) if read > 0 => filled += read,
                _ => return,
            }
            if !buffer[..filled].ends_with(b"\r\n\r\n") {
                continue;
            }
            let head = String::from_utf8_lossy(&buffer[..filled]).into_owned();
            filled = 0;
            let id = head.split_once("x-call: ").and_then(|(_, rest)| rest.lines().next()?.parse().ok()).unwrap();
            self.begin(id);
            let fate = if self.calm.load(Ordering::SeqCst) { 99 } else { random.u32(0..100) };
            if fate < 12 {
                sleep(Duration::from_micros(random.u64(0..3_000))).await;
            }
            // Before the client can know.
            self.ledger.lock().unwrap().in_flight.remove(&id);
            let answer: &[u8] = match fate {
                12..20 => b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nno",
                20..24 => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
                24..28 => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            };
            if stream.write_all(answer).await.is_err() || (24..28).contains(&fate) {
                return;
            }
        }
    }

    fn begin(&self, id: u64) {
        let mut ledger = self.ledger.lock().unwrap();
        ledger.in_flight.insert(id);
        let now = ledger.in_flight.difference(&ledger.dropped).count();
        ledger.peak = ledger.peak.max(now);
    }

    async fn start() -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let upstream =
            Arc::new(Self { ledger: Mutex::default(), calm: AtomicBool::new(false), open: AtomicUsize::new(0) });
        let own = Arc::clone(&upstream);
        tokio::spawn(async move {
            for seed in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let upstream = Arc::clone(&own);
                upstream.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    upstream.serve(stream, seed).await;
                    upstream.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        (upstream, url)
    }
}

/// 1.6, 4.6, 5.1, 6.2: whatever fails and whoever leaves, nothing is lost and no limit broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c5_1_eight_tasks_that_come_and_go_lose_nothing() {
    let (upstream, url) = Upstream::start().await;
    let client = ServiceClient::builder(&url)
        .name("stressed")
        .max_concurrent(SLOTS as u32)
        .bulkhead_wait(ms(30))
        .rate_limit(60)
        .rate_limit_period(ms(10))
        .rate_limit_wait(ms(30))
        .backoff_base(ms(1))
        .backoff_max(ms(4))
        .retry_budget_min_per_second(1_000.0)
        .breaker_cool_down(ms(5))
        .total_timeout(LONG)
        .build()
        .unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..8_u64 {
        let (client, upstream) = (client.clone(), Arc::clone(&upstream));
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(task);
            let (mut answered, mut left) = (0, 0);
            for number in 0..1_200 {
                let id = task * 1_000_000 + number;
                let mut call = Box::pin(client.get("/").header("x-call", id.to_string()).send());
                let patience = if random.u32(0..4) == 0 { random.u64(0..2_000) } else { 60_000_000 };
                match timeout(Duration::from_micros(patience), &mut call).await {
                    Ok(Ok(_)) => answered += 1,
                    Ok(Err(error)) => assert!(!error.is_timeout() && !error.is_invalid_request(), "{error:?}"),
                    Err(_) => {
                        upstream.ledger.lock().unwrap().dropped.insert(id);
                        left += 1;
                    }
                }
                drop(call);
            }
            (answered, left)
        });
    }
    let ended = timeout(LONG, tasks.join_all()).await.expect("bounded");
    let (answered, left) = ended.iter().fold((0, 0), |sum, task| (sum.0 + task.0, sum.1 + task.1));
    assert!(answered > 1_000 && left > 100, "it was no stress: {answered} answered, {left} left");

    let line = client.snapshot().line;
    assert_eq!((line.in_use, line.queued), (0, 0));
    until(|| client.snapshot().pool.is_some_and(|pool| pool.open == pool.idle && pool.open <= SLOTS)).await;
    let peak = upstream.ledger.lock().unwrap().peak;
    assert!((2..=SLOTS).contains(&peak), "{peak} at once");

    upstream.calm.store(true, Ordering::SeqCst);
    sleep(ms(50)).await;
    let last = client.get("/").header("x-call", "99").send().await.unwrap();
    assert_eq!((last.status().as_u16(), last.text().as_ref()), (200, "ok"));
    timeout(LONG, client.close()).await.expect("bounded");
    until(|| client.snapshot().pool.is_some_and(|pool| pool.open == 0)).await;
    until(|| upstream.open.load(Ordering::SeqCst) == 0).await;
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client outlives the runtimes that it is used from, in the middle of a call too.
#[test]
fn a_client_outlives_its_runtimes() {
    let server = Server::on_thread(|number| match number {
        1 => vec![Step::Read, Step::ReadToEnd],
        _ => vec![Step::Read, ok("one"), Step::Read, ok("two"), Step::ReadToEnd],
    });
    let client = ServiceClient::builder(&format!("http://{}", server.address)).retries(0).build().unwrap();
    let text = |runtime: &Runtime| {
        let response = runtime.block_on(async { timeout(LONG, client.get("/").send()).await.expect("bounded") });
        response.unwrap().text().into_owned()
    };
    let first = runtime();
    assert_eq!((text(&first), text(&first)), ("one".into(), "two".into()));
    // With it go the connection's task and the connection.
    drop(first);

    let second = runtime();
    let hanging = client.clone();
    second.spawn(async move { hanging.get("/").send().await });
    second.block_on(until(|| server.requests(1).len() == 1));
    drop(second);
    let snapshot = client.snapshot();
    assert_eq!((snapshot.line.in_use, snapshot.pool.map(|pool| pool.open)), (0, Some(0)));
    assert_eq!(text(&runtime()), "one");
}

/// Outside of any runtime a call that has to connect is an error, and nothing is lost.
#[test]
fn without_a_runtime_a_call_is_an_error() {
    let client = ServiceClient::builder("http://127.0.0.1:9").max_concurrent(1).build().unwrap();
    for _ in 0..3 {
        let error = futures_executor::block_on(client.get("/").send()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error:?}");
        assert!(std::error::Error::source(&error).is_some());
    }
    let snapshot = client.snapshot();
    assert_eq!((snapshot.line.in_use, snapshot.breaker.failures), (0, 0));
    assert_eq!(snapshot.pool.map(|pool| pool.open), Some(0));
}

/// 7.5: a length that only tells of a body, and a compression of nothing, are no body; the connection stays usable.
#[tokio::test]
async fn c7_5_a_head_that_tells_of_a_body_it_has_not() {
    let server = Server::start(|_| {
        vec![
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99999999999\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 304 Not Modified\r\nContent-Length: 99999999999\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"),
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789X"),
            Step::ReadToEnd,
        ]
    })
    .await;
    let url = format!("http://{}", server.address);
    let client = ServiceClient::builder(&url).max_response_bytes(10).build().unwrap();
    let expected = [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304), (Method::GET, 200)];
    for (method, status) in expected {
        let response = client.request(method, "/").send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.bytes().len()), (status, 0));
    }
    assert_eq!(client.get("/").send().await.unwrap().bytes().len(), 10);
    assert_eq!(client.get("/").send().await.unwrap_err().to_string().split_once('(').unwrap().1, "too_large)");
    assert_eq!(server.connections(), 1);
}

/// A runtime without time is a mistake that tokio panics at. It says so, and costs the client nothing.
#[test]
fn a_runtime_without_time_panics_and_nothing_is_lost() {
    let server = Server::on_thread(|_| vec![Step::Read, ok("x"), Step::ReadToEnd]);
    let client = ServiceClient::builder(&format!("http://{}", server.address)).max_concurrent(1).build().unwrap();
    let timeless = Builder::new_current_thread().enable_io().build().unwrap();
    let call = || timeless.block_on(client.get("/").send()).map(drop);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_err();
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
    assert!(message.contains("enable_time"), "{message}");
    assert_eq!(client.snapshot().line.in_use, 0);
    assert_eq!(runtime().block_on(client.get("/").send()).unwrap().text(), "x");
}

/// A body that never ends and never brings anything, plain or as gzip (a header, and then no byte more).
struct Endless {
    gzip: bool,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let header: &[u8] = if mem::take(&mut self.gzip) { b"\x1f\x8b\x08\0\0\0\0\0\0\x03" } else { b"" };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(header)))))
    }
}

struct AnswersEndlessly {
    gzip: bool,
}

impl Exchange for AnswersEndlessly {
    fn exchange<'a>(&'a self, _: Outgoing, _: &'a mut Progress) -> ExchangeFuture<'a> {
        let mut response = Response::new(ResponseBody::boxed(Endless { gzip: self.gzip }));
        if self.gzip {
            response.headers_mut().insert("content-encoding", HeaderValue::from_static("gzip"));
        }
        Box::pin(std::future::ready(Ok(response)))
    }
}

/// 1.1: the deadline covers the body, even one that is always ready.
#[tokio::test]
async fn c1_1_a_body_that_brings_nothing_for_ever_ends_with_the_deadline() {
    for gzip in [false, true] {
        let client = ServiceClient::builder("http://upstream.test")
            .total_timeout(ms(50))
            .transport(AnswersEndlessly { gzip })
            .build()
            .unwrap();
        let error = client.get("/").send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
    }
}
