//! What HTTP/2 says of what was not processed, through a tower service (2.3, RFC 9113 section 8.7).

use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use steadfast::ServiceClient;
use steadfast::transport::RequestBody;
use tokio::time::timeout;

use super::describe;
use crate::server::*;

/// A frame: type, flags, stream, payload.
fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, 0], &stream.to_be_bytes(), payload].concat()
}

const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// What a POST comes to where the server says this once the request is there.
async fn post(said: Vec<u8>) -> String {
    let server = Server::start(move |_| {
        // The client's preface, its SETTINGS and WINDOW_UPDATE, then HEADERS and DATA follow at once.
        vec![Step::ReadSome(24), write(frame(SETTINGS, 0, &[])), Step::Wait(ms(100)), write(&said), Step::ReadToEnd]
    })
    .await;
    let service = legacy::Client::builder(TokioExecutor::new()).http2_only(true).build_http::<RequestBody>();
    let client = ServiceClient::builder(&format!("http://{}", server.address)).backoff_base(ms(1)).retries(1);
    let client = client.attempt_timeout(ms(2_000)).service(service).build().unwrap();
    let result = timeout(LONG, client.post("/").body("abc").send()).await.unwrap();
    describe(&result)
}

#[tokio::test]
async fn c2_3_a_stream_that_was_refused_was_not_sent() {
    let refused = frame(RST_STREAM, 1, &7_u32.to_be_bytes());
    let seen = post(refused).await;
    assert!(seen.starts_with("unreachable <- refused_stream-, "), "{seen}");
}

#[tokio::test]
async fn c2_3_a_stream_above_the_last_one_of_a_goaway_was_not_sent() {
    // Last stream 0, NO_ERROR: nothing was processed. Each attempt has a connection of its own.
    assert_eq!(post(frame(GOAWAY, 0, &[0; 8])).await, "unreachable <- goaway-, goaway-");
}

#[tokio::test]
async fn c2_3_another_reset_proves_nothing() {
    for reason in [2_u32, 8, 11] {
        let reset = frame(RST_STREAM, 1, &reason.to_be_bytes());
        assert_eq!(post(reset).await, "unreachable <- reset?", "{reason}");
    }
}

#[tokio::test]
async fn c2_3_a_frame_that_cannot_be_is_a_protocol_error() {
    // DATA on stream 0 (RFC 9113 section 6.1).
    assert_eq!(post(frame(0, 0, b"x")).await, "unreachable <- protocol?");
}
