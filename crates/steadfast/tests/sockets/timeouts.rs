//! Every wait has a limit, and each limit bounds the wait it is named after.

use std::time::Instant;

use http_body_util::BodyExt;
use steadfast_http::{Fault, Sent};
use tokio::time::{sleep, timeout};

use crate::server::*;

/// 1.2, A59
#[tokio::test]
async fn c1_2_read_timeout_bounds_the_wait_for_the_head() {
    let server = Server::start(|_| vec![Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool_with(|config| config.read_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::ReadTimeout, Sent::Unknown);
    assert!((ms(100)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
}

/// The limit holds on a connection whose timer was set for something later, too.
#[tokio::test]
async fn c1_2_read_timeout_holds_on_a_used_connection() {
    let server = Server::start(|_| vec![Step::Read, ok("x"), Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool_with(|config| config.read_timeout = ms(100));
    send(&pool, get("/")).await.unwrap();
    sleep(ms(250)).await;
    assert_eq!(pool.snapshot().idle, 1);
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::ReadTimeout, Sent::Unknown);
    assert!((ms(100)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// A59
#[tokio::test]
async fn c1_2_read_timeout_bounds_the_wait_for_a_piece_of_the_body() {
    let server = Server::start(|_| {
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Step::ReadToEnd]
    })
    .await;
    let pool = server.pool_with(|config| config.read_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::ReadTimeout, Sent::Yes);
    assert!((ms(100)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    server.closed(0).await;
}

#[tokio::test]
async fn a_slow_drip_is_not_a_timeout() {
    let server = Server::start(|_| {
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndrop drip";
        let drops = response.bytes().flat_map(|byte| [write([byte]), Step::Wait(ms(12))]);
        [Step::Read].into_iter().chain(drops).collect()
    })
    .await;
    let pool = server.pool_with(|config| config.read_timeout = ms(250));
    let start = Instant::now();
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "drop drip");
    assert!(start.elapsed() > ms(500));
}

/// 7.6: the limit runs only while somebody waits.
#[tokio::test]
async fn c7_6_a_reader_that_takes_its_time_is_not_timed_out() {
    let server = Server::start(|_| {
        vec![
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none"),
            Step::Wait(ms(400)),
            write("two"),
            Step::ReadToEnd,
        ]
    })
    .await;
    let pool = server.pool_with(|config| config.read_timeout = ms(100));
    let mut body = head(&pool, get("/")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
    sleep(ms(500)).await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "two");
    sleep(ms(300)).await;
    let start = Instant::now();
    assert_fault(body.frame().await.unwrap(), Fault::ReadTimeout, Sent::Yes);
    assert!((ms(90)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// Takes a long request bit by bit, in more than a second.
fn drain(size: usize) -> Vec<Step> {
    let drain = (0..32).flat_map(|_| [Step::ReadSome(size / 32), Step::Wait(ms(40))]);
    drain.chain([ok("all read"), Step::ReadToEnd]).collect()
}

/// A68. What the system holds for the upstream at the end counts as sent; the limit leaves time for that.
#[tokio::test]
async fn read_timeout_does_not_run_while_the_request_goes_out() {
    const SIZE: usize = 16 * 1024 * 1024;
    let server = Server::narrow(|_| drain(SIZE)).await;
    let pool = server.pool_with(|config| config.read_timeout = ms(800));
    let start = Instant::now();
    assert_eq!(send(&pool, post("/", vec![b'x'; SIZE])).await.unwrap().1, "all read");
    assert!(start.elapsed() > ms(1_000));
}

/// 1.2
#[tokio::test]
async fn c1_2_write_timeout_bounds_the_wait_to_write() {
    let server = Server::start(|_| vec![Step::ReadSome(10), Step::Hang]).await;
    let pool = server.pool_with(|config| config.write_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, post("/", vec![b'x'; 32 * 1024 * 1024])).await, Fault::WriteTimeout, Sent::Unknown);
    assert!((ms(100)..ms(4_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    until_open(&pool, 0, 0).await;
}

/// A quick upstream and a long request: progress counts, not the whole.
#[tokio::test]
async fn write_timeout_bounds_each_wait_and_not_their_sum() {
    const SIZE: usize = 16 * 1024 * 1024;
    let server = Server::narrow(|_| drain(SIZE)).await;
    let pool = server.pool_with(|config| config.write_timeout = ms(500));
    assert_eq!(send(&pool, post("/", vec![b'x'; SIZE])).await.unwrap().1, "all read");
}

/// 5.2: a body that nobody polls is closed at the call's deadline.
#[tokio::test]
async fn c5_2_the_deadline_closes_a_connection_that_nobody_polls() {
    let server = Server::start(|_| {
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Step::ReadToEnd]
    })
    .await;
    let pool = server.pool();
    let mut outgoing = get("/");
    outgoing.time_left = ms(150);
    let mut body = head(&pool, outgoing).await.unwrap().into_body();
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    assert_fault(body.frame().await.unwrap(), Fault::Deadline, Sent::Yes);
}

/// 5.2: the same before the head, on a connection that was used before.
#[tokio::test]
async fn c5_2_the_deadline_closes_an_exchange_that_nobody_polls() {
    let server = Server::start(|_| vec![Step::Read, ok("x"), Step::Read, Step::ReadToEnd]).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    let mut outgoing = get("/");
    outgoing.time_left = ms(150);
    let mut exchange = Box::pin(head(&pool, outgoing));
    timeout(ms(30), &mut exchange).await.unwrap_err();
    server.closed(0).await;
    assert_fault(exchange.await, Fault::Deadline, Sent::Unknown);
}

/// The deadline of one use is not that of the next.
#[tokio::test]
async fn a_deadline_ends_with_its_exchange() {
    let server = Server::start(|_| vec![Step::Read, ok("x"), Step::Read, Step::Wait(ms(200)), ok("y")]).await;
    let pool = server.pool();
    let mut outgoing = get("/");
    outgoing.time_left = ms(100);
    send(&pool, outgoing).await.unwrap();
    sleep(ms(50)).await;
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "y");
}
