//! Dropping: what it closes, and what can be said about the request.

use std::future::Future;
use std::sync::Arc;

use http_body_util::BodyExt;
use steadfast::transport::{Pool, Progress, Resolve, ResolveFuture};
use steadfast_http::Sent;
use tokio::time::timeout;

use crate::server::*;

/// 1.6
#[tokio::test]
async fn c1_6_dropping_an_exchange_closes_its_connection_at_once() {
    let server = Server::start(|_| vec![Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool();
    let mut progress = Progress::default();
    timeout(ms(50), pool.exchange(get("/"), &mut progress)).await.unwrap_err();
    assert_eq!(progress.sent(), Sent::Unknown);
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
}

#[tokio::test]
async fn dropping_a_body_closes_its_connection_at_once() {
    let server = Server::start(|_| {
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Step::ReadToEnd]
    })
    .await;
    let pool = server.pool();
    let mut body = head(&pool, get("/")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(pool.snapshot().open, 1);
    drop(body);
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
}

/// The upstream takes nothing: that must not keep the connection.
#[tokio::test]
async fn dropping_a_stuck_upload_closes_its_connection_at_once() {
    let server = Server::start(|_| vec![Step::ReadSome(10), Step::Hang]).await;
    let pool = server.pool();
    timeout(ms(100), send(&pool, post("/", vec![b'x'; 32 * 1024 * 1024]))).await.unwrap_err();
    until_open(&pool, 0, 0).await;
}

struct NoAnswer;

impl Resolve for NoAnswer {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> ResolveFuture<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn nothing_is_sent_before_there_is_a_connection() {
    let server = Server::start(|_| Vec::new()).await;
    let mut config = server.config();
    config.host = "upstream.test".into();
    let pool = Pool::new(config, Arc::new(NoAnswer)).unwrap();
    let mut progress = Progress::default();
    timeout(ms(50), pool.exchange(get("/"), &mut progress)).await.unwrap_err();
    assert_eq!(progress.sent(), Sent::No);
    assert_eq!(pool.snapshot().open, 0);
}

/// The request was handed over, and the connection's task has not run since: nothing has gone out, and nothing will.
#[tokio::test]
async fn a_request_cancelled_before_its_first_byte_is_never_written() {
    let server = Server::start(|_| vec![Step::Read, ok("x"), Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool();
    send(&pool, get("/first")).await.unwrap();
    let mut progress = Progress::default();
    {
        let mut exchange = Box::pin(pool.exchange(post("/second", "x"), &mut progress));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(exchange.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(progress.sent(), Sent::No);
    server.closed(0).await;
    assert_eq!(server.requests(0).len(), 1);
}

/// On several threads the first byte and the cancellation race; "nothing was sent" must be true whenever it is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_is_said_only_if_it_is_true() {
    let server = Server::start(|_| vec![Step::Read, ok("x"), Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool();
    let (mut no, mut unknown) = (0, 0);
    for number in 0..200 {
        send(&pool, get("/first")).await.unwrap();
        let mut progress = Progress::default();
        {
            let mut exchange = Box::pin(pool.exchange(post("/second", "x"), &mut progress));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = exchange.as_mut().poll(&mut context);
            for _ in 0..number * 40 {
                std::hint::spin_loop();
            }
        }
        let sent = progress.sent();
        server.closed(number).await;
        let second_came = server.requests(number).len() > 1;
        match sent {
            Sent::No => {
                assert!(!second_came, "it came after all");
                no += 1;
            }
            _ => unknown += 1,
        }
    }
    assert_eq!(no + unknown, 200);
}
