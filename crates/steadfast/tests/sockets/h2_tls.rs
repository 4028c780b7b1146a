//! Which HTTP is spoken over TLS: what is offered, and what comes of it (RFC 7301).

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use h2::Reason;
use http::Version;
use steadfast::ServiceClient;
use steadfast::transport::{HttpVersion, Pool, PoolConfig, Resolve, ResolveFuture};
use steadfast_http::{Fault, Sent};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::h2_peer::{Counts, Raw, serve};
use crate::server::*;

/// An https upstream that speaks what it is given, the preferred first.
struct Upstream {
    port: u16,
    roots: PathBuf,
    counts: Arc<Counts>,
    /// What was spoken on each connection.
    spoken: Arc<Mutex<Vec<&'static str>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Good,
    /// HTTP/2 is refused with HTTP_1_1_REQUIRED, by a reset or by GOAWAY.
    Reset,
    GoAway {
        last: u32,
    },
}

impl Upstream {
    async fn start(name: &str, protocols: &[&str], manner: Manner) -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["upstream.test".to_owned()]).unwrap();
        let roots = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-h2-{name}.pem", std::process::id()));
        std::fs::write(&roots, certified.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (counts, spoken) = (Arc::new(Counts::default()), Arc::default());
        let (seen, heard) = (Arc::clone(&counts), Arc::clone(&spoken));
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            while let Ok((socket, _)) = listener.accept().await {
                socket.set_nodelay(true).unwrap();
                tokio::spawn(converse(acceptor.clone(), socket, manner, Arc::clone(&seen), Arc::clone(&heard)));
            }
        });
        Self { port, roots, counts, spoken }
    }

    fn pool(&self, version: HttpVersion) -> Pool {
        let mut config = PoolConfig::new(true, "upstream.test", self.port);
        config.connect_timeout = LONG;
        config.tls.extra_roots = vec![self.roots.clone()];
        config.http_version = version;
        Pool::new(config, Arc::new(Here)).unwrap()
    }

    fn spoken(&self) -> Vec<&'static str> {
        self.spoken.lock().unwrap().clone()
    }
}

async fn converse(
    acceptor: TlsAcceptor,
    socket: tokio::net::TcpStream,
    manner: Manner,
    counts: Arc<Counts>,
    spoken: Arc<Mutex<Vec<&'static str>>>,
) {
    let Ok(mut stream) = acceptor.accept(socket).await else { return };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        spoken.lock().unwrap().push("h2");
        if manner == Manner::Good {
            return serve(stream, 100, counts).await;
        }
        let mut raw = Raw::greet(stream, &[]).await;
        while let Some(stream) = raw.request().await {
            counts.requests.fetch_add(1, Ordering::SeqCst);
            match manner {
                Manner::GoAway { last } => raw.go_away(last, Reason::HTTP_1_1_REQUIRED).await,
                _ => raw.reset(stream, Reason::HTTP_1_1_REQUIRED).await,
            }
            if manner == (Manner::GoAway { last: stream }) {
                return raw.close().await;
            }
        }
        return;
    }
    spoken.lock().unwrap().push("http/1.1");
    let log = Log::default();
    log.lock().unwrap().push(Seen::default());
    loop {
        for step in [Step::Read, ok("x")] {
            if !perform(&mut stream, step, &log, 0).await {
                return;
            }
        }
        counts.requests.fetch_add(1, Ordering::SeqCst);
    }
}

struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(vec![([127, 0, 0, 1], port).into()]) })
    }
}

async fn ten_at_once(pool: &Pool) {
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let pool = pool.clone();
        tasks.spawn(async move { send(&pool, get("/wait-20")).await.unwrap() });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn the_upstream_chooses() {
    let both = Upstream::start("both", &["h2", "http/1.1"], Manner::Good).await;
    for (version, spoken, over) in [
        (HttpVersion::Auto, "h2", Version::HTTP_2),
        (HttpVersion::Http2, "h2", Version::HTTP_2),
        (HttpVersion::Http1, "http/1.1", Version::HTTP_11),
    ] {
        let pool = both.pool(version);
        assert_eq!(head(&pool, get("/")).await.unwrap().version(), over);
        assert_eq!(both.spoken().pop(), Some(spoken));
    }
    // One that chooses HTTP/1.1, and one that does not choose.
    for (name, protocols) in [("one", &["http/1.1"][..]), ("none", &[][..])] {
        let upstream = Upstream::start(name, protocols, Manner::Good).await;
        let pool = upstream.pool(HttpVersion::Auto);
        assert_eq!(head(&pool, get("/")).await.unwrap().version(), Version::HTTP_11);
        // With nothing but HTTP/2 allowed it is an error, and nothing was sent.
        let pool = upstream.pool(HttpVersion::Http2);
        assert_fault(send(&pool, get("/")).await, Fault::Tls, Sent::No);
        until_open(&pool, 0, 0).await;
        assert_eq!(upstream.counts.requests.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn an_upstream_without_http2_is_named_as_the_reason() {
    let upstream = Upstream::start("reason", &[], Manner::Good).await;
    let error = send(&upstream.pool(HttpVersion::Http2), get("/")).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "the upstream did not choose HTTP/2, and nothing else is allowed (http_version)");
}

/// Until it is known what the upstream speaks, one connection is opened.
#[tokio::test]
async fn the_first_connection_tells_how_many_are_needed() {
    let upstream = Upstream::start("many", &["h2", "http/1.1"], Manner::Good).await;
    let pool = upstream.pool(HttpVersion::Auto);
    ten_at_once(&pool).await;
    assert_eq!(upstream.spoken(), ["h2"]);
    until_open(&pool, 1, 1).await;

    let upstream = Upstream::start("many-one", &["http/1.1"], Manner::Good).await;
    let pool = upstream.pool(HttpVersion::Auto);
    ten_at_once(&pool).await;
    let connections = upstream.spoken().len();
    assert!((2..=10).contains(&connections), "{connections}");
    until_open(&pool, connections, connections).await;
}

/// A47
#[tokio::test]
async fn a47_http11_required_is_heeded_and_remembered() {
    for (name, manner) in
        [("reset", Manner::Reset), ("goaway-0", Manner::GoAway { last: 0 }), ("goaway-1", Manner::GoAway { last: 1 })]
    {
        let upstream = Upstream::start(name, &["h2", "http/1.1"], manner).await;
        let pool = upstream.pool(HttpVersion::Auto);
        let client =
            ServiceClient::builder("https://upstream.test").name("upstream").transport(pool.clone()).build().unwrap();
        let response = client.get("/").send().await.unwrap();
        assert_eq!((response.text().as_ref(), response.version()), ("x", Version::HTTP_11));
        assert_eq!(client.get("/").send().await.unwrap().text(), "x");
        assert_eq!(upstream.spoken(), ["h2", "http/1.1"]);
        until_open(&pool, 1, 1).await;
    }
}

/// A47: proof that it was not processed lets a POST go over HTTP/1.1 too.
#[tokio::test]
async fn a47_a_post_that_a_goaway_left_out_goes_over_http11() {
    let upstream = Upstream::start("post", &["h2", "http/1.1"], Manner::GoAway { last: 0 }).await;
    let pool = upstream.pool(HttpVersion::Auto);
    assert_fault(send(&pool, post("/", "x")).await, Fault::GoAway, Sent::No);
    assert_eq!(send(&pool, post("/", "x")).await.unwrap().1, "x");
}
