//! Contract 1.2 and 4.3: while our own source of a request's body has nothing, no wait for the upstream runs.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use steadfast::ServiceClient;
use steadfast::transport::{HttpVersion, Proxy, RequestBody};
use steadfast_http::{Fault, Sent};
use tokio::time::{sleep, timeout};

use crate::h2_peer::*;
use crate::server::*;

/// So long the upstream may take, which is less than the source takes for each piece.
const LIMIT: u64 = 120;
const PAUSE: u64 = 300;

/// `count` pieces of `size` bytes, each of them, and the end, after a pause.
fn slow(count: usize, size: usize) -> RequestBody {
    let pieces = stream::unfold(0, move |number| async move {
        sleep(ms(PAUSE)).await;
        (number < count).then(|| (Ok::<_, io::Error>(Bytes::from(vec![b'x'; size])), number + 1))
    });
    RequestBody::stream(pieces, None)
}

fn client(address: std::net::SocketAddr, version: HttpVersion) -> ServiceClient {
    let builder = ServiceClient::builder(&format!("http://{address}")).name("upstream").http_version(version);
    builder.read_timeout(ms(LIMIT)).write_timeout(ms(LIMIT)).proxy(Proxy::Off).build().unwrap()
}

#[tokio::test]
async fn c1_2_c4_3_a_slow_source_is_no_fault_of_the_upstream() {
    let server = Server::start(|_| vec![Step::Read, ok("fine"), Step::Read, ok("again"), Step::ReadToEnd]).await;
    let client = client(server.address, HttpVersion::Http1);
    let start = Instant::now();
    let response = timeout(LONG, client.post("/").body(slow(2, 5)).send()).await.unwrap().unwrap();
    assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("fine", 1));
    assert!(start.elapsed() >= ms(3 * PAUSE), "{:?}", start.elapsed());
    assert!(server.requests(0)[0].ends_with("5\r\nxxxxx\r\n5\r\nxxxxx\r\n0\r\n\r\n"));
    // The next request on the connection knows nothing of it.
    assert_eq!(client.get("/").send().await.unwrap().text(), "again");
    assert_eq!((server.connections(), client.snapshot().breaker.failures), (1, 0));
}

#[tokio::test]
async fn h2_c1_2_c4_3_a_slow_source_is_no_fault_of_the_upstream() {
    let peer = Peer::start(100).await;
    let client = client(peer.address, HttpVersion::Http2);
    let start = Instant::now();
    let response = timeout(LONG, client.post("/echo").body(slow(2, 5)).send()).await.unwrap().unwrap();
    assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("xxxxxxxxxx", 1));
    assert!(start.elapsed() >= ms(3 * PAUSE), "{:?}", start.elapsed());
    assert_eq!(client.get("/").send().await.unwrap().text(), "x");
    assert_eq!((peer.connections(), client.snapshot().breaker.failures), (1, 0));
}

/// Once the source has given everything, the upstream has the whole of its time, and no more.
#[tokio::test]
async fn c1_2_the_waits_start_anew_when_the_source_gives() {
    let server = Server::start(|_| vec![Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool_with(|config| config.read_timeout = ms(LIMIT));
    let start = Instant::now();
    assert_fault(send(&pool, post("/", slow(0, 0))).await, Fault::ReadTimeout, Sent::Unknown);
    assert!((ms(PAUSE + LIMIT)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test]
async fn h2_c1_2_the_waits_start_anew_when_the_source_gives() {
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.read_timeout = ms(LIMIT));
    let start = Instant::now();
    assert_fault(send(&pool, post("/hang", slow(0, 0))).await, Fault::ReadTimeout, Sent::Unknown);
    assert!((ms(PAUSE + LIMIT)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// A piece that is there, and that the upstream does not take, is the upstream's affair.
#[tokio::test]
async fn c1_2_write_timeout_bounds_the_wait_to_write_what_the_source_gave() {
    let server = Server::narrow(|_| vec![Step::ReadSome(10), Step::Hang]).await;
    let pool = server.pool_with(|config| config.write_timeout = ms(LIMIT));
    let start = Instant::now();
    let fast = stream::iter((0..2_048).map(|_| Ok::<_, io::Error>(Bytes::from(vec![b'x'; 16 * 1024]))));
    assert_fault(send(&pool, post("/", RequestBody::stream(fast, None))).await, Fault::WriteTimeout, Sent::Unknown);
    assert!((ms(LIMIT)..ms(4_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test]
async fn h2_c1_2_write_timeout_bounds_the_wait_to_write_what_the_source_gave() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(INITIAL_WINDOW_SIZE, 1_000)]).await;
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool_with(|config| config.write_timeout = ms(LIMIT));
    let start = Instant::now();
    assert_fault(send(&pool, post("/", slow(1, 5_000))).await, Fault::WriteTimeout, Sent::Unknown);
    assert!((ms(PAUSE + LIMIT)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// The same after an early head: an upstream that answers piece by piece waits for ours.
#[tokio::test]
async fn c1_2_a_slow_source_does_not_time_the_response_out() {
    let server = Server::start(|_| {
        let answer = write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        vec![Step::ReadSome(10), answer, Step::Read, write("3\r\ntwo\r\n0\r\n\r\n"), Step::ReadToEnd]
    })
    .await;
    let pool = server.pool_with(|config| config.read_timeout = ms(LIMIT));
    let body = head(&pool, post("/", slow(2, 40))).await.unwrap().into_body();
    assert_eq!(timeout(LONG, body.collect(MAX)).await.unwrap().unwrap(), "onetwo");
}

#[tokio::test]
async fn h2_c1_2_a_slow_source_does_not_time_the_response_out() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        raw.head(stream, 200, false).await;
        raw.write(DATA, 0, stream, b"one").await;
        while raw.next(DATA).await.unwrap().flags & END_STREAM == 0 {}
        raw.write(DATA, 0, stream, b"two").await;
        // Then nothing more.
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool_with(|config| config.read_timeout = ms(LIMIT));
    let mut body = head(&pool, post("/", slow(2, 5))).await.unwrap().into_body();
    for piece in ["one", "two"] {
        assert_eq!(timeout(LONG, body.frame()).await.unwrap().unwrap().unwrap().into_data().unwrap(), piece);
    }
    let start = Instant::now();
    assert_fault(timeout(LONG, body.frame()).await.unwrap().unwrap(), Fault::ReadTimeout, Sent::Yes);
    assert!((ms(LIMIT - 10)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// A source that never gives anything is bounded by the call's deadline, whoever polls.
#[tokio::test]
async fn c1_4_a_source_that_gives_nothing_ends_at_the_deadline() {
    let (server, peer) = (Server::start(|_| vec![Step::ReadToEnd]).await, Peer::start(100).await);
    for (address, version) in [(server.address, HttpVersion::Http1), (peer.address, HttpVersion::Http2)] {
        let client = client(address, version);
        let start = Instant::now();
        let body = RequestBody::stream(stream::pending::<io::Result<Bytes>>(), None);
        let call = client.post("/echo").body(body).timeout(ms(2 * PAUSE)).send();
        let error = timeout(LONG, call).await.unwrap().unwrap_err();
        assert_eq!(error.report().attempts().last().unwrap().outcome.name(), "deadline");
        assert!((ms(2 * PAUSE)..ms(4_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    }
    // An upstream that was owed something is not suspected of being dead.
    let client = client(peer.address, HttpVersion::Http2);
    let before = peer.connections();
    let body = RequestBody::stream(stream::pending::<io::Result<Bytes>>(), None);
    client.post("/echo").body(body).timeout(ms(2 * PAUSE)).send().await.unwrap_err();
    client.get("/").send().await.unwrap();
    assert_eq!(peer.connections(), before + 1);
}
