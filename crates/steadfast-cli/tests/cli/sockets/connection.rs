//! How a call gets to its upstream: `--http2`, `--proxy`, `--cacert`, `--cert`, `--key`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::call;
use super::server::{Server, answer};
use crate::support::{File, steadfast};

/// The first bytes of a connection without TLS are those of RFC 9113 section 3.4.
#[test]
fn http2_is_spoken_from_the_first_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (send, preface) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut first = [0; 24];
            let mut stream = stream;
            if stream.read_exact(&mut first).is_ok() {
                let _ = send.send(first);
            }
        }
    });
    let called = call(&url, &["retries=0"], &["--http2", "GET", "/x"]);
    assert_eq!(called.code, 13, "{called:?}");
    assert_eq!(&preface.recv().expect("a connection"), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

/// 8.7: the proxy is told where the request goes, and nobody else is told how it was asked.
#[test]
fn c8_7_a_proxy_passes_the_request_on_and_its_credentials_are_shown_nowhere() {
    let proxy = Server::new([answer(200)]);
    let url = proxy.url().replace("http://", "http://s3user:s3cret@");
    let called = call("http://upstream.test/api", &[], &["--proxy", &url, "GET", "/x"]);
    assert_eq!((called.code, proxy.count()), (0, 1), "{called:?}");
    let request = &proxy.requests()[0];
    assert!(request.head.starts_with("GET http://upstream.test/api/x HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.header("proxy-authorization"), Some("Basic czN1c2VyOnMzY3JldA=="));
    let run = &called.run;
    assert!(!run.stdout.contains("s3") && !run.stderr.contains("s3"), "{run:?}");
}

#[test]
fn a_proxy_that_refuses_us_ends_the_call_at_once() {
    let proxy = Server::new([answer(407)]);
    let called = call("http://upstream.test", &[], &["--proxy", &proxy.url(), "GET", "/x"]);
    assert_eq!((called.code, proxy.count()), (13, 1), "{called:?}");
    assert_eq!(called.only()["attempts"][0]["outcome"], "proxy");
    assert!(called.run.stderr.contains("(407)"), "{called:?}");
}

/// A private authority, in the form of files.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { issuer: Issuer::new(params, key), certificate }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }
}

/// An upstream that answers over TLS, to clients of the same authority only.
fn secure(authority: &Authority) -> String {
    let provider = || Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone()).expect("a root");
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().expect("a verifier");
    let (certificate, key) = authority.issue("localhost");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("PKCS#8");
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate with its key");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            thread::spawn(move || {
                let mut stream = StreamOwned::new(connection, stream);
                let mut request = [0; 4096];
                while matches!(stream.read(&mut request), Ok(length) if length > 0) {
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("https://localhost:{port}")
}

#[test]
fn certificates_are_trusted_and_presented_as_typed() {
    let authority = Authority::new();
    let url = secure(&authority);
    let (certificate, key) = authority.issue("client");
    let root = File::new("root.pem", &authority.certificate.pem());
    let identity = File::new("client.pem", &certificate.pem());
    let secret = File::new("client.key", &key.serialize_pem());
    let both = ["--cacert", root.path(), "--cert", identity.path(), "--key", secret.path(), "GET", "/x"];
    let called = call(&url, &[], &both);
    assert_eq!(called.code, 0, "{called:?}");

    let called = call(&url, &[], &["GET", "/x"]);
    assert_eq!(called.code, 13, "{called:?}");
    assert!(called.run.stderr.contains("tls_roots"), "says what would help: {called:?}");
    assert_eq!(called.only()["attempts"].as_array().map(Vec::len), Some(1), "permanent: {called:?}");

    let called = call(&url, &[], &["--cacert", root.path(), "GET", "/x"]);
    assert_eq!(called.code, 13, "{called:?}");
    assert!(called.run.stderr.contains("certificate"), "{called:?}");

    // A certificate without its key is a mistake, and nothing is called.
    let run = steadfast(&["call", "--url", &url, "--cacert", root.path(), "--cert", identity.path(), "GET", "/x"]);
    assert_eq!((run.code, run.stdout.as_str()), (78, ""), "{run:?}");
    assert!(run.stderr.contains("--cert: ") && run.stderr.contains("no private key"), "{run:?}");
}
