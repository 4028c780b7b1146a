//! Whole clients over real connections: what only the two together can show.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use steadfast::policy::breaker::State;
use steadfast::{ClientBuilder, Clients, ErrorKind, ServiceClient};
use tokio::time::timeout;

use crate::server::*;

fn client(server: &Server, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> ServiceClient {
    configure(ServiceClient::builder(&format!("http://{}", server.address)).name("upstream")).build().unwrap()
}

/// A59. 1.1: the deadline covers the body; 1.4: its connection is closed, and the next call works.
#[tokio::test]
async fn c1_1_c1_4_the_deadline_covers_the_body() {
    let server = Server::start(|number| {
        let stalled = write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        vec![Step::Read, if number == 0 { stalled } else { ok("whole") }, Step::ReadToEnd]
    })
    .await;
    let client = client(&server, |client| client.total_timeout(ms(300)));
    let start = Instant::now();
    let error = timeout(LONG, client.get("/").send()).await.unwrap().unwrap_err();
    assert!((ms(300)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    server.closed(0).await;
    assert_eq!(client.get("/").send().await.unwrap().text(), "whole");
    assert_eq!((server.connections(), client.snapshot().line.in_use), (2, 0));
}

/// A55, A57, A24: a cut body is repeated, whole, with the same request body and its length.
#[tokio::test]
async fn c2_4_c7_5_a_cut_body_is_repeated_and_nothing_is_mixed() {
    let server = Server::start(|number| match number {
        0 => vec![Step::Read, write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nuse")],
        _ => vec![Step::Read, ok("users"), Step::ReadToEnd],
    })
    .await;
    let client = client(&server, |client| client);
    let response = timeout(LONG, client.put("/").body("abc").send()).await.unwrap().unwrap();
    assert_eq!(response.text(), "users");
    let outcomes: Vec<_> = response.report().attempts().map(|attempt| attempt.outcome.name().into_owned()).collect();
    assert_eq!(outcomes, ["incomplete", "200"]);
    for connection in 0..2 {
        let request = &server.requests(connection)[0];
        assert!(request.contains("content-length: 3\r\n") && request.ends_with("\r\n\r\nabc"), "{request}");
    }
}

/// 2.11: a connection found dead is no attempt: no verdict, no budget, and a POST too.
#[tokio::test]
async fn c2_11_a_dead_connection_is_neither_an_attempt_nor_a_verdict() {
    let said = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&said);
    let server = Server::on_thread(move |number| match number {
        0 => vec![Step::Read, ok("early"), Step::Until(Arc::clone(&until))],
        _ => vec![Step::Read, ok("late"), Step::ReadToEnd],
    });
    let client = client(&server, |client| client.breaker_failures(1));
    client.get("/").send().await.unwrap();
    said.store(true, Ordering::SeqCst);
    server.block_until(0, usize::MAX);
    let response = timeout(LONG, client.post("/").body("x").send()).await.unwrap().unwrap();
    assert_eq!((response.text().as_ref(), response.report().attempt_count()), ("late", 1));
    let snapshot = client.snapshot();
    assert_eq!((snapshot.breaker.state, snapshot.breaker.failures, snapshot.budget.retries), (State::Closed, 0, 0));
}

/// A50. 2.11: a stale 408 that may not be repeated ends the call with its own reason, and is no verdict.
#[tokio::test]
async fn c2_11_a_stale_408_has_a_reason_of_its_own() {
    let late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(move |_| vec![Step::Read, ok("x"), Step::Read, write(late)]).await;
    let client = client(&server, |client| client.retry_statuses(&[408, 503]).breaker_statuses(&[408, 503]));
    client.get("/").send().await.unwrap();
    tokio::time::sleep(ms(50)).await;
    let response = timeout(LONG, client.post("/").body("x").send()).await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), response.report().ended().name()), (408, "stale_408"));
    let snapshot = client.snapshot();
    assert_eq!((snapshot.breaker.failures, snapshot.budget.retries), (0, 0));
}

/// 7.7: every client refuses new calls, running ones end, and every connection is closed.
#[tokio::test]
async fn c7_7_closing_all_clients_lets_running_calls_end() {
    let slow = || vec![Step::Read, Step::Wait(ms(200)), ok("slow"), Step::ReadToEnd];
    let (one, two) = (Server::start(move |_| slow()).await, Server::start(move |_| slow()).await);
    let file = format!(
        "[upstreams.one]\nbase_url = \"http://{}\"\n[upstreams.two]\nbase_url = \"http://{}\"",
        one.address, two.address
    );
    let config = steadfast::config::Loader::new().text("app.toml", &file).load().unwrap();
    let clients = Clients::new(&config).unwrap();
    let call = |name: &str| clients.client(name).unwrap().get("/").send();
    let (first, second) = (tokio::spawn(call("one")), tokio::spawn(call("two")));
    until(|| one.request_count() + two.request_count() == 2).await;
    let closing = clients.close();
    let (closed, refused) = tokio::join!(timeout(LONG, closing), async {
        tokio::task::yield_now().await;
        [call("one").await.unwrap_err().kind(), call("two").await.unwrap_err().kind()]
    });
    closed.unwrap();
    assert_eq!(refused, [ErrorKind::Closed; 2]);
    for running in [first, second] {
        assert_eq!(running.await.unwrap().unwrap().text(), "slow");
    }
    one.closed(0).await;
    two.closed(0).await;
}
