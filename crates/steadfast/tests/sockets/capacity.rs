//! How many connections there are, which one is used, and how long it is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use steadfast_http::{Fault, Sent};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::server::*;

fn echo(times: usize) -> Vec<Step> {
    (0..times).flat_map(|_| [Step::Read, ok("x")]).chain([Step::ReadToEnd]).collect()
}

#[tokio::test]
async fn pool_timeout_bounds_the_wait_for_a_connection() {
    let server = Server::start(|_| vec![Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool_with(|config| {
        config.max_connections = 2;
        config.pool_timeout = ms(80);
    });
    let mut held = JoinSet::new();
    for _ in 0..2 {
        let pool = pool.clone();
        held.spawn(async move { head(&pool, get("/")).await.is_ok() });
    }
    until_open(&pool, 2, 0).await;
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::PoolTimeout, Sent::No);
    assert!((ms(80)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    held.shutdown().await;
    until_open(&pool, 0, 0).await;
}

/// Those that wait are served in the order in which they came, by the connections that are given back.
#[tokio::test]
async fn a_connection_goes_to_the_first_that_waits() {
    let server = Server::start(|_| echo(100)).await;
    let pool = server.pool_with(|config| config.max_connections = 1);
    let first = head(&pool, get("/")).await.unwrap();
    let mut waiting = JoinSet::new();
    for number in 0..10 {
        let pool = pool.clone();
        waiting.spawn(async move { send(&pool, get(&format!("/{number}"))).await.unwrap() });
        tokio::task::yield_now().await;
    }
    first.into_body().collect(MAX).await.unwrap();
    assert_eq!(waiting.join_all().await.len(), 10);
    assert_eq!(server.connections(), 1);
    let paths: Vec<_> = server.requests(0)[1..].iter().map(|request| request.as_bytes()[5]).collect();
    assert_eq!(paths, b"0123456789");
}

/// A connection that its user cuts off leaves its room to the next.
#[tokio::test]
async fn room_goes_to_the_first_that_waits() {
    let server =
        Server::start(|_| vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), Step::ReadToEnd])
            .await;
    let pool = server.pool_with(|config| config.max_connections = 1);
    let first = head(&pool, get("/")).await.unwrap();
    let mut second = Box::pin(head(&pool, get("/")));
    timeout(ms(50), &mut second).await.unwrap_err();
    drop(first);
    let second = second.await.unwrap();
    assert_eq!(server.connections(), 2);
    drop(second);
    until_open(&pool, 0, 0).await;
}

/// The connection used last is used next, so that the surplus ages out.
#[tokio::test]
async fn the_last_connection_given_back_is_the_next_used() {
    let server = Server::start(|_| echo(100)).await;
    let pool = server.pool();
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(head(&pool, get("/")).await.unwrap());
    }
    // 1 is given back last.
    for index in [2, 0, 0] {
        open.remove(index).into_body().collect(MAX).await.unwrap();
    }
    for _ in 0..5 {
        send(&pool, get("/again")).await.unwrap();
    }
    assert_eq!([0, 1, 2].map(|connection| server.requests(connection).len()), [1, 6, 1]);
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_traffic() {
    let server = Server::start(|_| echo(100)).await;
    let pool = server.pool_with(|config| config.idle_timeout = ms(400));
    send(&pool, get("/")).await.unwrap();
    for _ in 0..6 {
        sleep(ms(100)).await;
        send(&pool, get("/")).await.unwrap();
    }
    assert_eq!(server.connections(), 1, "it was never idle for so long");
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
    send(&pool, get("/")).await.unwrap();
    assert_eq!(server.connections(), 2);
}

/// A41: traffic does not keep a connection for ever.
#[tokio::test]
async fn a_connection_is_retired_at_its_age() {
    let server = Server::start(|_| echo(1_000)).await;
    let pool = server.pool_with(|config| config.max_connection_age = ms(150));
    let start = Instant::now();
    while start.elapsed() < ms(500) {
        send(&pool, get("/")).await.unwrap();
        sleep(ms(5)).await;
    }
    assert!((2..=5).contains(&server.connections()), "{}", server.connections());
    until_open(&pool, 0, 0).await;
}

/// A39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_under_contention_loses_no_room() {
    let server = Server::start(|_| (0..1_000).flat_map(|_| [Step::Read, Step::Wait(ms(2)), ok("x")]).collect()).await;
    let pool = server.pool_with(|config| config.max_connections = 10);
    let mut tasks = JoinSet::new();
    for task in 0..20_u64 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut random = fastrand::Rng::with_seed(task);
            for _ in 0..150 {
                let limit = std::time::Duration::from_micros(random.u64(0..8_000));
                let _ = timeout(limit, send(&pool, get("/"))).await;
                assert!(pool.snapshot().open <= 10);
            }
        });
    }
    tasks.join_all().await;
    send(&pool, get("/")).await.unwrap();
    until(|| pool.snapshot().open == pool.snapshot().idle).await;
}

/// A40: responses that nobody read do not pile up, and the upstream never sees more connections than allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_responses_give_their_room_back() {
    let server =
        Server::start(|_| vec![Step::Read, write("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\nhalf"), Step::ReadToEnd])
            .await;
    let pool = server.pool_with(|config| config.max_connections = 1);
    let most = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let response = head(&pool, get("/")).await.unwrap();
        most.fetch_max(pool.snapshot().open, Ordering::SeqCst);
        drop(response);
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(server.connections(), 50);
    until(|| server.still_open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_stay_within_the_cap() {
    let server = Server::start(|_| echo(10_000)).await;
    let pool = server.pool_with(|config| config.max_connections = 4);
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let pool = pool.clone();
        tasks.spawn(async move {
            for _ in 0..50 {
                send(&pool, get("/")).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert!(server.connections() <= 4);
    assert_eq!(server.request_count(), 32 * 50);
}
