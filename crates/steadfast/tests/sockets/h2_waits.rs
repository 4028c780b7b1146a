//! HTTP/2: one wait that follows another, and what its user does not come back for.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Instant;

use steadfast::transport::Progress;
use steadfast_http::{Fault, Sent};
use tokio::time::{sleep, timeout};

use crate::h2_peer::*;
use crate::server::*;

/// 1.2: the wait for the head begins when the last of the request was taken, also after a long wait for the window.
#[tokio::test]
async fn c1_2_read_timeout_holds_after_a_wait_for_the_window() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        let first = raw.request().await.unwrap();
        raw.ok(first).await;
        let stream = raw.next(HEADERS).await.unwrap().stream;
        sleep(ms(250)).await;
        raw.write(WINDOW_UPDATE, 0, stream, &600_u32.to_be_bytes()).await;
        raw.next(RST_STREAM).await.unwrap();
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool_with(|config| config.read_timeout = ms(100));
    // What the upstream allows is known only then.
    send(&pool, get("/")).await.unwrap();
    let start = Instant::now();
    let late = timeout(ms(3_000), send(&pool, post("/", vec![0; 600]))).await.expect("not only after write_timeout");
    assert_fault(late, Fault::ReadTimeout, Sent::Unknown);
    assert!(start.elapsed() >= ms(350), "{:?}", start.elapsed());
}

/// 0.1, 1.2: an answer that is there beats the limit, however often that passes before somebody asks for it.
#[tokio::test]
async fn c0_1_an_answer_that_nobody_has_asked_for_is_no_timeout() {
    let peer = Peer::start(100).await;
    let pool = peer.pool_with(|config| config.read_timeout = ms(60));
    send(&pool, get("/")).await.unwrap();
    let mut progress = Progress::default();
    let mut exchange = Box::pin(pool.exchange(get("/"), &mut progress));
    assert!(exchange.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    sleep(ms(400)).await;
    assert_eq!(exchange.await.unwrap().into_body().collect(MAX).await.unwrap(), "x");
    until_open(&pool, 1, 1).await;
}

/// An idle connection is closed in time also where one that waited for it has gone.
#[tokio::test]
async fn a_waiter_that_left_does_not_keep_an_idle_connection() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| {
        config.max_connections = 1;
        config.idle_timeout = ms(50);
    });
    let held = head(&pool, get("/size-100000")).await.unwrap();
    assert!(timeout(ms(20), send(&pool, get("/"))).await.is_err());
    drop(held);
    timeout(ms(5_000), until_open(&pool, 0, 0)).await.expect("not only when another limit would have passed");
}

/// 1.2: an interim response is a piece of the response, as over HTTP/1.1 (RFC 9110 section 15.2).
#[tokio::test]
async fn c1_2_read_timeout_bounds_the_wait_between_interim_responses() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        let stream = raw.request().await.unwrap();
        for _ in 0..4 {
            sleep(ms(100)).await;
            // :status 103, as a literal without indexing.
            raw.write(HEADERS, END_HEADERS, stream, b"\x08\x03103").await;
        }
        raw.ok(stream).await;
        let silent = raw.request().await.unwrap();
        raw.write(HEADERS, END_HEADERS, silent, b"\x08\x03103").await;
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool_with(|config| config.read_timeout = ms(250));
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    let late = timeout(ms(5_000), send(&pool, get("/"))).await.expect("bounded");
    assert_fault(late, Fault::ReadTimeout, Sent::Unknown);
}
