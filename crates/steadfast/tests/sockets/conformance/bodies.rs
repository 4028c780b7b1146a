//! What travels: methods, headers, bodies of any size and kind, both ways, and responses that are read as they come.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::Method;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use steadfast::transport::{RequestBody, ReqwestTransport, ServiceTransport};
use steadfast::{Error, Response};
use tokio::time::timeout;

use super::{Wire, attempts, describe, pair};
use crate::server::*;

async fn within<F: Future<Output = Result<Response, Error>>>(call: F) -> Result<Response, Error> {
    timeout(LONG, call).await.expect("bounded")
}

/// The values of a header in a request as it was on the wire.
fn header<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[tokio::test]
async fn methods_paths_and_headers_arrive() {
    for wire in Wire::ALL {
        let (client, server) = pair(
            wire,
            |_| {
                let answer = "HTTP/1.1 200 OK\r\nX-Twice: 1\r\nX-Twice: 2\r\nContent-Length: 2\r\n\r\nok";
                (0..8).flat_map(|_| [Step::Read, write(answer)]).collect()
            },
            |client| client.header("x-team", "a").user_agent("conformance"),
        )
        .await;
        for (number, name) in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"].into_iter().enumerate() {
            let method = Method::from_bytes(name.as_bytes()).unwrap();
            let call = client.request(method, "/a%2Fb/c?x=1%26&y=").header("x-own", "1").header("x-own", "2");
            let response = within(call.send()).await.unwrap();
            let twice: Vec<_> = response.headers().get_all("x-twice").iter().map(|value| value.as_bytes()).collect();
            assert_eq!((twice, response.text().as_ref()), (vec![&b"1"[..], b"2"], "ok"), "{wire:?}");
            let seen = (0..server.connections()).flat_map(|connection| server.requests(connection)).collect::<Vec<_>>();
            let request = &seen[number];
            let line = format!("{name} /a%2Fb/c?x=1%26&y= HTTP/1.1\r\n");
            assert!(request.starts_with(&line), "{wire:?}: {request}");
            assert_eq!(header(request, "host"), [server.address.to_string()], "{wire:?}");
            assert_eq!(header(request, "x-own"), ["1", "2"], "{wire:?}");
            assert_eq!((header(request, "x-team"), header(request, "user-agent")), (vec!["a"], vec!["conformance"]));
            // 8.3 and the like: nothing that nobody asked for.
            for unasked in ["cookie", "referer", "transfer-encoding"] {
                assert!(header(request, unasked).is_empty(), "{wire:?}: {request}");
            }
            assert!(header(request, "accept").iter().all(|accept| *accept == "*/*"), "{wire:?}: {request}");
            assert_eq!(header(request, "accept-encoding").len(), 1, "{wire:?}");
            tokio::time::sleep(ms(5)).await;
        }
    }
}

/// 2.8: the same bytes and the same framing on every attempt, whatever kind of body it is.
#[tokio::test]
async fn c2_8_bodies_arrive_whole_in_pieces_and_again() {
    let pieces = || stream::iter(["ab", "c"].map(|piece| Ok::<_, io::Error>(Bytes::from(piece))));
    for wire in Wire::ALL {
        for (kind, length) in [("whole", Some("3")), ("length", Some("3")), ("chunked", None), ("empty", Some("0"))] {
            let (client, server) = pair(
                wire,
                |number| {
                    let busy = write("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
                    vec![Step::Read, if number < 2 { busy } else { ok("thanks") }]
                },
                |client| client,
            )
            .await;
            let body = match kind {
                "whole" => RequestBody::from("abc"),
                "length" => RequestBody::stream(pieces(), Some(3)),
                "chunked" => RequestBody::stream(pieces(), None),
                _ => RequestBody::empty(),
            };
            let result = within(client.put("/").body(body).send()).await;
            assert_eq!(describe(&result), "200 'thanks' <- 503, 503, 200", "{wire:?} {kind}");
            for connection in 0..3 {
                let request = &server.requests(connection)[0];
                let (_, sent) = request.split_once("\r\n\r\n").unwrap();
                match (kind, length) {
                    ("empty", _) => assert_eq!(sent, "", "{wire:?}"),
                    (_, Some(length)) => {
                        assert_eq!((sent, header(request, "content-length")), ("abc", vec![length]), "{wire:?} {kind}");
                    }
                    (_, None) => {
                        assert_eq!(header(request, "transfer-encoding"), ["chunked"], "{wire:?}");
                        assert!(header(request, "content-length").is_empty(), "{wire:?}");
                        let data: String = sent.split("\r\n").skip(1).step_by(2).collect();
                        assert_eq!(data, "abc", "{wire:?}: {sent}");
                    }
                }
            }
        }
    }
}

/// A body that is not kept is sent once, and a call that has sent it is not repeated.
#[tokio::test]
async fn a_body_that_is_not_kept_is_sent_once() {
    for wire in Wire::ALL {
        let busy = || write("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
        let (client, server) = pair(wire, move |_| vec![Step::Read, busy(), Step::ReadToEnd], |client| client).await;
        let body = stream::iter([Ok::<_, io::Error>(Bytes::from("abc"))]);
        let call = client.put("/").body(RequestBody::stream(body, Some(3)).keep(0)).send();
        assert_eq!(describe(&within(call).await), "503 'busy' <- 503", "{wire:?}");
        assert_eq!(server.request_count(), 1);
    }
}

/// A source that fails is our own fault: no retry, no verdict, and its error is the source of ours.
#[tokio::test]
async fn a_body_whose_source_fails_ends_the_call() {
    for wire in Wire::ALL {
        let (client, _server) = pair(wire, |_| vec![Step::ReadToEnd], |client| client).await;
        let pieces = [Ok(Bytes::from("ab")), Err(io::Error::other("the disk is gone"))];
        let call = client.put("/").body(RequestBody::stream(stream::iter(pieces), Some(3))).send();
        let result = within(call).await;
        // Only the pool can prove that no byte had gone out by then.
        let sent = if wire == Wire::Pool { "-" } else { "?" };
        assert_eq!(describe(&result), format!("unreachable <- request_body{sent}"), "{wire:?}");
        let error = result.unwrap_err();
        let mut sources = std::iter::successors(std::error::Error::source(&error), |error| error.source());
        assert!(sources.any(|source| source.to_string().contains("the disk is gone")), "{wire:?}");
        assert_eq!(client.snapshot().breaker.failures, 0);
    }
}

const LARGE: usize = 5 * 1024 * 1024;

#[tokio::test]
async fn five_mebibytes_go_both_ways() {
    for wire in Wire::ALL {
        let answer = || ok(&"y".repeat(LARGE));
        let (client, server) = pair(wire, move |_| vec![Step::Read, answer(), Step::ReadToEnd], |client| client).await;
        let response = within(client.put("/").body("x".repeat(LARGE)).send()).await.unwrap();
        assert_eq!((response.bytes().len(), response.bytes().iter().all(|byte| *byte == b'y')), (LARGE, true));
        let request = &server.requests(0)[0];
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!((body.len(), body.bytes().all(|byte| byte == b'x')), (LARGE, true), "{wire:?}");
    }
}

/// 7.6: each piece is there when it has come, and not before the next.
#[tokio::test]
async fn c7_6_a_response_is_read_as_it_comes() {
    for wire in Wire::ALL {
        let said = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&said);
        let (client, _server) = pair(
            wire,
            move |_| {
                let head = write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
                vec![Step::Read, head, Step::Until(Arc::clone(&until)), write("3\r\ntwo\r\n0\r\n\r\n"), Step::ReadToEnd]
            },
            |client| client,
        )
        .await;
        let mut response = timeout(LONG, client.get("/").send_streaming()).await.unwrap().unwrap();
        assert_eq!(timeout(LONG, response.chunk()).await.unwrap().unwrap().unwrap(), "one", "{wire:?}");
        assert_eq!(client.snapshot().line.in_use, 1);
        said.store(true, Ordering::SeqCst);
        assert_eq!(timeout(LONG, response.chunk()).await.unwrap().unwrap().unwrap(), "two", "{wire:?}");
        assert!(timeout(LONG, response.chunk()).await.unwrap().unwrap().is_none());
        assert_eq!(client.snapshot().line.in_use, 0);
    }
}

/// 7.6: what ends a stream early, and that dropping it closes its connection.
#[tokio::test]
async fn c7_6_a_stream_that_ends_early_says_why() {
    let half = || write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    for wire in Wire::ALL {
        let (client, _server) = pair(wire, move |_| vec![Step::Read, half()], |client| client).await;
        let response = timeout(LONG, client.get("/").send_streaming()).await.unwrap().unwrap();
        let error = timeout(LONG, response.bytes(100)).await.unwrap().unwrap_err();
        assert_eq!((error.kind().name(), attempts(error.report()).as_str()), ("unreachable", "incomplete"), "{wire:?}");

        let (client, server) = pair(wire, move |_| vec![Step::Read, half(), Step::ReadToEnd], |client| client).await;
        let response = timeout(LONG, client.get("/").timeout(ms(150)).send_streaming()).await.unwrap().unwrap();
        let error = timeout(LONG, response.bytes(100)).await.unwrap().unwrap_err();
        assert_eq!(error.kind().name(), "timeout", "{wire:?}");
        server.closed(0).await;

        let mut response = timeout(LONG, client.get("/").send_streaming()).await.unwrap().unwrap();
        assert_eq!(timeout(LONG, response.chunk()).await.unwrap().unwrap().unwrap(), "half");
        drop(response);
        server.closed(1).await;
        assert_eq!(client.snapshot().line.in_use, 0, "{wire:?}");
    }
}

/// 7.6: a stream that stalls is a failure of the upstream, where the transport has a read timeout. The head is in time.
#[tokio::test]
async fn c7_6_a_stream_that_stalls_meets_the_read_timeout() {
    let stalls = |_| {
        let head = write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        vec![Step::Read, head, Step::Wait(ms(100)), write("one"), Step::Wait(ms(100)), write("two"), Step::ReadToEnd]
    };
    for wire in Wire::ALL {
        let (client, server) = pair(wire, stalls, |client| match wire {
            Wire::Pool => client.read_timeout(ms(200)),
            Wire::Service => {
                let service = legacy::Client::builder(TokioExecutor::new()).build_http::<RequestBody>();
                client.transport(ServiceTransport::new(service).with_read_timeout(ms(200)))
            }
            Wire::Reqwest => {
                let reqwest = reqwest::Client::builder().no_proxy().read_timeout(ms(200));
                client.transport(ReqwestTransport::configure(reqwest).unwrap())
            }
        })
        .await;
        let mut response = timeout(LONG, client.get("/").send_streaming()).await.unwrap().unwrap();
        for piece in ["one", "two"] {
            assert_eq!(timeout(LONG, response.chunk()).await.unwrap().unwrap().unwrap(), piece, "{wire:?}");
        }
        let error = timeout(LONG, response.chunk()).await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind().name(), attempts(error.report()).as_str()),
            ("unreachable", "read_timeout"),
            "{wire:?}"
        );
        server.closed(0).await;
        assert_eq!((client.snapshot().line.in_use, client.snapshot().breaker.failures), (0, 1), "{wire:?}");
    }
}

/// The answer counts although the upstream has not read the request to its end.
#[tokio::test]
async fn an_early_answer_to_a_long_request_is_an_answer() {
    for wire in Wire::ALL {
        let early = || write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
        let script = move |_| vec![Step::ReadSome(1_000), early(), Step::Hang];
        let (client, _server) = pair(wire, script, |client| client).await;
        let result = within(client.post("/").body(vec![b'x'; 32 * 1024 * 1024]).send()).await;
        assert_eq!(describe(&result), "413 'big' <- 413", "{wire:?}");
    }
}

/// The progress that a user is told of is that of the bytes, on any transport.
#[tokio::test]
async fn an_upload_tells_how_far_it_has_got() {
    for wire in Wire::ALL {
        let (client, _server) = pair(wire, |_| vec![Step::Read, ok("ok"), Step::ReadToEnd], |client| client).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let call =
            client.put("/").body(vec![b'x'; 40 * 1024]).on_upload(move |now| sink.lock().unwrap().push(now.bytes));
        assert_eq!(describe(&within(call.send()).await), "200 'ok' <- 200", "{wire:?}");
        assert_eq!(*told.lock().unwrap(), [16, 32, 40].map(|kib| kib * 1024), "{wire:?}");
    }
}
