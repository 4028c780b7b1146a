//! Where a response begins and ends, and what is left on the connection after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use steadfast_http::{Fault, Sent};

use crate::server::*;

async fn answer(bytes: impl AsRef<[u8]>) -> Result<(StatusCode, bytes::Bytes), steadfast::transport::TransportError> {
    let bytes = bytes.as_ref().to_vec();
    let server = Server::start(move |_| vec![Step::Read, write(&bytes)]).await;
    send(&server.pool(), get("/")).await
}

/// A51. RFC 9110 section 15.2
#[tokio::test]
async fn interim_responses_are_passed_over() {
    let server = Server::start(|_| {
        vec![
            Step::Read,
            write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"),
            Step::Wait(ms(20)),
            write("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            Step::Read,
            ok("second"),
            Step::ReadToEnd,
        ]
    })
    .await;
    let pool = server.pool();
    assert_eq!(send(&pool, get("/")).await.unwrap(), (StatusCode::OK, "hello".into()));
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "second");
    assert_eq!(server.connections(), 1);
}

/// A55. RFC 9112 section 8. 2.4
#[tokio::test]
async fn c2_4_less_than_the_length_is_incomplete() {
    assert_fault(
        answer("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\nfourteen bytes").await,
        Fault::Incomplete,
        Sent::Yes,
    );
    let server = Server::start(|_| {
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Step::Wait(ms(20)), Step::Reset]
    })
    .await;
    assert_fault(send(&server.pool(), get("/")).await, Fault::Incomplete, Sent::Yes);
}

/// A56. RFC 9112 section 8
#[tokio::test]
async fn a_chunked_body_without_its_last_chunk_is_incomplete() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for cut in ["5\r\nhello\r\n", "5\r\nhel", "5\r\nhello\r\n0\r\n", "5"] {
        assert_fault(answer(format!("{head}{cut}")).await, Fault::Incomplete, Sent::Yes);
    }
    let whole = answer(format!("{head}5\r\nhello\r\n3;ext=1\r\n, y\r\n0\r\nX-Sum: 1\r\n\r\n")).await;
    assert_eq!(whole.unwrap().1, "hello, y");
}

/// A57: a body that was cut is never joined with another.
#[tokio::test]
async fn the_bytes_of_two_responses_are_never_mixed() {
    let server = Server::start(|number| match number {
        0 => vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nuse")],
        _ => vec![Step::Read, ok("users")],
    })
    .await;
    let pool = server.pool();
    assert_fault(send(&pool, get("/")).await, Fault::Incomplete, Sent::Yes);
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "users");
}

#[tokio::test]
async fn bytes_that_are_not_http_are_a_protocol_error() {
    let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(600_000));
    for garbage in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "\u{0}\u{1}\u{2}\u{3}",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        &huge,
    ] {
        assert_fault(answer(garbage).await, Fault::Protocol, Sent::Unknown);
    }
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n";
    assert_fault(answer(chunk).await, Fault::Protocol, Sent::Yes);
}

#[tokio::test]
async fn a_body_without_length_ends_with_the_connection() {
    assert_eq!(answer("HTTP/1.0 200 OK\r\n\r\nto the end").await.unwrap().1, "to the end");
    assert_eq!(answer("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.unwrap().1, "");
}

/// A50, A54. RFC 9112 section 9.2: what nobody asked for is not an answer.
#[tokio::test]
async fn an_unasked_response_closes_an_idle_connection() {
    let unasked = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(move |number| match number {
        0 => vec![Step::Read, ok("first"), Step::Wait(ms(30)), write(unasked), Step::ReadToEnd],
        _ => vec![Step::Read, ok("second"), Step::ReadToEnd],
    })
    .await;
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "second");
}

/// The same where the client's thread was held up and nobody has read the bytes yet.
#[tokio::test]
async fn an_unasked_response_that_nobody_has_read_is_no_answer() {
    let said = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&said);
    let server = Server::on_thread(move |number| match number {
        0 => vec![Step::Read, ok("first"), Step::Until(Arc::clone(&until)), ok("unasked"), Step::ReadToEnd],
        _ => vec![Step::Read, ok("second"), Step::ReadToEnd],
    });
    let pool = server.pool();
    send(&pool, get("/")).await.unwrap();
    said.store(true, Ordering::SeqCst);
    server.block_until(0, 4);
    assert_eq!(pool.snapshot().idle, 1);
    assert_eq!(send(&pool, post("/", "x")).await.unwrap().1, "second");
    assert_eq!(server.requests(0).len(), 1);
}

#[tokio::test]
async fn what_follows_a_response_does_not_become_the_next() {
    let server = Server::start(|number| match number {
        0 => {
            let rest = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".repeat(20_000);
            vec![Step::Read, write(format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst{rest}"))]
        }
        _ => vec![Step::Read, ok("second"), Step::ReadToEnd],
    })
    .await;
    let pool = server.pool();
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "first");
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "second");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connection_close_is_heeded() {
    let server = Server::start(|_| {
        vec![Step::Read, write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"), Step::ReadToEnd]
    })
    .await;
    let pool = server.pool();
    for number in 1..4 {
        send(&pool, get("/")).await.unwrap();
        assert_eq!((server.connections(), pool.snapshot().idle), (number, 0));
    }
}

/// 7.5
#[tokio::test]
async fn c7_5_a_body_over_the_limit_is_stopped() {
    let server = Server::start(|_| vec![Step::Read, ok(&"x".repeat(1_000)), Step::ReadToEnd]).await;
    let pool = server.pool();
    assert_fault(head(&pool, get("/")).await.unwrap().into_body().collect(999).await, Fault::TooLarge, Sent::Yes);
    server.closed(0).await;
    assert_eq!(head(&pool, get("/")).await.unwrap().into_body().collect(1_000).await.unwrap().len(), 1_000);

    let endless = Server::start(|_| {
        let chunk = format!("400\r\n{}\r\n", "x".repeat(1_024));
        let begin = [Step::Read, write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")];
        begin.into_iter().chain((0..10_000).map(move |_| write(&chunk))).collect()
    })
    .await;
    let response = head(&endless.pool(), get("/")).await.unwrap();
    assert_fault(response.into_body().collect(100_000).await, Fault::TooLarge, Sent::Yes);
}

/// The upstream answers without reading the request: the answer counts, and the connection does not come back.
#[tokio::test]
async fn an_early_answer_to_a_long_request_is_an_answer() {
    let server = Server::start(|_| {
        vec![Step::ReadSome(1_000), write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"), Step::Hang]
    })
    .await;
    let pool = server.pool();
    let (status, body) = send(&pool, post("/", vec![b'x'; 32 * 1024 * 1024])).await.unwrap();
    assert_eq!((status, body), (StatusCode::PAYLOAD_TOO_LARGE, "big".into()));
    until_open(&pool, 0, 0).await;
}
