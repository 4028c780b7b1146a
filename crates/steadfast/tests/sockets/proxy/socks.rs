//! SOCKS5 (RFC 1928, RFC 1929).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use steadfast::transport::Proxy;
use steadfast_http::{Fault, Sent};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::scene::*;
use crate::server::*;

/// How a proxy answers.
#[derive(Clone, Copy)]
struct Manner {
    /// The user and password it wants.
    wants: Option<(&'static str, &'static str)>,
    /// What it says to the request for a connection, by the number of the connection.
    reply: fn(usize) -> u8,
}

const OPEN: Manner = Manner { wants: None, reply: |_| 0 };

/// A SOCKS5 proxy whose every connection leads to one upstream.
struct Socks {
    address: SocketAddr,
    /// What was asked for, as it was written: the type and bytes of the address, and the port.
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Socks {
    async fn start(manner: Manner, to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((socket, _)) = listener.accept().await else { return };
                let log = Arc::clone(&log);
                tokio::spawn(async move { serve(socket, manner, number, to, log).await });
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<Vec<u8>> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read(socket: &mut TcpStream, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).await.ok().map(|_| bytes)
}

async fn serve(
    mut socket: TcpStream,
    manner: Manner,
    number: usize,
    to: SocketAddr,
    log: Arc<Mutex<Vec<Vec<u8>>>>,
) -> Option<()> {
    let methods = read(&mut socket, 2).await?[1];
    let methods = read(&mut socket, methods.into()).await?;
    let method = if manner.wants.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        socket.write_all(&[5, 0xff]).await.ok()?;
        return None;
    }
    socket.write_all(&[5, method]).await.ok()?;
    if let Some((user, password)) = manner.wants {
        let length = read(&mut socket, 2).await?[1];
        let given = read(&mut socket, length.into()).await?;
        let length = read(&mut socket, 1).await?[0];
        let matches = given == user.as_bytes() && read(&mut socket, length.into()).await? == password.as_bytes();
        socket.write_all(&[1, u8::from(!matches)]).await.ok()?;
        if !matches {
            return None;
        }
    }
    let kind = read(&mut socket, 4).await?[3];
    let mut place = vec![kind];
    let length = match kind {
        1 => 4,
        4 => 16,
        _ => read(&mut socket, 1).await?[0].into(),
    };
    place.extend(read(&mut socket, length + 2).await?);
    log.lock().unwrap().push(place);
    let reply = (manner.reply)(number);
    socket.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]).await.ok()?;
    if reply == 0 {
        let mut upstream = TcpStream::connect(to).await.ok()?;
        copy_bidirectional(&mut socket, &mut upstream).await.ok()?;
    }
    Some(())
}

fn echo(_: usize) -> Vec<Step> {
    (0..10).flat_map(|_| [Step::Read, ok("answer")]).chain([Step::ReadToEnd]).collect()
}

fn named(name: &[u8], port: u16) -> Vec<u8> {
    [&[3], name, &port.to_be_bytes()].concat()
}

/// 8.7: `socks5h` leaves the name to the proxy, `socks5` does not.
#[tokio::test]
async fn c8_7_who_resolves_the_upstreams_name_is_in_the_scheme() {
    let server = Server::start(echo).await;
    for (scheme, place, looked_up) in [
        ("socks5h", named(b"upstream.test", 80), vec!["proxy.test"]),
        ("socks5", vec![1, 127, 0, 0, 1, 0, 80], vec!["upstream.test", "proxy.test"]),
    ] {
        let (socks, names) = (Socks::start(OPEN, server.address).await, Names::default());
        let pool = through(false, proxy(scheme, "", socks.address), &names, |_| {});
        for _ in 0..2 {
            assert_eq!(send(&pool, get("/a?b")).await.unwrap().1, "answer");
        }
        assert_eq!(
            (socks.asked(), names.asked()),
            (vec![place], looked_up.iter().map(|name| name.to_string()).collect())
        );
    }
    // The upstream sees no proxy.
    assert!(server.requests(0)[0].starts_with("GET /a?b HTTP/1.1\r\nhost: upstream.test\r\n"));
    assert!(!server.requests(0)[0].contains("proxy"));
}

#[tokio::test]
async fn an_address_stays_an_address() {
    let server = Server::start(echo).await;
    let socks = Socks::start(OPEN, server.address).await;
    for scheme in ["socks5", "socks5h"] {
        let pool =
            through(false, proxy(scheme, "", socks.address), &Names::default(), |config| config.host = "::1".into());
        send(&pool, get("/")).await.unwrap();
    }
    let place = [&[4][..], &[0; 15], &[1, 0, 80]].concat();
    assert_eq!(socks.asked(), vec![place; 2]);
}

#[tokio::test]
async fn an_https_upstream_is_reached_over_socks() {
    let authority = Authority::new();
    let upstream = Upstream::start(authority.issue("upstream.test"), echo).await;
    let socks = Socks::start(OPEN, upstream.address).await;
    let pool = through(true, proxy("socks5h", "", socks.address), &Names::default(), |config| {
        config.tls.extra_roots = vec![authority.file.clone()];
    });
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "answer");
    assert_eq!(socks.asked(), [named(b"upstream.test", 443)]);
}

/// 2.4: wrong credentials will be wrong a moment later too.
#[tokio::test]
async fn c2_4_credentials_are_taken_or_refused() {
    let server = Server::start(echo).await;
    let socks = Socks::start(Manner { wants: Some(("s3user", "s3 cret")), ..OPEN }, server.address).await;
    let with = |credentials| through(false, proxy("socks5h", credentials, socks.address), &Names::default(), |_| {});
    assert_eq!(send(&with("s3user:s3%20cret@"), get("/")).await.unwrap().1, "answer");
    for (credentials, expected) in [("s3user:s3wrong@", "asks for other credentials"), ("", "its URL has none")] {
        let error = send(&with(credentials), get("/")).await.unwrap_err();
        assert!(chain(&error).contains(expected), "{error:?}");
        assert_fault::<()>(Err(error), Fault::ProxyRefused, Sent::No);
    }
    assert_eq!(server.connections(), 1);
}

/// 2.3: every other refusal may pass, and nothing was sent.
#[tokio::test]
async fn c2_3_a_refusal_proves_that_nothing_was_sent() {
    let server = Server::start(echo).await;
    for (reply, expected) in [
        ((|_| 1) as fn(usize) -> u8, "General SOCKS server failure"),
        (|_| 2, "not allowed"),
        (|_| 5, "Connection refused"),
        (|_| 200, "did not connect to the upstream"),
    ] {
        let socks = Socks::start(Manner { reply, ..OPEN }, server.address).await;
        let pool = through(false, proxy("socks5h", "", socks.address), &Names::default(), |_| {});
        let error = send(&pool, post("/", "x")).await.unwrap_err();
        assert!(chain(&error).contains(expected), "{error:?}");
        assert_fault::<()>(Err(error), Fault::Proxy, Sent::No);
        assert_eq!(socks.asked().len(), 1);
        until_open(&pool, 0, 0).await;
    }
    // One that speaks something else, and one that says nothing and closes.
    for script in [vec![Step::ReadSome(3), write("HTTP/1.1 400 Bad Request\r\n\r\n")], vec![Step::ReadSome(3)]] {
        let other = Server::start(move |_| script.clone()).await;
        let pool = through(false, proxy("socks5h", "", other.address), &Names::default(), |_| {});
        assert_fault(send(&pool, post("/", "x")).await, Fault::Proxy, Sent::No);
    }
}

/// With `socks5` each address of the upstream is tried.
#[tokio::test]
async fn the_next_address_is_tried_where_one_is_refused() {
    use steadfast::transport::{Pool, PoolConfig, Resolve, ResolveFuture};

    struct Two;

    impl Resolve for Two {
        fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ResolveFuture<'a> {
            Box::pin(async move { Ok(vec![([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], port).into()]) })
        }
    }

    let server = Server::start(echo).await;
    let socks = Socks::start(Manner { reply: |number| if number == 0 { 4 } else { 0 }, ..OPEN }, server.address).await;
    let mut config = PoolConfig::new(false, "upstream.test", 80);
    config.proxy = Proxy::Url(format!("socks5://{}", socks.address).parse().unwrap());
    let pool = Pool::new(config, Arc::new(Two)).unwrap();
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "answer");
    assert_eq!(socks.asked(), [vec![1, 10, 0, 0, 1, 0, 80], vec![1, 10, 0, 0, 2, 0, 80]]);
}

/// 1.2
#[tokio::test]
async fn c1_2_connect_timeout_covers_socks() {
    let silent = Server::start(|_| vec![Step::ReadToEnd]).await;
    let pool = through(false, proxy("socks5h", "", silent.address), &Names::default(), |config| {
        config.connect_timeout = ms(150);
    });
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::ConnectTimeout, Sent::No);
    assert!((ms(150)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    silent.closed(0).await;
}
