//! Decoding: whole or an error, and never more than the limit.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use http_body_util::BodyExt;
use steadfast::transport::TransportError;
use steadfast::transport::decode::{self, Codings};
use steadfast_http::{Fault, Sent};

use crate::server::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip_response(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

async fn decoded(response: Vec<u8>, max: u64) -> Result<http::Response<bytes::Bytes>, TransportError> {
    let server = Server::start(move |_| vec![Step::Read, write(&response), Step::ReadToEnd]).await;
    let pool = server.pool();
    let response = decode::collect_decoded(head(&pool, get("/")).await.unwrap(), max, Codings::ALL).await;
    until(|| pool.snapshot().open == pool.snapshot().idle).await;
    response
}

fn text() -> String {
    (0..20_000).map(|number| format!("line {number}\n")).collect()
}

#[tokio::test]
async fn a_gzip_body_is_decoded_and_its_headers_go() {
    let text = text();
    let response = decoded(gzip_response(&gzip(text.as_bytes())), MAX).await.unwrap();
    assert_eq!(response.body(), text.as_bytes());
    assert!(!response.headers().contains_key("content-encoding"));
    assert!(!response.headers().contains_key("content-length"));
    let twice = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(decoded(gzip_response(&twice), MAX).await.unwrap().body(), "one two");
    assert_eq!(decoded(gzip_response(&gzip(b"")), MAX).await.unwrap().body(), "");
    assert_eq!(decoded(gzip_response(b""), MAX).await.unwrap().body(), "");
}

#[tokio::test]
async fn any_division_into_pieces_gives_the_same() {
    let body = gzip(b"a small text, a small text, a small text");
    let server = Server::start(move |_| {
        let head = write("HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunks =
            body.iter().flat_map(|byte| [write([b"1\r\n", &[*byte][..], b"\r\n"].concat()), Step::Wait(ms(1))]);
        [Step::Read, head].into_iter().chain(chunks).chain([write("0\r\n\r\n"), Step::ReadToEnd]).collect()
    })
    .await;
    let pool = server.pool();
    let response = decode::wrap(head(&pool, get("/")).await.unwrap(), Codings::ALL);
    assert!(response.body().is_decoded());
    let body = response.into_body().collect(MAX).await.unwrap();
    assert_eq!(body, "a small text, a small text, a small text");
    assert_eq!(pool.snapshot().idle, 1);
}

/// A58. RFC 1952 section 2.3.1. 2.4
#[tokio::test]
async fn c2_4_a_body_that_is_not_whole_gzip_is_a_decode_error() {
    let whole = gzip(text().as_bytes());
    for cut in [1, 8, whole.len() / 2, whole.len() - 3] {
        assert_fault(decoded(gzip_response(&whole[..whole.len() - cut]), MAX).await, Fault::Decode, Sent::Yes);
    }
    let mut wrong_sum = whole.clone();
    let last = wrong_sum.len() - 6;
    wrong_sum[last] ^= 1;
    assert_fault(decoded(gzip_response(&wrong_sum), MAX).await, Fault::Decode, Sent::Yes);
    assert_fault(decoded(gzip_response(b"plain text"), MAX).await, Fault::Decode, Sent::Yes);
    assert_fault(decoded(gzip_response(&[&whole[..], b"rubbish"].concat()), MAX).await, Fault::Decode, Sent::Yes);
}

/// 7.5: the limit is that of the decoded bytes.
#[tokio::test]
async fn c7_5_a_bomb_is_stopped_at_the_limit() {
    let bomb = gzip(&vec![0; 48 * 1024 * 1024]);
    assert!(bomb.len() < 1024 * 1024);
    assert_fault(decoded(gzip_response(&bomb), 1_000_000).await, Fault::TooLarge, Sent::Yes);

    // Its pieces are small, however much one piece of the compressed body holds.
    let server = Server::start(move |_| vec![Step::Read, write(gzip_response(&bomb)), Step::ReadToEnd]).await;
    let mut body = decode::wrap(head(&server.pool(), get("/")).await.unwrap(), Codings::ALL).into_body();
    for _ in 0..100 {
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(piece.len() <= 128 * 1024, "{}", piece.len());
    }
}

#[tokio::test]
async fn what_is_not_gzip_stays_as_it_is() {
    let server = Server::start(|_| {
        vec![
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 77\r\n\r\n"),
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc"),
            Step::Read,
            write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\nContent-Length: 3\r\n\r\nabc"),
            Step::ReadToEnd,
        ]
    })
    .await;
    let pool = server.pool();
    let mut codings = Codings::NONE;
    codings.gzip = true;
    let response = decode::collect_decoded(head(&pool, request(Method::HEAD, "/", "")).await.unwrap(), MAX, codings)
        .await
        .unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["content-length"], "77");
    for encoding in ["br", "gzip, br"] {
        let response = decode::collect_decoded(head(&pool, get("/")).await.unwrap(), MAX, codings).await.unwrap();
        assert_eq!(
            (response.headers()["content-encoding"].to_str().unwrap(), &response.body()[..]),
            (encoding, &b"abc"[..])
        );
    }
    assert_eq!(server.connections(), 1);
}
