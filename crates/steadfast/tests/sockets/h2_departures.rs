//! HTTP/2: connections that go away in good order, as servers do with those that have carried their number of requests,
//! or lay idle (RFC 9113 section 6.8). nginx and HAProxy do so under load.

use bytes::Bytes;
use futures_util::stream;
use h2::Reason;
use steadfast::ServiceClient;
use steadfast::transport::RequestBody;
use steadfast_http::{Fault, Sent};

use crate::h2_peer::*;
use crate::server::*;

/// An upstream whose connections go away in good order, each after it has answered one request and left out the others
/// of those that it must have got by then: three on the first, two on the second.
async fn departing() -> Played {
    Played::start(|number, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        for _ in number..3 {
            raw.request().await.unwrap();
        }
        raw.go_away(1, Reason::NO_ERROR).await;
        raw.head(1, 200, false).await;
        raw.write(DATA, END_STREAM, 1, b"x").await;
        raw.read_to_end().await;
    })
    .await
}

/// 2.11: a connection that goes away in good order is nobody's failure. What it left out goes elsewhere, as the same
/// attempt, even if it is left out twice.
#[tokio::test]
async fn c2_11_what_a_goaway_left_out_goes_on_as_the_same_attempt() {
    let played = departing().await;
    let client = ServiceClient::builder("http://upstream.test").transport(played.pool()).build().unwrap();
    let post = || async {
        let response = client.post("/").body("x").retry(false).send().await.unwrap();
        response.report().attempts().count()
    };
    assert_eq!(tokio::join!(post(), post(), post()), (1, 1, 1));
    assert_eq!(played.connections(), 3);
    assert_eq!(client.snapshot().breaker.failures, 0);
}

/// The same with bodies in pieces, which are sent from their start.
#[tokio::test]
async fn c2_11_a_body_in_pieces_that_a_goaway_left_out_is_sent_again() {
    let played = departing().await;
    let pool = played.pool();
    let pieces = || {
        let pieces = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))]);
        send(&pool, post("/", RequestBody::stream(pieces, None)))
    };
    let (first, second, third) = tokio::join!(pieces(), pieces(), pieces());
    for sent in [first, second, third] {
        assert_eq!(sent.unwrap().0, 200);
    }
    assert_eq!(played.connections(), 3);
}

/// An upstream that does nothing but go away is a failure, and no loop.
#[tokio::test]
async fn a_fresh_connection_that_goes_away_is_a_failure() {
    let played = Played::start(|number, socket| async move {
        let mut raw = Raw::greet(socket, &[]).await;
        if number == 0 {
            let stream = raw.request().await.unwrap();
            raw.ok(stream).await;
        }
        raw.request().await.unwrap();
        raw.go_away(if number == 0 { 1 } else { 0 }, Reason::NO_ERROR).await;
        raw.read_to_end().await;
    })
    .await;
    let pool = played.pool();
    send(&pool, get("/")).await.unwrap();
    assert_fault(send(&pool, get("/")).await, Fault::GoAway, Sent::No);
    assert_eq!(played.connections(), 2);
}
