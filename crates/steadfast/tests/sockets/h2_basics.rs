//! HTTP/2: requests and responses, whole and in pieces.

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, HOST};
use http::{Method, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;
use steadfast::transport::RequestBody;
use steadfast_http::Sent;
use tokio::time::sleep;

use crate::h2_peer::*;
use crate::server::*;

#[tokio::test]
async fn a_request_and_its_response() {
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    let response = head(&pool, get("/a?b=c")).await.unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
    assert_eq!(response.headers()["x-head"], "1");
    assert_eq!(response.into_body().collect(MAX).await.unwrap(), "x");
    let heads = peer.counts.heads.lock().unwrap().clone();
    assert_eq!(heads[0].uri().to_string(), format!("http://127.0.0.1:{}/a?b=c", peer.address.port()));
    assert!(!heads[0].headers().contains_key(HOST) && !heads[0].headers().contains_key(CONTENT_LENGTH));
    until_open(&pool, 1, 1).await;
}

/// More than any window, both ways.
#[tokio::test]
async fn long_bodies_go_as_the_windows_allow() {
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    let long = Bytes::from(vec![b'y'; 3 * 1024 * 1024]);
    let (status, body) = send(&pool, post("/echo", long.clone())).await.unwrap();
    assert_eq!((status, body.len()), (StatusCode::OK, long.len()));
    assert!(body == long);
    assert_eq!(peer.counts.heads.lock().unwrap()[0].headers()[CONTENT_LENGTH], long.len().to_string());
    // Without a length.
    let pieces = (0..50).map(|number| Ok::<_, std::io::Error>(Bytes::from(vec![number; 10_000])));
    let body = RequestBody::stream(stream::iter(pieces), None);
    assert_eq!(send(&pool, post("/echo", body)).await.unwrap().1.len(), 500_000);
    assert!(!peer.counts.heads.lock().unwrap()[1].headers().contains_key(CONTENT_LENGTH));
    assert_eq!(peer.connections(), 1);
    until_open(&pool, 1, 1).await;
}

#[tokio::test]
async fn responses_without_a_body_give_their_stream_back_at_once() {
    let peer = Peer::start(1).await;
    let pool = peer.pool();
    for (method, path) in [(Method::GET, "/size-0"), (Method::HEAD, "/"), (Method::GET, "/status-204/size-0")] {
        let response = head(&pool, request(method, path, "")).await.unwrap();
        assert!(response.body().is_end_stream());
        assert_eq!(pool.snapshot().idle, 1, "{path}");
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn trailers_end_a_body() {
    let peer = Peer::start(1).await;
    let pool = peer.pool();
    let mut body = head(&pool, get("/trailers")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
    assert_eq!(body.frame().await.unwrap().unwrap().into_trailers().unwrap()["x-trailer"], "1");
    assert!(body.is_end_stream());
    assert_eq!(pool.snapshot().idle, 1);
    assert_eq!(send(&pool, get("/trailers")).await.unwrap().1, "x");
    assert_eq!(send(&pool, get("/trailers/size-0")).await.unwrap().1, "");
}

/// The body that is read to its end gives its stream back with its last piece.
#[tokio::test]
async fn a_body_in_pieces_gives_its_stream_back_at_its_end() {
    let peer = Peer::start(1).await;
    let pool = peer.pool();
    let mut body = head(&pool, get("/size-100000")).await.unwrap().into_body();
    let mut length = 0;
    while !body.is_end_stream() {
        assert_eq!(pool.snapshot().idle, 0);
        length += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    assert_eq!((length, pool.snapshot().idle), (100_000, 1));
}

/// The response may be over before the request is: nothing waits for the rest.
#[tokio::test]
async fn a_response_before_the_end_of_the_request_is_the_answer() {
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    let endless = || {
        let pieces =
            stream::unfold((), |()| async { Some((Ok::<_, std::io::Error>(Bytes::from(vec![1; 5_000])), ())) });
        RequestBody::stream(pieces, None)
    };
    assert_eq!(send(&pool, post("/", endless())).await.unwrap().1, "x");
    until_open(&pool, 1, 1).await;
    // Nor do a source that gives nothing, and a body that is longer than what the upstream takes.
    let silent = RequestBody::stream(stream::pending::<Result<Bytes, std::io::Error>>(), None);
    assert_eq!(send(&pool, post("/", silent)).await.unwrap().1, "x");
    assert_eq!(send(&pool, post("/", vec![0; 1_000_000])).await.unwrap().1, "x");
    until_open(&pool, 1, 1).await;
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    assert_eq!(peer.connections(), 1);
}

/// The head comes while the request is still under way, and the rest of it goes on although nobody reads.
#[tokio::test]
async fn the_request_goes_on_after_the_head() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        raw.head(stream, 200, false).await;
        let mut length = 0;
        loop {
            let frame = raw.next(DATA).await.unwrap();
            length += frame.payload.len();
            let more = (frame.payload.len() as u32).to_be_bytes();
            if frame.flags & END_STREAM != 0 {
                break;
            }
            raw.write(WINDOW_UPDATE, 0, 0, &more).await;
            raw.write(WINDOW_UPDATE, 0, stream, &more).await;
        }
        raw.write(DATA, END_STREAM, stream, length.to_string().as_bytes()).await;
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool();
    let response = head(&pool, post("/", vec![0; 300_000])).await.unwrap();
    sleep(ms(50)).await;
    assert_eq!(response.into_body().collect(MAX).await.unwrap(), "300000");
}

/// A connection that has lain idle may be dead, so that the request is kept while it is sent: its body comes all the same.
#[tokio::test]
async fn a_body_in_pieces_goes_over_a_connection_that_was_idle() {
    let pieces = || {
        let pieces = [Ok::<_, std::io::Error>(Bytes::from_static(b"abc")), Ok(Bytes::from_static(b"def"))];
        RequestBody::stream(stream::iter(pieces), Some(6))
    };
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    send(&pool, get("/")).await.unwrap();
    sleep(ms(30)).await;
    assert_eq!(send(&pool, post("/echo", pieces())).await.unwrap().1, "abcdef");

    let server = Server::start(|_| vec![Step::Read, ok("x"), Step::Read, ok("y"), Step::ReadToEnd]).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    sleep(ms(30)).await;
    assert_eq!(send(&pool, post("/", pieces())).await.unwrap().1, "y");
    assert!(server.requests(0)[1].ends_with("abcdef"));
}

/// RFC 9110 section 15.2
#[tokio::test]
async fn interim_responses_are_passed_over() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.request().await.unwrap();
        // :status 103, as a literal without indexing.
        raw.write(HEADERS, END_HEADERS, stream, b"\x08\x03103").await;
        sleep(ms(20)).await;
        raw.ok(stream).await;
        raw.answer_all().await;
    })
    .await;
    assert_eq!(send(&played.pool(), get("/")).await.unwrap(), (StatusCode::OK, Bytes::from_static(b"x")));
}

/// A141
#[tokio::test]
async fn a141_what_is_about_the_connection_is_not_sent() {
    let peer = Peer::start(100).await;
    let mut outgoing = get("/");
    for (name, value) in [("connection", "keep-alive, x-foo"), ("x-foo", "1"), ("te", "trailers"), ("host", "mine")] {
        outgoing.request.headers_mut().insert(name, value.parse().unwrap());
    }
    send(&peer.pool(), outgoing).await.unwrap();
    let head = peer.counts.heads.lock().unwrap().remove(0);
    assert_eq!(head.uri(), "http://mine/");
    assert_eq!((head.headers().len(), &head.headers()["te"]), (1, &"trailers".parse().unwrap()));
}

/// The request's own body fails: a fault of ours, and the stream is reset.
#[tokio::test]
async fn a_body_that_fails_resets_its_stream() {
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    let pieces = [Ok(Bytes::from_static(b"a")), Err(std::io::Error::other("the disk is gone"))];
    let body = RequestBody::stream(stream::iter(pieces), None);
    assert_fault(send(&pool, post("/echo", body)).await, steadfast_http::Fault::LocalProtocol, Sent::Unknown);
    until(|| peer.running() == 0).await;
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    assert_eq!(peer.connections(), 1);
}

/// 2.8, 2.11: a body in pieces goes on a connection that lay idle, as any other does.
#[tokio::test]
async fn c2_11_a_body_in_pieces_goes_on_a_connection_that_lay_idle() {
    let peer = Peer::start(10).await;
    let pool = peer.pool();
    send(&pool, get("/")).await.unwrap();
    for length in [Some(4), None] {
        sleep(ms(30)).await;
        let body = RequestBody::reader(&b"abcd"[..], length);
        assert_eq!(send(&pool, post("/echo", body)).await.unwrap().1, "abcd");
    }
    assert_eq!((peer.connections(), peer.requests()), (1, 3));
}
