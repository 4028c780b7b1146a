//! HTTP/2: how many exchanges share a connection, and how many connections there are.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h2::Reason;
use http::StatusCode;
use http_body::Body;
use steadfast::transport::{Pool, Resolve, ResolveFuture};
use steadfast_http::{Fault, Sent};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::h2_peer::*;
use crate::server::*;

async fn at_once(pool: &Pool, count: usize, path: &'static str) {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let pool = pool.clone();
        tasks.spawn(async move { send(&pool, get(path)).await.map(|(status, _)| status) });
    }
    for result in tasks.join_all().await {
        assert_eq!(result.unwrap(), StatusCode::OK);
    }
}

/// As many connections as needed, and no stream beyond what the upstream allows.
#[tokio::test]
async fn twenty_at_once_share_what_the_upstream_allows() {
    for (limit, connections) in [(1, 20), (2, 10), (7, 3), (20, 1), (100, 1)] {
        let peer = Peer::start(limit).await;
        let pool = peer.pool();
        // Nothing is known yet: one connection is opened, and what it does not carry opens others.
        at_once(&pool, 20, "/wait-150").await;
        assert_eq!(peer.connections(), connections, "limit {limit}");
        assert_eq!(peer.requests(), 20);
        assert!(peer.peak() <= limit as usize);
        until_open(&pool, connections, connections).await;
        at_once(&pool, 20, "/wait-20").await;
        assert_eq!(peer.connections(), connections, "limit {limit}");
    }
}

#[tokio::test]
async fn max_connections_holds_and_those_beyond_wait() {
    let peer = Peer::start(2).await;
    let pool = peer.pool_with(|config| config.max_connections = 3);
    at_once(&pool, 30, "/wait-5").await;
    assert_eq!(peer.connections(), 3);
    assert_eq!(peer.peak(), 2);
    until_open(&pool, 3, 3).await;
}

#[tokio::test]
async fn pool_timeout_bounds_the_wait_for_a_stream() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| {
        config.max_connections = 1;
        config.pool_timeout = ms(50);
    });
    send(&pool, get("/")).await.unwrap();
    let (held, refused) = tokio::join!(send(&pool, get("/wait-200")), async {
        sleep(ms(10)).await;
        send(&pool, get("/")).await
    });
    held.unwrap();
    assert_fault(refused, Fault::PoolTimeout, Sent::No);
    assert_eq!((peer.connections(), peer.requests()), (1, 2));
}

/// Those that wait are served in the order in which they came.
#[tokio::test]
async fn a_stream_goes_to_the_first_that_waits() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| config.max_connections = 1);
    let first = head(&pool, get("/size-100000")).await.unwrap();
    let mut waiting = JoinSet::new();
    for number in 0..10 {
        let pool = pool.clone();
        waiting.spawn(async move { send(&pool, get(&format!("/{number}"))).await.unwrap() });
        tokio::task::yield_now().await;
    }
    first.into_body().collect(MAX).await.unwrap();
    assert_eq!(waiting.join_all().await.len(), 10);
    let heads = peer.counts.heads.lock().unwrap();
    let paths: String = heads[1..].iter().map(|head| &head.uri().path()[1..]).collect();
    assert_eq!(paths, "0123456789");
}

/// One that waits and is dropped, before or after it was granted a stream, takes nothing along.
#[tokio::test]
async fn a_dropped_waiter_hands_its_stream_on() {
    let peer = Peer::start(1).await;
    let pool = peer.pool_with(|config| config.max_connections = 1);
    let held = head(&pool, get("/size-100000")).await.unwrap();
    let mut before = Box::pin(send(&pool, get("/before")));
    let mut granted = Box::pin(send(&pool, get("/granted")));
    let mut last = Box::pin(send(&pool, get("/last")));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(before.as_mut().poll(&mut cx).is_pending());
    assert!(granted.as_mut().poll(&mut cx).is_pending());
    assert!(last.as_mut().poll(&mut cx).is_pending());
    drop(before);
    // Resets the stream, which goes to the second, which does not poll any more.
    drop(held);
    drop(granted);
    assert_eq!(last.await.unwrap().1, "x");
    assert_eq!(peer.connections(), 1);
    until_open(&pool, 1, 1).await;
}

/// SETTINGS may change at any time (RFC 9113 section 6.5.3).
#[tokio::test]
async fn the_limit_may_change_in_mid_life() {
    let next = Arc::new(Notify::new());
    let said = Arc::clone(&next);
    let played = Played::start(move |number, socket| {
        let next = Arc::clone(&said);
        async move {
            let mut raw = Raw::greet(socket, &[(MAX_CONCURRENT_STREAMS, 100)]).await;
            if number > 0 {
                return raw.answer_all().await;
            }
            let first = raw.request().await.unwrap();
            raw.ok(first).await;
            let mut held = Vec::new();
            for _ in 0..3 {
                held.push(raw.request().await.unwrap());
            }
            // None at all: what runs goes on.
            raw.settings(&[(MAX_CONCURRENT_STREAMS, 0)]).await;
            raw.write(PING, 0, 0, &[0; 8]).await;
            raw.next(PING).await.unwrap();
            next.notify_one();
            for stream in held {
                raw.ok(stream).await;
            }
            // Open again.
            next.notified().await;
            raw.settings(&[(MAX_CONCURRENT_STREAMS, 5)]).await;
            raw.write(PING, 0, 0, &[0; 8]).await;
            raw.next(PING).await.unwrap();
            next.notify_one();
            raw.answer_all().await;
        }
    })
    .await;
    let pool = played.pool_with(|config| config.max_connections = 2);
    send(&pool, get("/")).await.unwrap();
    let mut held = JoinSet::new();
    for _ in 0..3 {
        let pool = pool.clone();
        held.spawn(async move { send(&pool, get("/")).await.unwrap() });
    }
    next.notified().await;
    // The connection is full: another is opened.
    send(&pool, get("/")).await.unwrap();
    assert_eq!(played.connections(), 2);
    assert_eq!(held.join_all().await.len(), 3);
    next.notify_one();
    sleep(ms(20)).await;
    next.notified().await;
    at_once(&pool, 20, "/").await;
    assert_eq!(played.connections(), 2);
}

/// One that waits for a stream gets it when the upstream allows more.
#[tokio::test]
async fn a_raised_limit_serves_those_that_wait() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(MAX_CONCURRENT_STREAMS, 1)]).await;
        let first = raw.request().await.unwrap();
        sleep(ms(30)).await;
        raw.settings(&[(MAX_CONCURRENT_STREAMS, 2)]).await;
        let second = raw.request().await.unwrap();
        raw.ok(second).await;
        raw.ok(first).await;
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool_with(|config| config.max_connections = 1);
    at_once(&pool, 2, "/").await;
    assert_eq!(played.connections(), 1);
}

#[tokio::test]
async fn a_thousand_in_a_row_and_two_hundred_at_once_use_one_connection() {
    let peer = Peer::start(1_000).await;
    let pool = peer.pool();
    for _ in 0..1_000 {
        assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    }
    at_once(&pool, 200, "/wait-10/size-1000").await;
    assert_eq!((peer.connections(), peer.requests()), (1, 1_200));
    assert!(peer.peak() > 100, "{}", peer.peak());
    until_open(&pool, 1, 1).await;
    until(|| peer.running() == 0).await;
}

/// 1.6: whatever is dropped wherever, everything is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_6_a_storm_of_cancellations_leaves_nothing_behind() {
    let peer = Peer::start(50).await;
    let pool = peer.pool_with(|config| config.max_connections = 1);
    send(&pool, get("/")).await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..40u64 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(task);
            for _ in 0..50 {
                let path = ["/", "/wait-3", "/hang", "/size-200000", "/echo"][random.usize(0..5)];
                let long = vec![0; random.usize(0..100_000)];
                let within = Duration::from_micros(random.u64(0..3_000));
                let outgoing = if path == "/echo" { post(path, long) } else { get(path) };
                let _ = timeout(within, send(&pool, outgoing)).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    until_open(&pool, 1, 1).await;
    until(|| peer.running() == 0).await;
    assert_eq!(peer.connections(), 1);
    // All fifty streams are there.
    at_once(&pool, 50, "/wait-50").await;
    assert_eq!(peer.connections(), 1);
}

/// The connection that the others wait for cannot be opened: each then tries on its own.
#[tokio::test]
async fn a_failed_connection_is_nobody_elses_failure() {
    let played = Played::start(|number, socket| async move {
        if number == 0 {
            sleep(ms(30)).await;
            return;
        }
        Raw::greet(socket, &[]).await.answer_all().await;
    })
    .await;
    let pool = played.pool();
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let pool = pool.clone();
        tasks.spawn(async move { send(&pool, get("/")).await.is_ok() });
    }
    let good = tasks.join_all().await.into_iter().filter(|good| *good).count();
    assert_eq!(good, 9);
    assert!(played.connections() <= 10);
}

/// The one that opens the connection for the others is dropped: the next opens it.
#[tokio::test]
async fn a_dropped_opener_is_replaced() {
    let peer = Peer::start(100).await;
    let mut config = peer.config();
    config.host = "upstream.test".into();
    let pool = Pool::new(config, Arc::new(SlowOnce(AtomicUsize::new(0)))).unwrap();
    let mut opener = Box::pin(send(&pool, get("/")));
    let mut others: Vec<_> = (0..5).map(|_| Box::pin(send(&pool, get("/")))).collect();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(opener.as_mut().poll(&mut cx).is_pending());
    assert!(others.iter_mut().all(|other| other.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(pool.snapshot().open, 1);
    drop(opener);
    let results = futures_util::future::join_all(others).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((peer.connections(), peer.requests()), (1, 5));
}

/// The first name takes for ever.
struct SlowOnce(AtomicUsize);

impl Resolve for SlowOnce {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ResolveFuture<'a> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if number == 0 {
                std::future::pending::<()>().await;
            }
            Ok(vec![([127, 0, 0, 1], port).into()])
        })
    }
}

/// Nobody waits for ever for a connection that does not come to life.
#[tokio::test]
async fn a_silent_new_connection_holds_up_others_for_pool_timeout_at_most() {
    let played = Played::start(|number, socket| async move {
        if number == 0 {
            sleep(LONG).await;
        }
        Raw::greet(socket, &[]).await.answer_all().await;
    })
    .await;
    let pool = played.pool_with(|config| config.pool_timeout = ms(50));
    let mut first = pin!(send(&pool, get("/")));
    timeout(ms(20), &mut first).await.unwrap_err();
    // There is room, so that this is no failure.
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "x");
    assert_eq!(played.connections(), 2);
}

/// A body that nobody reads holds up nobody else.
#[tokio::test]
async fn an_unread_body_does_not_hold_up_the_others() {
    let peer = Peer::start(100).await;
    let pool = peer.pool();
    let mut unread = Vec::new();
    for _ in 0..10 {
        unread.push(head(&pool, get("/size-3000000")).await.unwrap().into_body());
    }
    sleep(ms(50)).await;
    let (_, body) = timeout(ms(1_000), send(&pool, get("/size-2000000"))).await.unwrap().unwrap();
    assert_eq!((body.len(), peer.connections()), (2_000_000, 1));
    let mut read = unread.pop().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(&mut read).poll_frame(&mut cx), Poll::Ready(Some(Ok(_)))));
    drop((unread, read));
    until_open(&pool, 1, 1).await;
    until(|| peer.running() == 0).await;
}

/// Connections come and go under the load: age, GOAWAY, cancellations. Nothing is lost, and nothing fails that was not
/// proven unsent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_and_go_lose_nothing() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[(MAX_CONCURRENT_STREAMS, 5)]).await;
        for number in 0.. {
            let Some(stream) = raw.request().await else { return };
            raw.ok(stream).await;
            if number == 20 {
                raw.go_away(stream, Reason::NO_ERROR).await;
            }
        }
    })
    .await;
    let pool = played.pool_with(|config| {
        config.max_connections = 3;
        config.max_connection_age = ms(20);
        config.idle_timeout = ms(10);
    });
    let mut tasks = JoinSet::new();
    for task in 0..20 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(task);
            for _ in 0..50 {
                assert!(pool.snapshot().open <= 3);
                if random.u8(0..4) == 0 {
                    let within = Duration::from_micros(random.u64(0..500));
                    let _ = timeout(within, send(&pool, get("/"))).await;
                } else if let Err(error) = send(&pool, get("/")).await {
                    assert_eq!((error.fault(), error.sent()), (Fault::GoAway, Sent::No), "{error:?}");
                }
            }
        });
    }
    tasks.join_all().await;
    until_open(&pool, 0, 0).await;
    send(&pool, get("/")).await.unwrap();
}

/// The same with an upstream that closes connections without a word while they are idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_closes_idle_connections_causes_no_error() {
    let played = Played::start(|_, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        while let Ok(Some(stream)) = timeout(ms(20), raw.request()).await {
            raw.ok(stream).await;
        }
        raw.close().await;
    })
    .await;
    let pool = played.pool();
    for number in 0..30 {
        sleep(ms(18) + Duration::from_micros(number * 130)).await;
        if let Err(error) = send(&pool, get("/")).await {
            // The two have crossed, and something was sent.
            assert_eq!((error.fault(), error.sent()), (Fault::Reset, Sent::Unknown), "{error:?}");
        }
    }
    until_open(&pool, 0, 0).await;
    assert!(played.connections() > 5, "{}", played.connections());
}
