//! What goes out, what comes back, and that the connection is used again.

use std::sync::Arc;

use http::{Method, Response, StatusCode};
use steadfast::transport::{Exchange, ExchangeFuture, Outgoing, Progress, ResponseBody, Transport};
use steadfast_http::Sent;

use crate::server::*;

fn echo(times: usize) -> Vec<Step> {
    (0..times).flat_map(|number| [Step::Read, ok(&format!("answer {number}"))]).chain([Step::ReadToEnd]).collect()
}

#[tokio::test]
async fn requests_in_turn_use_one_connection() {
    let server = Server::start(|_| echo(3)).await;
    let pool = server.pool();
    for number in 0..3 {
        let (status, body) = send(&pool, get("/a?b=c")).await.unwrap();
        assert_eq!(status, StatusCode::OK);
        assert_eq!(body, format!("answer {number}"));
        assert_eq!(pool.snapshot().idle, 1);
    }
    assert_eq!(server.connections(), 1);
    let host = format!("host: {}\r\n", server.address);
    for request in server.requests(0) {
        assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&host), "{request}");
    }
}

/// On several threads the caller may see the end of the body before the connection is usable again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_in_turn_use_one_connection_on_several_threads() {
    let server = Server::start(|_| echo(300)).await;
    let pool = server.pool();
    for _ in 0..300 {
        send(&pool, get("/")).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_goes_out_with_its_length() {
    let server = Server::start(|_| echo(2)).await;
    let pool = server.pool();
    send(&pool, post("/", "hello")).await.unwrap();
    send(&pool, post("/", "")).await.unwrap();
    let requests = server.requests(0);
    assert!(requests[0].contains("content-length: 5\r\n") && requests[0].ends_with("\r\n\r\nhello"), "{}", requests[0]);
    assert!(requests[1].contains("content-length: 0\r\n"), "{}", requests[1]);
}

/// A52. RFC 9112 section 6.3
#[tokio::test]
async fn responses_without_a_body_end_at_once_and_leave_the_connection_usable() {
    let server = Server::start(|_| {
        vec![
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 204 No Content\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\n\r\n"),
            Step::Read,
            ok("done"),
            Step::ReadToEnd,
        ]
    })
    .await;
    let pool = server.pool();
    let head = head(&pool, request(Method::HEAD, "/", "")).await.unwrap();
    assert_eq!(head.headers()["content-length"], "1234");
    assert_eq!(pool.snapshot().idle, 1);
    assert_eq!(head.into_body().collect(MAX).await.unwrap(), "");
    assert_eq!(send(&pool, get("/")).await.unwrap().0, StatusCode::NO_CONTENT);
    assert_eq!(send(&pool, get("/")).await.unwrap().0, StatusCode::NOT_MODIFIED);
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "done");
    assert_eq!(server.connections(), 1);
}

/// A127, A129. RFC 3986 section 3.2.2
#[tokio::test]
async fn an_ipv6_literal_keeps_its_brackets() {
    let Ok(server) = Server::start_at("[::1]:0", |_| echo(1)).await else {
        // A machine without IPv6.
        return;
    };
    send(&server.pool(), get("/")).await.unwrap();
    let host = format!("host: [::1]:{}\r\n", server.address.port());
    assert!(server.requests(0)[0].contains(&host));
}

/// 7.7
#[tokio::test]
async fn a_closed_pool_keeps_nothing() {
    let server = Server::start(|_| echo(1)).await;
    let pool = server.pool();
    let response = head(&pool, get("/")).await.unwrap();
    pool.close();
    assert_eq!(response.into_body().collect(MAX).await.unwrap(), "answer 0");
    server.closed(0).await;
    send(&pool, get("/")).await.unwrap();
    server.closed(1).await;
    until_open(&pool, 0, 0).await;
}

#[tokio::test]
async fn dropping_the_last_clone_closes_what_is_idle() {
    let server = Server::start(|_| echo(1)).await;
    let pool = server.pool();
    send(&pool.clone(), get("/")).await.unwrap();
    assert_eq!(server.still_open(), 1);
    drop(pool);
    server.closed(0).await;
}

/// Another client behind the same trait.
struct Custom;

impl Exchange for Custom {
    fn exchange<'a>(&'a self, outgoing: Outgoing, progress: &'a mut Progress) -> ExchangeFuture<'a> {
        Box::pin(async move {
            progress.hand_over();
            let body = outgoing.request.uri().to_string();
            Ok(Response::new(ResponseBody::boxed(ResponseBody::full(body))))
        })
    }
}

#[tokio::test]
async fn a_transport_of_ones_own_takes_the_pools_place() {
    let mut progress = Progress::default();
    let custom = Transport::Custom(Arc::new(Custom));
    let response = custom.exchange(get("/x"), &mut progress).await.unwrap();
    assert_eq!(response.into_body().collect(MAX).await.unwrap(), "http://upstream.test/x");
    assert_eq!((progress.sent(), custom.snapshot()), (Sent::Unknown, None));

    let server = Server::start(|_| echo(2)).await;
    let pool = server.pool();
    let boxed: Arc<dyn Exchange> = Arc::new(pool.clone());
    for transport in [Transport::Pool(pool.clone()), Transport::Custom(boxed)] {
        let mut progress = Progress::default();
        let response = transport.exchange(get("/"), &mut progress).await.unwrap();
        assert_eq!(progress.sent(), Sent::Unknown);
        response.into_body().collect(MAX).await.unwrap();
    }
    assert_eq!((server.connections(), pool.snapshot().idle), (1, 1));
}

/// A130, A132. 8.6
#[tokio::test]
async fn c8_6_no_secret_is_shown() {
    let mut outgoing = get("/bot123:S3CR3T/x?key=S3CR3T");
    outgoing.request.headers_mut().insert("authorization", "Bearer S3CR3T".parse().unwrap());
    *outgoing.request.body_mut() = "S3CR3T".into();
    let mut shown = format!("{outgoing:?}");
    let server = Server::start(|_| vec![Step::Read, write("HTTP/1.1 nonsense S3CR3T\r\n\r\n")]).await;
    let pool = server.pool();
    let error = head(&pool, outgoing).await.unwrap_err();
    shown += &format!("{error} {error:?} {pool:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        shown += &format!("{error} {error:?}");
        source = error.source();
    }
    assert!(!shown.contains("S3CR3T") && !shown.contains("127.0.0.1"), "{shown}");
}
