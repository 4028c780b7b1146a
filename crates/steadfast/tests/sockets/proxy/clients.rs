//! Whole clients: what a proxy's refusals do to retries and to the breaker.

use std::error::Error as _;

use steadfast::policy::breaker::State;
use steadfast::{ErrorKind, ServiceClient};
use tokio::time::timeout;

use super::scene::*;
use crate::server::*;

/// A120. 2.4, 4.3, 7.2: one attempt, no verdict, and an error that tells why.
#[tokio::test]
async fn a120_c2_4_c4_3_a_proxy_that_refuses_us_ends_the_call() {
    let refusal = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    for https in [true, false] {
        let script = move |_| (0..3).flat_map(|_| [Step::Read, write(refusal)]).collect();
        let server = Server::start(script).await;
        let pool = through(https, proxy("http", "s3user:s3cret@", server.address), &Names::default(), |_| {});
        let url = if https { "https://upstream.test" } else { "http://upstream.test" };
        let client =
            ServiceClient::builder(url).name("upstream").breaker_failures(1).transport(pool.clone()).build().unwrap();
        for _ in 0..3 {
            let error = timeout(LONG, client.get("/").send()).await.unwrap().unwrap_err();
            assert_eq!((error.kind(), error.attempts()), (ErrorKind::Unreachable, 1));
            let outcomes: Vec<_> =
                error.report().attempts().map(|attempt| attempt.outcome.name().into_owned()).collect();
            assert_eq!(
                (outcomes.as_slice(), error.report().ended().name()),
                (&["proxy".to_owned()][..], "not_retryable")
            );
            let source = error.source().and_then(|error| error.source()).unwrap().to_string();
            assert!(source.contains("asks for other credentials (407)") && !source.contains("s3"), "{source}");
            assert!(!format!("{error:?}{error}").contains("s3"), "{error:?}");
        }
        let snapshot = client.snapshot();
        assert_eq!((snapshot.breaker.state, snapshot.breaker.calls, snapshot.budget.retries), (State::Closed, 0, 0));
        assert_eq!(server.request_count(), 3);
    }
}

/// 2.3: a tunnel that did not come to be is no reason not to repeat a POST.
#[tokio::test]
async fn c2_3_a_post_is_repeated_where_the_proxy_had_no_tunnel() {
    let authority = Authority::new();
    let upstream = Upstream::start(authority.issue("upstream.test"), |_| vec![Step::Read, ok("done")]).await;
    let tunnels = Tunnels::start(None, upstream.address, |number| match number {
        0 => Answer::Say(b"HTTP/1.1 502 Bad Gateway\r\n\r\n".to_vec()),
        _ => Answer::Tunnel("HTTP/1.1 200 OK\r\n\r\n"),
    })
    .await;
    let pool = through(true, proxy("http", "", tunnels.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    let client = ServiceClient::builder("https://upstream.test").transport(pool).build().unwrap();
    let response = timeout(LONG, client.post("/").body("x").send()).await.unwrap().unwrap();
    let report = response.report();
    let seen: Vec<_> =
        report.attempts().map(|attempt| (attempt.outcome.name().into_owned(), attempt.sent.name())).collect();
    assert_eq!(response.text(), "done");
    assert_eq!(seen, [("proxy".to_owned(), "no"), ("200".to_owned(), "yes")]);
    assert_eq!((tunnels.heads().len(), upstream.requests().len()), (2, 1));
}
