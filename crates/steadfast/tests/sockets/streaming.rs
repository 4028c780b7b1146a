//! Streams over real connections: when slot and connection come back (contract 7.6), and bodies that are sent in pieces.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use steadfast::transport::{HttpVersion, RequestBody};
use steadfast::{ClientBuilder, ServiceClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::h2_peer::Peer;
use crate::server::*;

fn client(server: &Server, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> ServiceClient {
    configure(ServiceClient::builder(&format!("http://{}", server.address)).name("upstream")).build().unwrap()
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn open(client: &ServiceClient) -> usize {
    client.snapshot().pool.unwrap().open
}

#[tokio::test]
async fn c7_6_pieces_come_as_they_are_sent_and_the_connection_is_used_again() {
    let server = Server::start(|_| {
        let body = [write(HEAD), write("3\r\none\r\n"), Step::Wait(ms(50)), write("3\r\ntwo\r\n0\r\n\r\n")];
        [vec![Step::Read], body.to_vec(), vec![Step::Read, ok("again"), Step::ReadToEnd]].concat()
    })
    .await;
    let client = client(&server, |client| client);
    let mut response = client.get("/").send_streaming().await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "one");
    assert_eq!(response.chunk().await.unwrap().unwrap(), "two");
    assert_eq!(response.chunk().await.unwrap(), None);
    assert_eq!(client.get("/").send().await.unwrap().text(), "again");
    assert_eq!(server.connections(), 1);
}

/// 7.6: a streamed response that nobody reads gives slot and connection back at the deadline.
#[tokio::test]
async fn c7_6_a_stream_that_nobody_reads_ends_at_its_deadline() {
    let server = Server::start(|_| vec![Step::Read, write(HEAD), write("3\r\none\r\n"), Step::ReadToEnd]).await;
    let client = client(&server, |client| client.total_timeout(ms(200)).max_concurrent(1));
    let start = Instant::now();
    let mut unread = client.get("/").send_streaming().await.unwrap();
    server.closed(0).await;
    assert!(start.elapsed() >= ms(200), "{:?}", start.elapsed());
    until(|| open(&client) == 0).await;
    // The slot as well: the only one there is.
    let second = client.get("/").send_streaming().await.unwrap();
    drop(second);
    // What had come before is still there; then the deadline is named.
    let mut last = unread.chunk().await;
    while let Ok(Some(_)) = last {
        last = unread.chunk().await;
    }
    assert!(last.unwrap_err().is_timeout());
    assert_eq!(client.snapshot().breaker.failures, 0);
}

/// 7.6: one that is dropped, at once.
#[tokio::test]
async fn c7_6_a_dropped_stream_closes_its_connection_at_once() {
    let server = Server::start(|_| vec![Step::Read, write(HEAD), write("3\r\none\r\n"), Step::ReadToEnd]).await;
    let client = client(&server, |client| client);
    let response = client.get("/").send_streaming().await.unwrap();
    assert_eq!(client.snapshot().line.in_use, 1);
    drop(response);
    assert_eq!(client.snapshot().line.in_use, 0);
    server.closed(0).await;
    until(|| open(&client) == 0).await;
}

/// 7.6: `read_timeout` runs only while somebody reads.
#[tokio::test]
async fn c7_6_the_read_timeout_runs_only_while_somebody_reads() {
    let server = Server::start(|_| vec![Step::Read, write(HEAD), write("3\r\none\r\n"), Step::ReadToEnd]).await;
    let client = client(&server, |client| client.read_timeout(ms(150)).total_timeout(LONG));
    let mut response = client.get("/").send_streaming().await.unwrap();
    sleep(ms(400)).await;
    assert_eq!(response.chunk().await.unwrap().unwrap(), "one", "not while nobody reads");
    let start = Instant::now();
    let error = timeout(LONG, response.chunk()).await.unwrap().unwrap_err();
    assert!((ms(140)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(error.report().attempts().last().unwrap().outcome.name(), "read_timeout");
    assert_eq!(client.snapshot().breaker.failures, 1, "a failure of the upstream");
    server.closed(0).await;
}

#[tokio::test]
async fn c7_6_a_cut_is_a_failure_and_what_came_before_is_handed_over() {
    let server = Server::start(|_| vec![Step::Read, write(HEAD), write("3\r\none\r\n"), Step::Wait(ms(20))]).await;
    let client = client(&server, |client| client);
    let mut response = client.get("/").send_streaming().await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "one");
    let error = response.chunk().await.unwrap_err();
    assert_eq!(error.report().attempts().last().unwrap().outcome.name(), "incomplete");
    assert_eq!(client.snapshot().breaker.failures, 1);
}

/// Two thousand dropped streams, from several tasks, leave nothing: no slot, no connection, no file. (Ten thousand, each
/// with a connection of its own, would take up the ports of the machine.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c7_6_two_thousand_dropped_streams_leave_nothing() {
    let server = Server::start(|_| vec![Step::Read, write(HEAD), write("3\r\none\r\n"), Step::ReadToEnd]).await;
    let client = client(&server, |client| client.max_concurrent(20).bulkhead_wait(LONG).total_timeout(LONG));
    let tasks: Vec<_> = (0..20)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for round in 0..100 {
                    let mut response = client.get("/").send_streaming().await.unwrap();
                    if (round + task) % 2 == 0 {
                        assert_eq!(response.chunk().await.unwrap().unwrap(), "one");
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    until(|| open(&client) == 0 && server.still_open() == 0).await;
    let snapshot = client.snapshot();
    assert_eq!((snapshot.line.in_use, snapshot.line.queued, snapshot.breaker.failures), (0, 0, 0));
}

fn pieces(count: usize, size: usize) -> RequestBody {
    let piece = Bytes::from(vec![b'x'; size]);
    RequestBody::stream(stream::iter((0..count).map(move |_| Ok::<_, std::io::Error>(piece.clone()))), None)
}

/// A25: a body of unknown length is sent in chunks (RFC 9112 section 7.1).
#[tokio::test]
async fn a25_a_body_in_pieces_is_sent_in_chunks() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n0\r\n\r\n") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the request ended early");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ngot it").await.unwrap();
        String::from_utf8(request).unwrap()
    });
    let client = ServiceClient::builder(&format!("http://{address}")).build().unwrap();
    let response = timeout(LONG, client.post("/").body(pieces(3, 4)).send()).await.unwrap().unwrap();
    assert_eq!(response.text(), "got it");
    let request = upstream.await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-length"), "{head}");
    assert_eq!(body, "4\r\nxxxx\r\n4\r\nxxxx\r\n4\r\nxxxx\r\n0\r\n\r\n");
}

/// A24: a connection that dies under a body in pieces; what was kept goes again, on a fresh one.
#[tokio::test]
async fn a24_a_kept_body_goes_again_after_a_reset() {
    let server = Server::start(|number| match number {
        0 => vec![Step::Read, Step::Reset],
        _ => vec![Step::Read, ok("whole"), Step::ReadToEnd],
    })
    .await;
    let client = client(&server, |client| client);
    let body =
        RequestBody::stream(stream::iter(["ab", "cd"].map(|piece| Ok::<_, std::io::Error>(piece.into()))), Some(4));
    let response = timeout(LONG, client.put("/").body(body).send()).await.unwrap().unwrap();
    assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("whole", 2));
    assert!(server.requests(1)[0].ends_with("\r\n\r\nabcd"));
}

/// A source that stalls is cut by the deadline, and nothing is left.
#[tokio::test]
async fn c1_4_an_upload_that_stalls_is_cut_by_the_deadline() {
    let server = Server::start(|_| vec![Step::Read, Step::ReadToEnd]).await;
    let client = client(&server, |client| client.total_timeout(ms(200)));
    let body = RequestBody::stream(stream::pending::<Result<Bytes, std::io::Error>>(), None);
    let error = timeout(LONG, client.put("/").body(body).send()).await.unwrap().unwrap_err();
    assert!(error.is_timeout());
    server.closed(0).await;
    until(|| open(&client) == 0).await;
    assert_eq!(client.snapshot().line.in_use, 0);
}

/// 4.3: a source that fails is the caller's trouble; its connection is closed, and the client goes on.
#[tokio::test]
async fn c4_3_a_source_that_fails_closes_its_connection_and_is_no_verdict() {
    let server = Server::start(|number| match number {
        0 => vec![Step::Read, Step::ReadToEnd],
        _ => vec![Step::Read, ok("fine"), Step::ReadToEnd],
    })
    .await;
    let client = client(&server, |client| client);
    let failing = stream::iter([Ok(Bytes::from_static(b"abc")), Err(std::io::Error::other("the disk is gone"))]);
    let error = client.put("/").body(RequestBody::stream(failing, None)).send().await.unwrap_err();
    assert_eq!(error.report().attempts().last().unwrap().outcome.name(), "request_body");
    assert_eq!(client.snapshot().breaker.calls, 0);
    server.closed(0).await;
    assert_eq!(client.get("/").send().await.unwrap().text(), "fine");
}

/// Ten thousand dropped streams, each at another point, on connections that others use too: nothing is left of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c7_6_ten_thousand_dropped_streams_leave_nothing() {
    let peer = Peer::start(30).await;
    let client = ServiceClient::builder(&format!("http://{}", peer.address))
        .http_version(HttpVersion::Http2)
        .max_concurrent(40)
        .bulkhead_wait(LONG)
        .total_timeout(LONG)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for round in 0..250 {
                    let mut response = client.get("/stall").send_streaming().await.unwrap();
                    assert_eq!(response.version(), http::Version::HTTP_2);
                    if (round + task) % 2 == 0 {
                        assert!(response.chunk().await.unwrap().is_some());
                    }
                    if round % 3 == 0 {
                        // Dropped while it waits for what never comes.
                        let _ = timeout(Duration::ZERO, response.chunk()).await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let snapshot = client.snapshot();
    assert_eq!((snapshot.line.in_use, snapshot.line.queued, snapshot.breaker.failures), (0, 0, 0));
    until(|| peer.running() == 0).await;
    until(|| client.snapshot().pool.is_some_and(|pool| pool.open == pool.idle)).await;
    assert!(peer.connections() <= 10, "{} connections", peer.connections());
    assert_eq!(client.get("/").send().await.unwrap().status(), http::StatusCode::OK);
}

/// A source that lets itself be waited for first, as a file does.
fn slow(pieces: Vec<&'static str>) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send {
    stream::once(sleep(ms(20))).flat_map(move |()| stream::iter(pieces.clone())).map(|piece| Ok(piece.into()))
}

/// 2.8, 2.11: a body in pieces goes on a connection that lay idle, as any other does.
#[tokio::test]
async fn c2_11_a_body_in_pieces_goes_on_a_connection_that_lay_idle() {
    let server =
        Server::start(|_| (0..5).flat_map(|_| [Step::Read, ok("fine")]).chain([Step::ReadToEnd]).collect()).await;
    let client = client(&server, |client| client.retries(0));
    assert_eq!(client.get("/").send().await.unwrap().text(), "fine");
    for length in [Some(4), None] {
        for body in [RequestBody::reader(&b"abcd"[..], length), RequestBody::stream(slow(vec!["ab", "cd"]), length)] {
            sleep(ms(30)).await;
            let response = timeout(LONG, client.post("/").body(body).send()).await.unwrap().unwrap();
            assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("fine", 1));
        }
    }
    assert_eq!((server.connections(), server.request_count()), (1, 5), "none was given up for it");
}

/// 2.11: nothing is read from the source before the idle connection is known to live, so even a body that is not kept
/// goes to a fresh one, whole.
#[tokio::test]
async fn c2_11_a_body_in_pieces_meets_a_dead_connection_and_goes_once_to_a_fresh_one() {
    let server = Server::on_thread(|number| match number {
        0 => vec![Step::Read, ok("early"), Step::Wait(ms(30))],
        _ => vec![Step::Read, ok("late"), Step::ReadToEnd],
    });
    let client = client(&server, |client| client.retries(0));
    assert_eq!(client.get("/").send().await.unwrap().text(), "early");
    server.block_until(0, usize::MAX);
    let response = timeout(LONG, client.post("/").body(pieces(12, 16 * 1024).keep(0)).send()).await.unwrap().unwrap();
    assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("late", 1));
    assert_eq!(server.requests(1)[0].matches("4000\r\n").count(), 12, "all of it");
    assert_eq!(client.snapshot().breaker.failures, 0);
}

/// 4.3: a source that panics is the caller's trouble too; nothing that it might have lost a piece of is sent again.
#[tokio::test]
async fn c4_3_a_source_that_panics_is_no_verdict_and_is_not_asked_again() {
    let server = Server::start(|_| vec![Step::Read, Step::ReadToEnd]).await;
    let client = client(&server, |client| client);
    let source = stream::iter([0, 1, 2]).map(|number| {
        assert!(number != 1, "a test's panic");
        Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))
    });
    let error = timeout(LONG, client.put("/").body(RequestBody::stream(source, None)).send()).await.unwrap();
    let error = error.unwrap_err();
    assert_eq!(
        (error.attempts(), error.report().attempts().last().unwrap().outcome.name().as_ref()),
        (1, "request_body")
    );
    assert_eq!(client.snapshot().breaker.calls, 0);
    until(|| open(&client) == 0).await;
    assert_eq!(client.snapshot().line.in_use, 0);
}

/// 7.1: an upstream that answers before it has all of the request is not made to wait for the rest.
#[tokio::test]
async fn c7_1_an_answer_before_the_end_of_the_request_is_returned_at_once() {
    for answer in [
        "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig",
        "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n",
    ] {
        let server = Server::start(move |_| vec![Step::ReadSome(40), write(answer), Step::ReadToEnd]).await;
        let client = client(&server, |client| client.total_timeout(ms(2_000)));
        let source = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))]).chain(stream::pending());
        let start = Instant::now();
        let response = client.put("/").body(RequestBody::stream(source, None)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 413);
        assert!(start.elapsed() < ms(1_500), "{:?}", start.elapsed());
        until(|| open(&client) == 0).await;
    }
}
