//! One script for every transport: what a client must do over any of them, and where they differ, and why.
//!
//! Each case is what the upstream does, what is called, and what must come of it, written like this:
//! `200 'hello' <- 503, 200`: the ending, then each attempt's outcome. `-` after an outcome says that nothing was sent, `?` that
//! it is unknown; a response was always sent for. A difference between transports stands in the case, with its reason.

mod bodies;
mod http2;
mod table;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use steadfast::transport::{RequestBody, ReqwestTransport};
use steadfast::{ClientBuilder, Error, Report, RequestBuilder, Response, Sent, ServiceClient};
use tokio::time::timeout;

use crate::server::*;

/// What carries the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Our own pool.
    Pool,
    /// hyper-util's client, as any tower service.
    Service,
    /// reqwest.
    Reqwest,
}

impl Wire {
    pub(super) const ALL: [Self; 3] = [Self::Pool, Self::Service, Self::Reqwest];

    /// A client of the server at this address.
    pub(super) fn client(
        self,
        address: SocketAddr,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> ServiceClient {
        let builder = ServiceClient::builder(&format!("http://{address}")).name("upstream").backoff_base(ms(1));
        let builder = match self {
            Self::Pool => builder,
            Self::Service => builder.service(legacy::Client::builder(TokioExecutor::new()).build_http::<RequestBody>()),
            Self::Reqwest => {
                let reqwest = reqwest::Client::builder().no_proxy();
                builder.transport(ReqwestTransport::configure(reqwest).unwrap())
            }
        };
        configure(builder).build().unwrap()
    }
}

/// How many connections and requests the server has seen.
type Counts = (usize, usize);

/// One thing that an upstream does, and what comes of it.
pub(super) struct Case {
    name: &'static str,
    /// What happens on connection `n`.
    script: fn(usize) -> Vec<Step>,
    configure: fn(ClientBuilder) -> ClientBuilder,
    /// One after the other, a moment apart.
    calls: &'static [fn(&ServiceClient) -> RequestBuilder],
    /// What the last call comes to.
    expected: &'static str,
    counts: Counts,
    /// Where it is otherwise, and why.
    differs: &'static [(Wire, &'static str, Counts, &'static str)],
}

impl Case {
    fn expected_on(&self, wire: Wire) -> (&'static str, Counts) {
        let own = self.differs.iter().find(|(on, ..)| *on == wire);
        own.map_or((self.expected, self.counts), |(_, expected, counts, _)| (expected, *counts))
    }

    /// What is wrong with this transport in this case.
    async fn fault_of(&self, wire: Wire) -> Option<String> {
        let script = self.script;
        let server = Server::start(script).await;
        let client = wire.client(server.address, self.configure);
        let mut last = String::new();
        for (number, call) in self.calls.iter().enumerate() {
            if number > 0 {
                // Others give a connection back to their pool a moment after the response.
                tokio::time::sleep(ms(30)).await;
            }
            let result = timeout(LONG, call(&client).send()).await.expect("bounded");
            last = describe(&result);
        }
        let (expected, counts) = self.expected_on(wire);
        let seen = (server.connections(), server.request_count());
        let rest = client.snapshot().line;
        let wrong = last != expected || seen != counts || (rest.in_use, rest.queued) != (0, 0);
        wrong.then(|| format!("{}: {last} {seen:?}, expected {expected} {counts:?}", self.name))
    }
}

/// How a call ended, in one line.
pub(super) fn describe(result: &Result<Response, Error>) -> String {
    let (mut line, report) = match result {
        Ok(response) => (format!("{} '{}'", response.status().as_str(), response.text()), response.report()),
        Err(error) => (error.kind().name().to_owned(), error.report()),
    };
    write!(line, " <- {}", attempts(report)).unwrap();
    line
}

pub(super) fn attempts(report: &Report) -> String {
    let attempt = |attempt: &steadfast::report::AttemptRecord| {
        let sent = match attempt.sent {
            Sent::No => "-",
            Sent::Unknown => "?",
            Sent::Yes => "",
        };
        format!("{}{sent}", attempt.outcome.name())
    };
    report.attempts().map(attempt).collect::<Vec<_>>().join(", ")
}

/// A client and the server that it talks to.
pub(super) async fn pair(
    wire: Wire,
    script: impl Fn(usize) -> Vec<Step> + Send + 'static,
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> (ServiceClient, Server) {
    let server = Server::start(script).await;
    (wire.client(server.address, configure), server)
}

async fn conforms(wire: Wire) {
    let mut faults = Vec::new();
    for case in table::CASES {
        faults.extend(case.fault_of(wire).await);
    }
    assert!(faults.is_empty(), "{wire:?}\n{}", faults.join("\n"));
}

#[tokio::test]
async fn the_pool_conforms() {
    conforms(Wire::Pool).await;
}

#[tokio::test]
async fn a_tower_service_conforms() {
    conforms(Wire::Service).await;
}

#[tokio::test]
async fn reqwest_conforms() {
    conforms(Wire::Reqwest).await;
}

/// A difference is one, and has a reason.
#[test]
fn every_difference_is_one_and_says_why() {
    for case in table::CASES {
        for (wire, expected, counts, why) in case.differs {
            assert_ne!(*wire, Wire::Pool, "{}: the pool is what the others are compared with", case.name);
            assert_ne!((case.expected, case.counts), (*expected, *counts), "{}", case.name);
            assert!(why.len() > 20, "{}", case.name);
        }
    }
}

/// 2.3: a refused connection has sent nothing, so a POST is repeated.
#[tokio::test]
async fn c2_3_a_refused_connection_lets_a_post_be_repeated() {
    for wire in Wire::ALL {
        let address = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let client = wire.client(address, |client| client);
        let result = timeout(LONG, client.post("/").body("x").send()).await.unwrap();
        assert_eq!(describe(&result), "unreachable <- connect-, connect-, connect-", "{wire:?}");
        // 7.2, 8.6: the low-level error is there, and no address or path in the text above it.
        let error = result.unwrap_err();
        let text = error.to_string();
        assert!(!text.contains("127.0.0.1") && std::error::Error::source(&error).is_some(), "{text}");
    }
}

/// 8.6: whatever a transport's errors carry, the query is not among it.
#[tokio::test]
async fn c8_6_no_error_tells_the_query() {
    for wire in Wire::ALL {
        for script in [|_| vec![Step::Read, Step::Reset], |_| vec![Step::Read, write("nonsense\r\n\r\n")]] {
            let (client, _server) = pair(wire, script, |client| client.retries(0)).await;
            let error = timeout(LONG, client.get("/path?token=hunter2").send()).await.unwrap().unwrap_err();
            let shown = format!("{error:?} {error:#?}");
            assert!(!shown.contains("hunter2"), "{wire:?}: {shown}");
        }
    }
}

/// 1.6, A-series: dropping a call closes its connection, in the head and in the body.
#[tokio::test]
async fn c1_6_dropping_a_call_closes_its_connection() {
    let half = || write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    for wire in Wire::ALL {
        for answers in [false, true] {
            let script = move |_| {
                let head = answers.then(half);
                [Step::Read].into_iter().chain(head).chain([Step::ReadToEnd]).collect()
            };
            let (client, server) = pair(wire, script, |client| client).await;
            let server = Arc::new(server);
            let call = tokio::spawn(client.get("/").send());
            let steps = if answers { 2 } else { 1 };
            let arrived = Arc::clone(&server);
            until(move || arrived.request_count() == 1).await;
            tokio::time::sleep(ms(if steps == 2 { 50 } else { 10 })).await;
            assert_eq!(client.snapshot().line.in_use, 1);
            call.abort();
            server.closed(0).await;
            assert!(call.await.unwrap_err().is_cancelled());
            assert_eq!((client.snapshot().line.in_use, client.snapshot().breaker.failures), (0, 0), "{wire:?}");
        }
    }
}
