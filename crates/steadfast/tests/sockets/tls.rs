//! TLS: which certificates are accepted, and what each failure is called.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use steadfast::transport::{Pool, PoolConfig, Proxy, Resolve, ResolveFuture};
use steadfast_http::{Fault, Sent};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::server::*;

/// A private authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// The authority's certificate in a PEM file.
    fn file(&self, name: &str) -> PathBuf {
        file(name, &self.certificate.pem())
    }

    fn issue(&self, host: &str, expired: bool) -> ServerConfig {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        if expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        server_config(certificate, key)
    }
}

fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    std::fs::write(&path, content).unwrap();
    path
}

fn server_config(certificate: Certificate, key: KeyPair) -> ServerConfig {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap()
}

/// A TLS server that answers every request.
struct TlsServer {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl TlsServer {
    async fn start(config: ServerConfig, script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, script) = (acceptor.clone(), script.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(socket).await else { return };
                    let log = Log::default();
                    log.lock().unwrap().push(Seen::default());
                    for step in script {
                        if !perform(&mut stream, step, &log, 0).await {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Every name is this machine.
struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(vec![([127, 0, 0, 1], port).into()]) })
    }
}

fn pool(host: &str, port: u16, roots: Vec<PathBuf>, change: impl FnOnce(&mut PoolConfig)) -> Pool {
    let mut config = PoolConfig::new(true, host, port);
    config.connect_timeout = LONG;
    config.proxy = Proxy::Off;
    config.tls.extra_roots = roots;
    change(&mut config);
    Pool::new(config, Arc::new(Here)).unwrap()
}

fn echo() -> Vec<Step> {
    (0..10).flat_map(|_| [Step::Read, ok("secret")]).collect()
}

#[tokio::test]
async fn a_private_authority_is_trusted_if_it_is_named() {
    let authority = Authority::new();
    let server = TlsServer::start(authority.issue("upstream.test", false), echo()).await;
    let pool_ = pool("upstream.test", server.port, vec![authority.file("good.pem")], |_| {});
    for _ in 0..3 {
        assert_eq!(send(&pool_, get("/")).await.unwrap().1, "secret");
    }
    assert_eq!(server.connections(), 1);

    let server = TlsServer::start(authority.issue("127.0.0.1", false), echo()).await;
    let pool = pool("127.0.0.1", server.port, vec![authority.file("ip.pem")], |_| {});
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "secret");
}

/// A70. 2.4: permanent, and proof that nothing was sent.
#[tokio::test]
async fn c2_4_a_certificate_that_does_not_verify_is_a_permanent_fault() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let key = KeyPair::generate().unwrap();
    let self_signed = CertificateParams::new(vec!["upstream.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    for config in [
        authority.issue("upstream.test", true),
        authority.issue("elsewhere.test", false),
        stranger.issue("upstream.test", false),
        server_config(self_signed, key),
    ] {
        let server = TlsServer::start(config, echo()).await;
        let pool = pool("upstream.test", server.port, vec![authority.file("trusted.pem")], |_| {});
        assert_fault(send(&pool, get("/")).await, Fault::Certificate, Sent::No);
        assert_eq!(server.connections(), 1);
    }
}

/// 2.3: other failures of the handshake may pass.
#[tokio::test]
async fn c2_3_a_handshake_that_fails_is_a_tls_fault() {
    for script in [
        vec![],
        vec![Step::Reset],
        vec![Step::ReadSome(20)],
        vec![Step::ReadSome(20), write("HTTP/1.1 400 Bad Request\r\n\r\n")],
        // An alert: handshake failure.
        vec![Step::ReadSome(20), write([21, 3, 3, 0, 2, 2, 40]), Step::ReadToEnd],
    ] {
        let server = Server::start(move |_| script.clone()).await;
        let pool = pool("upstream.test", server.address.port(), Vec::new(), |_| {});
        assert_fault(send(&pool, post("/", "x")).await, Fault::Tls, Sent::No);
        assert_eq!(server.connections(), 1);
    }
}

/// 1.2
#[tokio::test]
async fn c1_2_connect_timeout_covers_the_handshake() {
    let server = Server::start(|_| vec![Step::ReadToEnd]).await;
    let pool = pool("upstream.test", server.address.port(), Vec::new(), |config| config.connect_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::ConnectTimeout, Sent::No);
    assert!((ms(100)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    server.closed(0).await;
}

/// A body without length must not be believed whole unless TLS says that it is.
#[tokio::test]
async fn a_body_cut_below_tls_is_incomplete() {
    let authority = Authority::new();
    let script = vec![Step::Read, write("HTTP/1.1 200 OK\r\n\r\nto the end?")];
    let server = TlsServer::start(authority.issue("upstream.test", false), script).await;
    let pool = pool("upstream.test", server.port, vec![authority.file("cut.pem")], |_| {});
    assert_fault(send(&pool, get("/")).await, Fault::Incomplete, Sent::Yes);
}

#[tokio::test]
async fn limits_hold_over_tls() {
    let authority = Authority::new();
    let server = TlsServer::start(authority.issue("upstream.test", false), vec![Step::ReadSome(10), Step::Hang]).await;
    let roots = vec![authority.file("limits.pem")];
    let pool = pool("upstream.test", server.port, roots, |config| {
        config.read_timeout = ms(100);
        config.write_timeout = ms(100);
    });
    assert_fault(send(&pool, get("/")).await, Fault::ReadTimeout, Sent::Unknown);
    let long = post("/", vec![b'x'; 32 * 1024 * 1024]);
    assert_fault(send(&pool, long).await, Fault::WriteTimeout, Sent::Unknown);
    until_open(&pool, 0, 0).await;
}

#[test]
fn a_root_file_that_cannot_be_used_is_named() {
    let error = |roots: Vec<PathBuf>| {
        let mut config = PoolConfig::new(true, "upstream.test", 443);
        config.tls.extra_roots = roots;
        Pool::new(config, Arc::new(Here)).unwrap_err()
    };
    let missing = PathBuf::from("/no/such/file.pem");
    assert_eq!(error(vec![missing.clone()]).path(), Some(missing.as_path()));
    let texts = [
        error(vec![missing]),
        error(vec![file("empty.pem", "")]),
        error(vec![file("key.pem", &KeyPair::generate().unwrap().serialize_pem())]),
        error(vec![file("cut.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n")]),
        error(vec![file("rubbish.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")]),
    ]
    .map(|error| error.to_string());
    for (text, expected) in texts.iter().zip([
        "cannot be read",
        "has no certificate; expected one or more PEM sections CERTIFICATE",
        "has no certificate; expected one or more PEM sections CERTIFICATE",
        "is not valid PEM; expected one or more CERTIFICATE sections",
        "certificate 1 in",
    ]) {
        assert!(text.contains(expected) && text.contains(".pem'"), "{text}");
    }
    // Without https no file is read.
    let mut plain = PoolConfig::new(false, "upstream.test", 80);
    plain.proxy = Proxy::Off;
    plain.tls.extra_roots = vec![PathBuf::from("/no/such/file.pem")];
    assert!(Pool::new(plain, Arc::new(Here)).is_ok());
}
