//! An http upstream through an HTTP proxy: no tunnel, and each request names its upstream.

use std::net::SocketAddr;
use std::sync::Arc;

use http::StatusCode;
use steadfast::transport::{HttpVersion, Pool, PoolConfig, PoolConfigError, Proxy, Resolve, ResolveFuture};
use steadfast_http::{Fault, Sent};
use tokio::net::TcpListener;

use super::scene::*;
use crate::server::*;

const CREDENTIALS: &str = "s3user:s3cret@";

fn echo(_: usize) -> Vec<Step> {
    (0..10).flat_map(|_| [Step::Read, ok("answer")]).chain([Step::ReadToEnd]).collect()
}

/// RFC 9112 section 3.2.2
#[tokio::test]
async fn c8_7_each_request_names_its_upstream_and_carries_the_credentials() {
    let server = Server::start(echo).await;
    let names = Names::default();
    let forward = through(false, proxy("http", CREDENTIALS, server.address), &names, |_| {});
    let mut with_its_own = get("/a?b=c");
    with_its_own.request.headers_mut().insert("proxy-authorization", "mine".parse().unwrap());
    for outgoing in [get("/a?b=c"), with_its_own] {
        assert_eq!(send(&forward, outgoing).await.unwrap().1, "answer");
    }
    assert_eq!((server.connections(), names.asked()), (1, vec!["proxy.test".to_owned()]));
    for request in server.requests(0) {
        assert!(request.starts_with("GET http://upstream.test/a?b=c HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("host: upstream.test\r\n"), "{request}");
        assert_eq!(request.matches("proxy-authorization: ").count(), 1, "{request}");
        assert!(request.contains("proxy-authorization: Basic czN1c2VyOnMzY3JldA==\r\n"), "{request}");
    }
    // Without credentials, and on another port.
    let forward = through(false, proxy("http", "", server.address), &names, |config| config.port = 8080);
    send(&forward, post("/", "x")).await.unwrap();
    let request = &server.requests(1)[0];
    assert!(request.starts_with("POST http://upstream.test:8080/ HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("host: upstream.test:8080\r\n") && !request.contains("proxy-"), "{request}");
}

/// Over TLS to the proxy too.
#[tokio::test]
async fn the_way_to_the_proxy_can_be_encrypted() {
    let authority = Authority::new();
    let server = Upstream::start(authority.issue("proxy.test"), echo).await;
    let pool = through(false, proxy("https", CREDENTIALS, server.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    assert_eq!(send(&pool, get("/a")).await.unwrap().1, "answer");
    assert!(server.requests()[0].starts_with("GET http://upstream.test/a HTTP/1.1\r\n"));
}

/// A120. 2.4: it is not the upstream's answer, and not repeated. It may come from beyond this proxy, so it proves nothing.
#[tokio::test]
async fn a120_c2_4_a_407_is_a_refusal() {
    let refusal = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 4\r\n\r\nbody";
    let server = Server::start(move |_| vec![Step::Read, write(refusal), Step::ReadToEnd]).await;
    let pool = through(false, proxy("http", CREDENTIALS, server.address), &Names::default(), |_| {});
    let error = send(&pool, get("/")).await.unwrap_err();
    assert!(chain(&error).contains("the proxy http://***@proxy.test"), "{error:?}");
    assert!(chain(&error).contains("asks for other credentials (407)"), "{error:?}");
    assert_fault::<()>(Err(error), Fault::ProxyRefused, Sent::Unknown);
    assert_eq!(server.request_count(), 1);
    server.closed(0).await;
    until_open(&pool, 0, 0).await;
}

/// Where there is no proxy, a 407 is a status like any other.
#[tokio::test]
async fn without_a_proxy_a_407_is_a_response() {
    let server = Server::start(|_| vec![Step::Read, write("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")]).await;
    let (status, _) = send(&server.pool(), get("/")).await.unwrap();
    assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
}

/// What the proxy says of the upstream is the answer.
#[tokio::test]
async fn a_502_of_the_proxys_is_a_response() {
    let server = Server::start(|_| vec![Step::Read, write("HTTP/1.1 502 x\r\nContent-Length: 0\r\n\r\n")]).await;
    let pool = through(false, proxy("http", "", server.address), &Names::default(), |_| {});
    assert_eq!(send(&pool, get("/")).await.unwrap().0, StatusCode::BAD_GATEWAY);
}

/// 2.11: it is one connection like any other.
#[tokio::test]
async fn c2_11_a_dead_connection_to_the_proxy_is_replaced() {
    let server = Server::start(|_| vec![Step::Read, ok("x")]).await;
    let pool = through(false, proxy("http", "", server.address), &Names::default(), |_| {});
    send(&pool, get("/")).await.unwrap();
    tokio::time::sleep(ms(50)).await;
    assert_eq!(send(&pool, post("/", "x")).await.unwrap().1, "x");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn c8_7_no_proxy_means_direct() {
    let (server, other) = (Server::start(echo).await, Server::start(echo).await);
    let port = server.address.port();
    let named = format!("http://{}", other.address);
    for (list, direct) in [("test", 1), ("example.com", 1), (&*format!("upstream.test:{port}"), 2), ("*", 3)] {
        let set = [("HTTP_PROXY", named.as_str()), ("NO_PROXY", list)];
        let chosen = Proxy::from_variables(set, false, "upstream.test", port).unwrap();
        let pool = through(false, chosen, &Names::default(), |config| config.port = port);
        send(&pool, get("/")).await.unwrap();
        assert_eq!(server.connections(), direct, "{list}");
    }
    assert_eq!(other.connections(), 1);
}

/// HTTP/2 cannot be passed on request by request.
#[tokio::test]
async fn http_2_without_tls_gets_a_tunnel() {
    let server = Server::start(|_| vec![Step::Read, write("HTTP/1.1 502 x\r\n\r\n"), Step::ReadToEnd]).await;
    let pool = through(false, proxy("http", "", server.address), &Names::default(), |config| {
        config.http_version = HttpVersion::Http2;
    });
    assert_fault(send(&pool, get("/")).await, Fault::Proxy, Sent::No);
    assert!(server.requests(0)[0].starts_with("CONNECT upstream.test:80 HTTP/1.1\r\n"));
}

/// RFC 8305: a proxy with several addresses is tried at all of them.
#[tokio::test]
async fn every_address_of_the_proxy_is_tried() {
    struct Several(Vec<SocketAddr>);

    impl Resolve for Several {
        fn resolve<'a>(&'a self, _: &'a str, _: u16) -> ResolveFuture<'a> {
            Box::pin(std::future::ready(Ok(self.0.clone())))
        }
    }

    let server = Server::start(echo).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut config = PoolConfig::new(false, "upstream.test", 80);
    config.proxy = Proxy::Url("proxy.test".parse().unwrap());
    let pool = Pool::new(config, Arc::new(Several(vec![gone, server.address]))).unwrap();
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "answer");
}

/// What a host must not say to a proxy.
#[test]
fn a_host_that_is_none_is_refused_before_it_reaches_a_proxy() {
    for host in ["a\r\nx: y", "user@host", "a b", "a/b", ""] {
        let mut config = PoolConfig::new(false, host, 80);
        config.proxy = Proxy::Url("proxy.test".parse().unwrap());
        let error = Pool::new(config, Arc::new(Names::default())).unwrap_err();
        assert!(matches!(error, PoolConfigError::Host(_)), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}
