//! TLS: which certificates are accepted, and what each failure is called.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use rcgen::{CertificateParams, KeyPair};
use steadfast::transport::TlsFailureKind;
use steadfast_http::{Fault, Sent};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::server::*;
use crate::tls_server::*;

#[tokio::test]
async fn a_private_authority_is_trusted_if_it_is_named() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(authority.issue(HOST).server(), echo()).await;
    let pool_ = tls_pool(HOST, server.port, vec![authority.file("good.pem")], |_| {});
    for _ in 0..3 {
        assert_eq!(send(&pool_, get("/")).await.unwrap().1, "secret");
    }
    assert_eq!(server.connections(), 1);

    let server = TlsServer::start(authority.issue("127.0.0.1").server(), echo()).await;
    let pool = tls_pool("127.0.0.1", server.port, vec![authority.file("ip.pem")], |_| {});
    assert_eq!(send(&pool, get("/")).await.unwrap().1, "secret");
}

/// A70. 2.4: permanent, and proof that nothing was sent.
#[tokio::test]
async fn c2_4_a_certificate_that_does_not_verify_is_a_permanent_fault() {
    let authority = Authority::new("ours");
    let stranger = Authority::new("another");
    let key = KeyPair::generate().unwrap();
    let self_signed = CertificateParams::new(vec![HOST.to_owned()]).unwrap().self_signed(&key).unwrap();
    for config in [
        authority.issue_with(&[HOST], expired).server(),
        authority.issue("elsewhere.test").server(),
        stranger.issue(HOST).server(),
        Issued { certificate: self_signed, key }.server(),
    ] {
        let server = TlsServer::start(config, echo()).await;
        let pool = tls_pool(HOST, server.port, vec![authority.file("trusted.pem")], |_| {});
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
        let pool = tls_pool(HOST, server.address.port(), Vec::new(), |_| {});
        assert_fault(send(&pool, post("/", "x")).await, Fault::Tls, Sent::No);
        assert_eq!(server.connections(), 1);
    }
}

/// 1.2
#[tokio::test]
async fn c1_2_connect_timeout_covers_the_handshake() {
    let server = Server::start(|_| vec![Step::ReadToEnd]).await;
    let pool = tls_pool(HOST, server.address.port(), Vec::new(), |config| config.connect_timeout = ms(100));
    let start = Instant::now();
    assert_fault(send(&pool, get("/")).await, Fault::ConnectTimeout, Sent::No);
    assert!((ms(100)..ms(2_000)).contains(&start.elapsed()), "{:?}", start.elapsed());
    server.closed(0).await;
}

/// A body without length must not be believed whole unless TLS says that it is.
#[tokio::test]
async fn a_body_cut_below_tls_is_incomplete() {
    let authority = Authority::new("ours");
    let script = vec![Step::Read, write("HTTP/1.1 200 OK\r\n\r\nto the end?")];
    let server = TlsServer::start(authority.issue(HOST).server(), script).await;
    let pool = tls_pool(HOST, server.port, vec![authority.file("cut.pem")], |_| {});
    assert_fault(send(&pool, get("/")).await, Fault::Incomplete, Sent::Yes);
}

#[tokio::test]
async fn limits_hold_over_tls() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(authority.issue(HOST).server(), vec![Step::ReadSome(10), Step::Hang]).await;
    let roots = vec![authority.file("limits.pem")];
    let pool = tls_pool(HOST, server.port, roots, |config| {
        config.read_timeout = ms(100);
        config.write_timeout = ms(100);
    });
    assert_fault(send(&pool, get("/")).await, Fault::ReadTimeout, Sent::Unknown);
    let long = post("/", vec![b'x'; 32 * 1024 * 1024]);
    assert_fault(send(&pool, long).await, Fault::WriteTimeout, Sent::Unknown);
    until_open(&pool, 0, 0).await;
}

/// Only the named roots count: the certificate of an authority among them is accepted, any other is not.
#[tokio::test]
async fn pinned_roots_are_the_only_ones() {
    let (ours, other) = (Authority::new("ours"), Authority::new("another"));
    let server = TlsServer::start(ours.issue(HOST).server(), echo()).await;
    let pinned = |authority: &Authority, name: &str| {
        tls_pool(HOST, server.port, vec![authority.file(name)], |config| config.tls.only_extra_roots = true)
    };
    assert_eq!(send(&pinned(&ours, "pin-ours.pem"), get("/")).await.unwrap().1, "secret");
    let error = send(&pinned(&other, "pin-other.pem"), get("/")).await.unwrap_err();
    let failure = failure(&error);
    assert_eq!((failure.kind(), error.fault()), (TlsFailureKind::UnknownIssuer, Fault::Certificate));
    assert_eq!(
        failure.to_string(),
        "the upstream's certificate was issued by none of the authorities in tls_roots, and no others count \
         (tls_roots_only)"
    );
}

/// The name that is sent, and that the certificate must be for, can be another than the host's.
#[tokio::test]
async fn the_server_name_can_be_another_than_the_hosts() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(authority.issue("inner.test").server(), echo()).await;
    let roots = vec![authority.file("name.pem")];
    let named = |name: &str| {
        tls_pool("127.0.0.1", server.port, roots.clone(), |config| config.tls.server_name = Some(name.to_owned()))
    };
    assert_eq!(send(&named("inner.test"), get("/")).await.unwrap().1, "secret");
    assert_eq!(send(&named("INNER.test"), get("/")).await.unwrap().1, "secret");
    let error = send(&named("outer.test"), get("/")).await.unwrap_err();
    assert_eq!((error.fault(), failure(&error).kind()), (Fault::Certificate, TlsFailureKind::WrongName));
    // Without it the host counts.
    let error = send(&tls_pool("127.0.0.1", server.port, roots, |_| {}), get("/")).await.unwrap_err();
    assert_eq!(
        failure(&error).to_string(),
        "the upstream's certificate is not for '127.0.0.1' but for 'inner.test'; tls_server_name sets the name expected"
    );
    // It is what is sent, too.
    let (sent, stray) = (Arc::new(Mutex::new(None)), Authority::new("stray"));
    let mut config = stray.issue("inner.test").server();
    config.cert_resolver = Arc::new(Asked(Arc::clone(&sent)));
    let server = TlsServer::start(config, echo()).await;
    let pool = tls_pool(HOST, server.port, Vec::new(), |config| config.tls.server_name = Some("inner.test".to_owned()));
    let error = send(&pool, get("/")).await.unwrap_err();
    assert_eq!((error.fault(), failure(&error).kind()), (Fault::Tls, TlsFailureKind::Other), "{error:?}");
    assert_eq!(sent.lock().unwrap().as_deref(), Some("inner.test"));
}

/// A server without a certificate, that notes for which name it was asked.
#[derive(Debug)]
struct Asked(Arc<Mutex<Option<String>>>);

impl ResolvesServerCert for Asked {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        *self.0.lock().unwrap() = hello.server_name().map(str::to_owned);
        None
    }
}
