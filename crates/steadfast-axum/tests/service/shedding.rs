//! The door over sockets: a crowd, and callers who hang up.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures_util::future::join_all;
use http::HeaderName;
use steadfast_axum::{ContextLayer, ShedLayer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::caller::Caller;
use crate::upstream::serve;

/// A service whose requests end when the test lets them.
async fn start(layer: &ShedLayer) -> (Caller, Arc<Semaphore>) {
    let let_go = Arc::new(Semaphore::new(0));
    let inner = Arc::clone(&let_go);
    let handler = move || async move {
        inner.acquire().await.unwrap().forget();
        Ok::<_, Infallible>("done")
    };
    let context = ContextLayer::new().deadline_header(HeaderName::from_static("x-time-left-ms"));
    let router = Router::new().route("/a", get(handler.clone())).route("/b", get(handler));
    (Caller::of(serve(router.layer(layer.clone()).layer(context)).await), let_go)
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..4_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to be");
}

#[tokio::test]
async fn a_crowd_is_served_in_part_and_the_rest_told_so_at_once() {
    let layer = ShedLayer::new(3).max_queued(2).queue_wait(Duration::from_secs(60));
    let (caller, let_go) = start(&layer).await;
    // Of two routes: they have the places together.
    let calls = (0..20).map(|number| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.get(if number % 2 == 0 { "/a" } else { "/b" }, &[]).await })
    });
    let calls: Vec<_> = calls.collect();
    until(|| layer.snapshot().overloaded == 15).await;
    assert_eq!((layer.snapshot().in_flight, layer.snapshot().queued), (3, 2));
    // One that nobody waits for when its turn would come.
    let late = caller.get("/a", &[("x-time-left-ms", "0")]).await;
    assert_eq!((late.status, late.json()["reason"].as_str()), (504, Some("deadline_passed")));
    let_go.add_permits(5);
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(served, 5);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
        assert_eq!(refused.json()["request_id"].as_str(), refused.header("x-request-id"));
    }
    until(|| layer.snapshot().in_flight == 0).await;
}

/// Whoever hangs up, waiting or being served, gives his place to others.
#[tokio::test]
async fn who_hangs_up_gives_the_place_back() {
    let layer = ShedLayer::new(1).max_queued(1).queue_wait(Duration::from_secs(60));
    let (caller, let_go) = start(&layer).await;
    let mut streams = Vec::new();
    for (in_flight, queued) in [(1, 0), (1, 1)] {
        let mut stream = TcpStream::connect(&caller.address).await.unwrap();
        stream.write_all(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        streams.push(stream);
        until(|| (layer.snapshot().in_flight, layer.snapshot().queued) == (in_flight, queued)).await;
    }
    drop(streams.pop());
    until(|| (layer.snapshot().in_flight, layer.snapshot().queued) == (1, 0)).await;
    drop(streams.pop());
    until(|| layer.snapshot().in_flight == 0).await;
    let_go.add_permits(1);
    assert_eq!(caller.get("/b", &[]).await.status, 200);
    assert_eq!(layer.snapshot().queued, 0);
}
