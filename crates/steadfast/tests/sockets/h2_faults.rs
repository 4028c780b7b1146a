//! HTTP/2: what an upstream can do to a stream and to a connection, and what that proves (RFC 9113 section 8.7).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use h2::Reason;
use http::Method;
use steadfast::ServiceClient;
use steadfast::transport::{HttpVersion, Pool, RequestBody};
use steadfast_http::{Fault, Sent};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::h2_peer::*;
use crate::server::*;

/// Reads one request, does this to its stream, and answers what follows.
async fn resetting(reason: Reason) -> Played {
    Played::start(move |_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.request().await.unwrap();
        raw.reset(stream, reason).await;
        raw.answer_all().await;
    })
    .await
}

/// 2.3
#[tokio::test]
async fn c2_3_a_refused_stream_was_not_processed() {
    let played = resetting(Reason::REFUSED_STREAM).await;
    let pool = played.pool();
    assert_fault(send(&pool, post("/", "x")).await, Fault::RefusedStream, Sent::No);
    send(&pool, post("/", "x")).await.unwrap();
    assert_eq!(played.connections(), 1);
    until_open(&pool, 1, 1).await;
}

#[tokio::test]
async fn any_other_reset_leaves_the_outcome_unknown() {
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::ENHANCE_YOUR_CALM, Reason::NO_ERROR] {
        let played = resetting(reason).await;
        let pool = played.pool();
        assert_fault(send(&pool, get("/")).await, Fault::Reset, Sent::Unknown);
        send(&pool, get("/")).await.unwrap();
        assert_eq!(played.connections(), 1);
    }
}

/// 2.3: what is above the last stream was not processed; the rest may have been.
#[tokio::test]
async fn c2_3_a_goaway_says_what_was_not_processed() {
    let played = Played::start(|number, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        if number > 0 {
            return raw.answer_all().await;
        }
        for _ in 0..3 {
            raw.request().await.unwrap();
        }
        raw.go_away(1, Reason::ENHANCE_YOUR_CALM).await;
        sleep(ms(20)).await;
        raw.close().await;
    })
    .await;
    let pool = played.pool();
    let (first, second, third) =
        tokio::join!(send(&pool, get("/")), send(&pool, get("/")), send(&pool, post("/", "x")));
    assert_fault(first, Fault::Reset, Sent::Unknown);
    assert_fault(second, Fault::GoAway, Sent::No);
    assert_fault(third, Fault::GoAway, Sent::No);
    send(&pool, get("/")).await.unwrap();
    assert_eq!(played.connections(), 2);
    until_open(&pool, 1, 1).await;
}

/// The connection goes away, and a response that is under way goes on.
#[tokio::test]
async fn a_response_outlives_a_goaway() {
    let played = Played::start(|number, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        if number > 0 {
            return raw.answer_all().await;
        }
        let stream = raw.request().await.unwrap();
        raw.head(stream, 200, false).await;
        raw.go_away(stream, Reason::NO_ERROR).await;
        sleep(ms(50)).await;
        raw.write(DATA, END_STREAM, stream, b"whole").await;
        // The client closes.
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool();
    let response = head(&pool, get("/")).await.unwrap();
    sleep(ms(10)).await;
    // Meanwhile others use another connection.
    send(&pool, get("/")).await.unwrap();
    assert_eq!(played.connections(), 2);
    assert_eq!(response.into_body().collect(MAX).await.unwrap(), "whole");
    until_open(&pool, 1, 1).await;
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_outcome_unknown() {
    for reset in [false, true] {
        let played = Played::start(move |_, socket| async move {
            socket.set_zero_linger().unwrap();
            let mut raw = Raw::greet(socket, &[]).await;
            raw.request().await.unwrap();
            if !reset {
                raw.close().await;
            }
        })
        .await;
        let pool = played.pool();
        assert_fault(send(&pool, get("/")).await, Fault::Reset, Sent::Unknown);
        until_open(&pool, 0, 0).await;
    }
}

/// 2.4
#[tokio::test]
async fn c2_4_a_response_that_breaks_off_is_incomplete() {
    for how in 0..3 {
        let played = Played::start(move |_, socket| async move {
            let mut raw = Raw::greet(socket, &[]).await;
            let stream = raw.request().await.unwrap();
            raw.head(stream, 200, false).await;
            raw.write(DATA, 0, stream, b"half").await;
            match how {
                0 => raw.reset(stream, Reason::INTERNAL_ERROR).await,
                1 => raw.go_away(0, Reason::INTERNAL_ERROR).await,
                _ => return raw.close().await,
            }
            raw.read_to_end().await;
        })
        .await;
        let pool = played.pool();
        assert_fault(send(&pool, get("/")).await, Fault::Incomplete, Sent::Yes);
    }
}

/// RFC 9113 section 8.1: after a whole response the server may ask that no more of the request is sent.
#[tokio::test]
async fn no_error_after_the_response_is_no_error() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(INITIAL_WINDOW_SIZE, 10)]).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        raw.head(stream, 200, false).await;
        raw.write(DATA, END_STREAM, stream, b"enough").await;
        raw.reset(stream, Reason::NO_ERROR).await;
        raw.answer_all().await;
    })
    .await;
    let pool = played.pool();
    assert_eq!(send(&pool, post("/", "x".repeat(1_000))).await.unwrap().1, "enough");
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    assert_eq!(played.connections(), 1);
}

#[tokio::test]
async fn what_is_not_http2_is_a_protocol_error() {
    // An HTTP/1.1 server; a frame that is too long; a head that cannot be read.
    let one =
        Server::start(|_| vec![Step::ReadSome(24), write("HTTP/1.1 400 Bad Request\r\n\r\n"), Step::ReadToEnd]).await;
    let pool = one.pool_with(|config| config.http_version = HttpVersion::Http2);
    assert_fault(send(&pool, get("/")).await, Fault::Protocol, Sent::Unknown);
    for how in 0..2 {
        let played = Played::start(move |_, socket| async move {
            let mut raw = Raw::greet(socket, &[]).await;
            let stream = raw.request().await.unwrap();
            if how == 0 {
                raw.write(DATA, 0, stream, &[0; 20_000]).await;
            } else {
                raw.write(HEADERS, END_HEADERS, stream, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).await;
            }
            raw.read_to_end().await;
        })
        .await;
        let pool = played.pool();
        assert_fault(send(&pool, get("/")).await, Fault::Protocol, Sent::Unknown);
        until_open(&pool, 0, 0).await;
    }
}

/// 2.11: a connection that went away while it was idle.
#[tokio::test]
async fn c2_11_a_request_on_a_connection_that_went_away_goes_to_a_fresh_one() {
    for wait in [0, 30] {
        let played = Played::start(|_, socket| async move {
            let mut raw = Raw::greet(socket, &[]).await;
            let stream = raw.request().await.unwrap();
            raw.ok(stream).await;
            raw.go_away(stream, Reason::NO_ERROR).await;
            raw.read_to_end().await;
        })
        .await;
        let pool = played.pool_with(|config| config.max_connections = 1);
        send(&pool, get("/")).await.unwrap();
        sleep(ms(wait)).await;
        match send(&pool, post("/", "x")).await {
            Ok(_) => assert_eq!(played.connections(), 2),
            // The two have crossed.
            Err(error) => assert_eq!((error.fault(), error.sent(), wait), (Fault::GoAway, Sent::No, 0)),
        }
    }
}

// ---- through the whole client

fn client(pool: Pool) -> ServiceClient {
    ServiceClient::builder("http://upstream.test").name("upstream").transport(pool).build().unwrap()
}

/// Plays the first request of all connections as `first` says; everything else is answered.
async fn once(first: impl Fn(Raw, u32) -> Doing + Send + Sync + 'static) -> (Played, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let (count, first) = (Arc::clone(&requests), Arc::new(first));
    let played = Played::start(move |_, socket: TcpStream| {
        let (count, first) = (Arc::clone(&count), Arc::clone(&first));
        async move {
            let mut raw = Raw::greet(socket, &[]).await;
            while let Some(stream) = raw.request().await {
                if count.fetch_add(1, Ordering::SeqCst) > 0 {
                    raw.ok(stream).await;
                    continue;
                }
                raw = first(raw, stream).await;
            }
        }
    })
    .await;
    (played, requests)
}

type Doing = Pin<Box<dyn Future<Output = Raw> + Send>>;

/// A44, A46
#[tokio::test]
async fn a44_a_refused_post_is_sent_again() {
    let (played, requests) = once(|mut raw, stream| {
        Box::pin(async move {
            raw.reset(stream, Reason::REFUSED_STREAM).await;
            raw
        })
    })
    .await;
    let client = client(played.pool());
    let response = client.post("/").body("x").send().await.unwrap();
    assert_eq!((response.status().as_u16(), requests.load(Ordering::SeqCst)), (200, 2));
    assert_eq!(played.connections(), 1);
}

/// A44
#[tokio::test]
async fn a44_a_post_that_a_goaway_left_out_is_sent_again() {
    let (played, requests) = once(|mut raw, _| {
        Box::pin(async move {
            raw.go_away(0, Reason::NO_ERROR).await;
            raw
        })
    })
    .await;
    let client = client(played.pool());
    let response = client.post("/").body("x").send().await.unwrap();
    assert_eq!((response.status().as_u16(), requests.load(Ordering::SeqCst)), (200, 2));
    assert_eq!(played.connections(), 2);
}

/// A45
#[tokio::test]
async fn a45_what_a_goaway_left_out_goes_to_another_connection() {
    let played = Played::start(|number, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        if number > 0 {
            return raw.answer_all().await;
        }
        let mut streams = Vec::new();
        for _ in 0..3 {
            streams.push(raw.request().await.unwrap());
        }
        assert_eq!(streams, [1, 3, 5]);
        raw.go_away(1, Reason::NO_ERROR).await;
        sleep(ms(20)).await;
        raw.head(1, 200, false).await;
        raw.write(DATA, END_STREAM, 1, b"first").await;
        raw.read_to_end().await;
    })
    .await;
    let client = client(played.pool());
    let post = || async { client.post("/").body("x").send().await.unwrap().text().into_owned() };
    let answers = tokio::join!(post(), post(), post());
    assert_eq!(answers, ("first".into(), "x".into(), "x".into()));
    assert_eq!(played.connections(), 2);
}

/// A46
#[tokio::test]
async fn a46_a_500_and_an_internal_error_are_not_repeated() {
    let (played, requests) = once(|mut raw, stream| {
        Box::pin(async move {
            raw.head(stream, 500, true).await;
            raw
        })
    })
    .await;
    let response = client(played.pool()).post("/").body("x").send().await.unwrap();
    assert_eq!((response.status().as_u16(), requests.load(Ordering::SeqCst)), (500, 1));

    let (played, requests) = once(|mut raw, stream| {
        Box::pin(async move {
            raw.reset(stream, Reason::INTERNAL_ERROR).await;
            raw
        })
    })
    .await;
    client(played.pool()).post("/").body("x").send().await.unwrap_err();
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

/// A47: with nothing but HTTP/2 allowed, it is an error each time and no loop.
#[tokio::test]
async fn a47_http11_required_is_an_error_where_only_http2_is_allowed() {
    for go_away in [true, false] {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let played = Played::start(move |_, socket| {
            let count = Arc::clone(&count);
            async move {
                let mut raw = Raw::greet(socket, &[]).await;
                while let Some(stream) = raw.request().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    if go_away {
                        raw.go_away(0, Reason::HTTP_1_1_REQUIRED).await;
                    } else {
                        raw.reset(stream, Reason::HTTP_1_1_REQUIRED).await;
                    }
                }
            }
        })
        .await;
        let client = client(played.pool());
        let call = client.request(Method::GET, "/").timeout(Duration::from_secs(5)).send();
        assert!(call.await.unwrap_err().is_unreachable());
        assert_eq!(requests.load(Ordering::SeqCst), 3);
        assert!(played.connections() <= 3);
    }
}

/// 2.11: the upstream gave an idle connection up, and nobody has noticed.
#[tokio::test]
async fn c2_11_a_request_on_a_dead_connection_goes_to_a_fresh_one() {
    let peer = Server::on_thread(|number| match number {
        0 => vec![
            Step::ReadSome(24),
            // SETTINGS, and its acknowledgement; a 204 on stream 1.
            write([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0, 0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0]),
            Step::Wait(ms(20)),
            write([0, 0, 1, HEADERS, END_HEADERS | END_STREAM, 0, 0, 0, 1, 0x89]),
            Step::Wait(ms(50)),
            Step::Reset,
        ],
        _ => vec![
            Step::ReadSome(24),
            write([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0, 0, 0, 0, SETTINGS, ACK, 0, 0, 0, 0]),
            Step::Wait(ms(20)),
            write([0, 0, 1, HEADERS, END_HEADERS | END_STREAM, 0, 0, 0, 1, 0x89]),
            Step::ReadToEnd,
        ],
    });
    // Its room is given back before the fresh one needs it.
    let pool = peer.pool_with(|config| {
        config.http_version = HttpVersion::Http2;
        config.max_connections = 1;
    });
    assert_eq!(send(&pool, get("/")).await.unwrap().0, 204);
    peer.block_until(0, usize::MAX);
    // The client's runtime has not looked at the socket since. A body in pieces can be sent once more, too.
    let pieces = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))]);
    assert_eq!(send(&pool, post("/", RequestBody::stream(pieces, None))).await.unwrap().0, 204);
    assert_eq!(peer.connections(), 2);
    until_open(&pool, 1, 1).await;
}
