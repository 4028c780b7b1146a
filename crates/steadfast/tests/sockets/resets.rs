//! Connections that end before an answer: what is resent, what is not, and what the error proves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use steadfast::transport::Stale408;
use steadfast_http::{Fault, Sent};
use tokio::time::sleep;

use crate::server::*;

/// A37: no loop, whatever happens on a connection that was just opened.
#[tokio::test]
async fn a_server_that_accepts_and_closes_costs_one_connection() {
    for last in [Vec::new(), vec![Step::Reset]] {
        let server = Server::start(move |_| last.clone()).await;
        let error = send(&server.pool(), get("/")).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Reset, "{error:?}");
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn a_close_after_the_request_leaves_the_outcome_unknown() {
    for last in [Vec::new(), vec![Step::Reset]] {
        let server = Server::start(move |_| [vec![Step::Read], last.clone()].concat()).await;
        assert_fault(send(&server.pool(), post("/", "x")).await, Fault::Reset, Sent::Unknown);
        assert_eq!(server.request_count(), 1);
    }
}

#[tokio::test]
async fn half_a_head_is_no_head() {
    let server = Server::start(|_| vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Le")]).await;
    assert_fault(send(&server.pool(), get("/")).await, Fault::Reset, Sent::Unknown);
}

/// A34. 2.3: a reset after any byte of the request was written proves nothing.
#[tokio::test]
async fn c2_3_a_request_written_on_a_used_connection_is_not_resent() {
    let server = Server::start(|_| vec![Step::Read, ok("first"), Step::Read]).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    assert_fault(send(&pool, post("/", "x")).await, Fault::Reset, Sent::Unknown);
    assert_eq!((server.connections(), server.request_count()), (1, 2));
}

/// A server that closes its first connections when the test says so, and keeps the others.
fn closing(first: usize) -> (Server, Arc<AtomicBool>) {
    let said = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&said);
    let server = Server::on_thread(move |number| {
        if number < first {
            vec![Step::Read, Step::Wait(ms(50)), ok("early"), Step::Until(Arc::clone(&until))]
        } else {
            vec![Step::Read, ok("late"), Step::ReadToEnd]
        }
    });
    (server, said)
}

/// A33, A36. 2.11. The client's thread is held up while the server closes, so that nobody has noticed.
#[tokio::test]
async fn c2_11_a_request_that_meets_a_dead_connection_goes_once_to_a_fresh_one() {
    for method in [get as fn(&str) -> _, |path| post(path, "body")] {
        let (server, close) = closing(3);
        let pool = server.pool();
        let (one, two, three) = tokio::join!(send(&pool, get("/")), send(&pool, get("/")), send(&pool, get("/")));
        for answer in [one, two, three] {
            assert_eq!(answer.unwrap().1, "early");
        }
        close.store(true, Ordering::SeqCst);
        for connection in 0..3 {
            server.block_until(connection, usize::MAX);
        }
        assert_eq!(pool.snapshot().idle, 3, "the test is about connections that nobody knows to be closed");
        assert_eq!(send(&pool, method("/")).await.unwrap().1, "late");
        assert_eq!((server.connections(), server.requests(3).len()), (4, 1));
    }
}

/// 2.11 under a cap: the dead connection's room is the fresh one's.
#[tokio::test]
async fn c2_11_holds_where_one_connection_is_all_there_is() {
    let (server, close) = closing(1);
    let pool = server.pool_with(|config| config.max_connections = 1);
    assert_eq!(send(&pool, post("/", "x")).await.unwrap().1, "early");
    close.store(true, Ordering::SeqCst);
    server.block_until(0, usize::MAX);
    assert_eq!(pool.snapshot().idle, 1);
    assert_eq!(send(&pool, post("/", "x")).await.unwrap().1, "late");
    assert_eq!(server.connections(), 2);
}

/// A37 on the second connection: once means once.
#[tokio::test]
async fn a_fresh_connection_that_dies_as_well_is_the_end() {
    let close = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&close);
    let server = Server::on_thread(move |number| match number {
        0 => vec![Step::Read, ok("x"), Step::Until(Arc::clone(&until))],
        _ => Vec::new(),
    });
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    close.store(true, Ordering::SeqCst);
    server.block_until(0, usize::MAX);
    let error = send(&pool, get("/")).await.unwrap_err();
    assert_eq!(error.fault(), Fault::Reset);
    assert_eq!(server.connections(), 2);
}

/// A35. RFC 9112 section 9.3.1
#[tokio::test]
async fn a_server_that_closes_after_each_response_causes_no_error() {
    let server = Server::start(|_| vec![Step::Read, ok("x")]).await;
    let pool = server.pool();
    for _ in 0..200 {
        assert_eq!(send(&pool, post("/", "y")).await.unwrap().1, "x");
    }
    assert_eq!(server.request_count(), 200);
}

/// A35: reuse at the very moment of the close. What cannot be hidden is an outcome that is unknown.
#[tokio::test]
async fn a_close_that_crosses_a_request_is_hidden_or_unknown() {
    let server = Server::on_thread(|_| vec![Step::Read, ok("x"), Step::Wait(ms(3))]);
    let pool = server.pool();
    let mut unknown = 0;
    for number in 0..200 {
        match send(&pool, get("/")).await {
            Ok((_, body)) => assert_eq!(body, "x"),
            Err(error) => {
                assert_eq!(error.fault(), Fault::Reset, "{error:?}");
                unknown += 1;
            }
        }
        sleep(std::time::Duration::from_micros(2_000 + number % 20 * 100)).await;
    }
    assert!(unknown < 100, "{unknown} of 200");
}

const TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

fn stale(number: usize) -> Vec<Step> {
    match number {
        0 => vec![Step::Read, ok("first"), Step::Read, write(TIMED_OUT)],
        _ => vec![Step::Read, ok("again"), Step::ReadToEnd],
    }
}

/// A50. 2.11. On a connection that was in use a moment ago it would be the answer.
#[tokio::test]
async fn c2_11_a_stale_408_sends_a_repeatable_request_to_a_fresh_connection() {
    let server = Server::start(stale).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    sleep(ms(20)).await;
    assert_eq!(send(&pool, get("/")).await.unwrap(), (StatusCode::OK, "again".into()));
    assert_eq!(server.connections(), 2);
}

/// Where the second try fails, the first may still have been taken.
#[tokio::test]
async fn after_a_stale_408_the_outcome_stays_unknown() {
    let server = Server::start(stale).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    drop(server);
    sleep(ms(20)).await;
    assert_fault(send(&pool, get("/")).await, Fault::Connect, Sent::Unknown);
}

#[tokio::test]
async fn c2_11_a_stale_408_is_marked_for_a_request_that_may_not_be_repeated() {
    let server = Server::start(stale).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    let response = head(&pool, post("/", "x")).await.unwrap();
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    assert_eq!(response.extensions().get::<Stale408>(), Some(&Stale408));
    assert_eq!(server.connections(), 1);
}

/// On a connection of its own, or on one that stays open, a 408 is the upstream's answer.
#[tokio::test]
async fn other_408s_are_answers() {
    let server = Server::start(|_| vec![Step::Read, write(TIMED_OUT)]).await;
    let response = head(&server.pool(), get("/")).await.unwrap();
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    assert!(response.extensions().get::<Stale408>().is_none());
    assert_eq!(server.connections(), 1);

    let open = write(TIMED_OUT.replace("Connection: close\r\n", ""));
    let server = Server::start(move |_| vec![Step::Read, ok("x"), Step::Read, open.clone(), Step::ReadToEnd]).await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    assert_eq!(send(&pool, get("/")).await.unwrap().0, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(server.connections(), 1);
}
