//! An https upstream: CONNECT, and TLS inside the tunnel.

use std::net::SocketAddr;
use std::time::Instant;

use http::StatusCode;
use steadfast::transport::Proxy;
use steadfast_http::{Fault, Sent};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::scene::*;
use crate::server::*;

const CREDENTIALS: &str = "s3user:s3%20cret@";
const OPEN: Answer = Answer::Tunnel("HTTP/1.1 200 Connection established\r\n\r\n");

fn echo(_: usize) -> Vec<Step> {
    (0..10).flat_map(|_| [Step::Read, ok("answer")]).chain([Step::ReadToEnd]).collect()
}

fn say(head: &str) -> Answer {
    Answer::Say(format!("{head}\r\n\r\n").into_bytes())
}

/// Nothing listens here.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A proxy that answers every CONNECT like this.
async fn refusing(answer: Answer) -> Tunnels {
    Tunnels::start(None, nobody().await, move |_| answer.clone()).await
}

/// A119: credentials are for the proxy alone. 8.7: the upstream's name is for the proxy to resolve.
#[tokio::test]
async fn a119_c8_7_an_https_upstream_is_reached_through_a_tunnel_that_is_used_again() {
    let authority = Authority::new();
    let upstream = Upstream::start(authority.issue("upstream.test"), echo).await;
    let tunnels = Tunnels::start(None, upstream.address, |_| OPEN).await;
    let names = Names::default();
    let pool = through(true, proxy("http", CREDENTIALS, tunnels.address), &names, |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    for _ in 0..3 {
        assert_eq!(send(&pool, post("/path?query", "body")).await.unwrap().1, "answer");
        assert_eq!((pool.snapshot().open, pool.snapshot().idle), (1, 1));
    }
    let connect = "CONNECT upstream.test:443 HTTP/1.1\r\nHost: upstream.test:443\r\nProxy-Authorization: Basic \
                   czN1c2VyOnMzIGNyZXQ=\r\n\r\n";
    assert_eq!(tunnels.heads(), [connect]);
    assert_eq!(names.asked(), ["proxy.test"]);
    let requests = upstream.requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(request.starts_with("POST /path?query HTTP/1.1\r\n") && request.ends_with("\r\n\r\nbody"), "{request}");
        assert!(request.contains("host: upstream.test\r\n") && !request.contains("proxy-"), "{request}");
    }
}

#[tokio::test]
async fn without_credentials_none_are_sent_and_the_pools_limits_hold() {
    let authority = Authority::new();
    let upstream = Upstream::start(authority.issue("upstream.test"), echo).await;
    let tunnels = Tunnels::start(None, upstream.address, |_| OPEN).await;
    let pool = through(true, proxy("http", "", tunnels.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
        config.max_connections = 1;
        config.max_connection_age = ms(150);
    });
    let (one, two) = tokio::join!(send(&pool, get("/")), send(&pool, get("/")));
    assert_eq!((one.unwrap().1, two.unwrap().1), ("answer".into(), "answer".into()));
    assert_eq!(tunnels.heads().len(), 1);
    sleep(ms(200)).await;
    send(&pool, get("/")).await.unwrap();
    assert_eq!(tunnels.heads(), ["CONNECT upstream.test:443 HTTP/1.1\r\nHost: upstream.test:443\r\n\r\n"; 2]);
}

/// A120. 2.4: asked once, and it is known for what it is.
#[tokio::test]
async fn a120_c2_4_a_407_is_a_refusal() {
    let closing =
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nConnection: close";
    for (credentials, expected) in [(CREDENTIALS, "asks for other credentials (407)"), ("", "and its URL has none")] {
        let tunnels = refusing(say(closing)).await;
        let pool = through(true, proxy("http", credentials, tunnels.address), &Names::default(), |_| {});
        let error = send(&pool, get("/")).await.unwrap_err();
        let text = chain(&error);
        assert!(text.contains(expected) && text.contains("@proxy.test") != credentials.is_empty(), "{text}");
        assert_fault::<()>(Err(error), Fault::ProxyRefused, Sent::No);
        assert_eq!(tunnels.heads().len(), 1);
        until_open(&pool, 0, 0).await;
    }
}

/// A121: inside the tunnel it is the upstream's, and no matter of the proxy.
#[tokio::test]
async fn a121_a_407_of_the_upstreams_is_a_response() {
    let authority = Authority::new();
    let refuse = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    let upstream =
        Upstream::start(authority.issue("upstream.test"), move |_| vec![Step::Read, write(refuse), Step::ReadToEnd])
            .await;
    let tunnels = Tunnels::start(None, upstream.address, |_| OPEN).await;
    let pool = through(true, proxy("http", CREDENTIALS, tunnels.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    assert_eq!(send(&pool, get("/")).await.unwrap().0, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    assert_eq!((tunnels.heads().len(), upstream.requests().len()), (1, 1));
    assert!(!upstream.requests()[0].contains("authorization"));
}

/// 2.3: whatever else it answers may pass, and nothing was sent.
#[tokio::test]
async fn c2_3_another_answer_proves_that_nothing_was_sent() {
    let huge = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 1 << 20]].concat();
    for (answer, expected) in [
        (say("HTTP/1.1 502 Bad Gateway"), "with 502"),
        (say("HTTP/1.1 503 Busy\r\nContent-Length: 100"), "with 503"),
        (say("HTTP/1.1 403 Forbidden"), "with 403"),
        (say("SSH-2.0"), "not HTTP"),
        (Answer::Say(huge), "more than 16384 bytes"),
    ] {
        let tunnels = refusing(answer).await;
        let pool = through(true, proxy("http", CREDENTIALS, tunnels.address), &Names::default(), |_| {});
        let error = send(&pool, post("/", "x")).await.unwrap_err();
        assert!(chain(&error).contains(expected), "{error:?}");
        assert_fault::<()>(Err(error), Fault::Proxy, Sent::No);
        until_open(&pool, 0, 0).await;
    }
}

/// A66. 1.2: the whole of it, however slowly it comes.
#[tokio::test]
async fn a66_c1_2_connect_timeout_covers_the_tunnel() {
    for answer in [Answer::Say(Vec::new()), Answer::Drip("HTTP/1.1 103 Wait\r\n\r\n"), OPEN] {
        // The last proxy makes a tunnel to one that never speaks.
        let silent = Server::start(|_| vec![Step::ReadToEnd]).await;
        let tunnels = Tunnels::start(None, silent.address, move |_| answer.clone()).await;
        let pool = through(true, proxy("http", CREDENTIALS, tunnels.address), &Names::default(), |config| {
            config.connect_timeout = ms(150);
        });
        let start = Instant::now();
        assert_fault(send(&pool, post("/", "x")).await, Fault::ConnectTimeout, Sent::No);
        assert!((ms(150)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
        until_open(&pool, 0, 0).await;
    }
}

/// 1.6: a call that is dropped meanwhile has sent nothing, and gives its room back.
#[tokio::test]
async fn c1_6_dropped_before_the_tunnel_is_there() {
    let tunnels = refusing(Answer::Say(Vec::new())).await;
    let pool = through(true, proxy("http", CREDENTIALS, tunnels.address), &Names::default(), |_| {});
    let mut progress = steadfast::transport::Progress::default();
    timeout(ms(50), pool.exchange(post("/", "x"), &mut progress)).await.unwrap_err();
    assert_eq!((progress.sent(), pool.snapshot().open), (Sent::No, 0));
    until(|| tunnels.heads().len() == 1).await;
}

/// TLS to the proxy, and TLS to the upstream inside it, each with its own certificate.
#[tokio::test]
async fn a_proxy_can_be_reached_over_tls() {
    let authority = Authority::new();
    let upstream = Upstream::start(authority.issue("upstream.test"), echo).await;
    let tunnels = Tunnels::start(Some(authority.issue("proxy.test")), upstream.address, |_| OPEN).await;
    let long = vec![b'x'; 1 << 20];
    let pool = through(true, proxy("https", CREDENTIALS, tunnels.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    for _ in 0..2 {
        assert_eq!(send(&pool, post("/", long.clone())).await.unwrap().1, "answer");
    }
    assert_eq!(tunnels.heads().len(), 1);
    assert!(upstream.requests()[1].len() > long.len());
}

/// 2.4: a proxy that cannot prove who it is gets no credentials.
#[tokio::test]
async fn c2_4_the_proxys_certificate_is_verified() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for tls in [authority.issue("elsewhere.test"), stranger.issue("proxy.test")] {
        let tunnels = Tunnels::start(Some(tls), nobody().await, |_| OPEN).await;
        let pool = through(true, proxy("https", CREDENTIALS, tunnels.address), &Names::default(), |config| {
            config.tls.extra_roots = vec![authority.file.clone()];
        });
        let error = send(&pool, get("/")).await.unwrap_err();
        assert!(chain(&error).contains("the proxy https://***@proxy.test"), "{error:?}");
        assert_fault::<()>(Err(error), Fault::Certificate, Sent::No);
        assert!(tunnels.heads().is_empty());
    }
}

/// The upstream's certificate is verified inside the tunnel, for the upstream's name.
#[tokio::test]
async fn c2_4_the_upstreams_certificate_is_verified_inside_the_tunnel() {
    let authority = Authority::new();
    let upstream = Upstream::start(authority.issue("proxy.test"), echo).await;
    let tunnels = Tunnels::start(None, upstream.address, |_| OPEN).await;
    let pool = through(true, proxy("http", "", tunnels.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    assert_fault(send(&pool, get("/")).await, Fault::Certificate, Sent::No);
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_named_without_its_credentials() {
    let gone = nobody().await;
    let nowhere = Proxy::Url(format!("http://{CREDENTIALS}nowhere.test").parse().unwrap());
    for (proxy, fault, expected) in [
        (proxy("http", CREDENTIALS, gone), Fault::Connect, "the proxy http://***@proxy.test"),
        (nowhere, Fault::Dns, "the proxy http://***@nowhere.test:80 cannot be reached; the name has no addresses"),
    ] {
        let pool = through(true, proxy, &Names::default(), |_| {});
        let error = send(&pool, get("/")).await.unwrap_err();
        assert!(chain(&error).contains(expected), "{error:?}");
        assert_fault::<()>(Err(error), fault, Sent::No);
    }
}

/// 8.6
#[tokio::test]
async fn c8_6_credentials_are_in_no_debug_text() {
    let mut config = steadfast::transport::PoolConfig::new(true, "upstream.test", 443);
    config.proxy = proxy("http", CREDENTIALS, nobody().await);
    let text = format!("{config:?}");
    assert!(text.contains("***@proxy.test") && !text.contains("s3"), "{text}");
}
